"""Pages of lists and their cursors (spec: server/utilities/pagination, server/utilities/caching)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson

from mcphost.catalogue.snapshots import Offering
from mcphost.protocol import results
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, invalid_params
from mcphost.protocol.legacy.results import list_entry
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.runtime.program import TaskSupport
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import policy, sealing
from mcphost.serving.context import Incoming
from mcphost.serving.lookups import offering
from mcphost.serving.options import options
from mcphost.serving.replies import server_info


async def issue(principal: Principal, method: str, last: str) -> str:
    """Seal a cursor to the entries after `last` in the list of `method`.

    Raises ProtocolError (INTERNAL_ERROR) for a tenant whose salt was destroyed.
    """
    payload = orjson.dumps([method, _scopes(principal), last])
    try:
        return await sealing.seal(Purpose.CURSOR, principal.tenant, payload)
    except SealError as error:
        message = "No cursor can be issued: the tenant's encryption keys were destroyed"
        raise ProtocolError(INTERNAL_ERROR, message) from error


async def read(principal: Principal, method: str, cursor: str) -> str:
    """Open a cursor and return the key after which the page starts.

    Raises ProtocolError (INVALID_PARAMS) for a cursor that this service did not issue, or that is
    of another tenant, of another list, or of a caller with other scopes.
    """
    try:
        payload = await sealing.unseal(Purpose.CURSOR, principal.tenant, cursor)
    except SealError:
        raise invalid() from None
    of, scopes, last = orjson.loads(payload)
    if of != method or scopes != _scopes(principal):
        raise invalid()
    name: str = last
    return name


def invalid() -> ProtocolError:
    return invalid_params("params.cursor is not a cursor of this list; start again without one")


def _scopes(principal: Principal) -> str:
    return hashlib.sha256(" ".join(sorted(principal.scopes)).encode()).hexdigest()[:16]


TTL_MS = 0


class ListedPrimitive(Protocol):
    """A primitive in a list: `listing` is its entry, `encoded` the same as JSON."""

    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def listing(self) -> Mapping[str, Any]: ...
    @property
    def encoded(self) -> bytes: ...
    @property
    def task_support(self) -> TaskSupport: ...


E = TypeVar("E", bound=ListedPrimitive)


class PreparedPage(NamedTuple):
    """The entries of a page as JSON, the key of the last one if more follow, and whether all callers
    have the same list."""

    entries: bytes
    last: str
    same_for_all: bool


PAGES_BYTES = 1024 * 1024
"""The size of the prepared pages that are kept for one offering."""
MAX_PAGES = 1000
"""How many are kept, however small: there may be empty ones for any set of scopes that a token has."""


async def page(
    incoming: Incoming,
    field: str,
    entries: Callable[[Offering], Sequence[E]],
    key: Callable[[E], str],
) -> Mapping[str, Any]:
    """Build the requested page of the entries that are visible to the caller.

    `entries` are ordered by their keys; `field` is the name of the list in the result. Raises
    ProtocolError: FORBIDDEN if the caller may not list, INVALID_PARAMS if the cursor is not one of
    this list.
    """
    principal, exchange, tenant = incoming.principal, incoming.exchange, incoming.tenant
    policy.require_scope(principal, policy.LIST)
    start = ""
    if "cursor" in exchange.params:
        start = await read(principal, exchange.method, exchange.params["cursor"])
    offered = await offering(tenant.id)
    limits = options().page_size, options().result_limit
    name = (exchange.method, exchange.revision, principal.scopes, start, limits)
    prepared: PreparedPage | None = offered.pages.get(name)
    if prepared is None:
        prepared = _prepared(incoming, entries(offered), start, key)
        size = sum(len(kept_page.entries) for kept_page in offered.pages.values())
        if size > PAGES_BYTES or len(offered.pages) >= MAX_PAGES:
            offered.pages.clear()
        if len(prepared.entries) <= PAGES_BYTES:
            offered.pages[name] = prepared
    listed: dict[str, Any] = {field: orjson.Fragment(prepared.entries)}
    if prepared.last:
        listed["nextCursor"] = await issue(principal, exchange.method, prepared.last)
    scope = policy.cache_scope(tenant, same_for_all=prepared.same_for_all)
    return results.complete(
        results.cacheable(listed, TTL_MS, scope), server_info(tenant.title, tenant.icon)
    )


def _prepared(
    incoming: Incoming, entries: Sequence[E], start: str, key: Callable[[E], str]
) -> PreparedPage:
    shown = [
        entry
        for entry in entries
        if key(entry) > start and policy.visible(incoming.principal, entry)
    ]
    size = _size(shown)
    legacy = REVISIONS.get(incoming.exchange.revision)
    listed = [
        entry.encoded if legacy is None else orjson.dumps(list_entry(legacy, _listed(entry)))
        for entry in shown[:size]
    ]
    last = key(shown[size - 1]) if len(shown) > size else ""
    return PreparedPage(
        b"[%b]" % b",".join(listed), last, same_for_all=not any(entry.scopes for entry in entries)
    )


def _listed(entry: ListedPrimitive) -> Mapping[str, Any]:
    """The entry with what only the session-based revisions list (2025-11-25: server/tools)."""
    support = _TASK_SUPPORT.get(entry.task_support)
    return entry.listing if support is None else {**entry.listing, "execution": support}


_TASK_SUPPORT: Mapping[TaskSupport, Mapping[str, str]] = {
    TaskSupport.SLOW: {"taskSupport": "optional"},
    TaskSupport.ALWAYS: {"taskSupport": "optional"},
    TaskSupport.REQUIRED: {"taskSupport": "required"},
}


def _size(entries: Sequence[ListedPrimitive]) -> int:
    """The number of entries on a page: limited by the page size and the size limit of a result, but
    at least one.

    With icons an entry may have half a megabyte.
    """
    remaining = options().result_limit
    size = options().page_size
    for number, entry in enumerate(entries[:size]):
        remaining -= len(entry.encoded)
        if remaining < 0:
            return max(1, number)
    return size
