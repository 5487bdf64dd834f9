"""Pages of lists and their cursors (spec: server/utilities/pagination, server/utilities/caching)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import orjson

from mcphost.protocol import results
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, invalid_params
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import policy, sealing
from mcphost.serving.context import Incoming
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


E = TypeVar("E", bound=ListedPrimitive)


async def after(incoming: Incoming) -> str:
    """The key of the entry after which the requested page starts; empty for the first page.

    Raises ProtocolError: FORBIDDEN if the caller may not list, INVALID_PARAMS if the cursor is not
    one of this list.
    """
    policy.require_scope(incoming.principal, policy.LIST)
    exchange = incoming.exchange
    if "cursor" not in exchange.params:
        return ""
    return await read(incoming.principal, exchange.method, exchange.params["cursor"])


async def page(
    incoming: Incoming, start: str, field: str, entries: Sequence[E], key: Callable[[E], str]
) -> Mapping[str, Any]:
    """Build the page of entries after `start` that are visible to the caller.

    `entries` are ordered by their keys; `field` is the name of the list in the result.
    """
    principal = incoming.principal
    shown = [one for one in entries if key(one) > start and policy.visible(principal, one)]
    size = _size(shown)
    listed: dict[str, Any] = {field: [one.listing for one in shown[:size]]}
    if len(shown) > size:
        method, last = incoming.exchange.method, key(shown[size - 1])
        listed["nextCursor"] = await issue(principal, method, last)
    same_for_all = not any(one.scopes for one in entries)
    scope = policy.cache_scope(incoming.tenant, same_for_all=same_for_all)
    return results.complete(
        results.cacheable(listed, TTL_MS, scope),
        server_info(incoming.tenant.title, incoming.tenant.icon),
    )


def _size(entries: Sequence[ListedPrimitive]) -> int:
    """The number of entries on a page: limited by the page size and the size limit of a result, but
    at least one.

    With icons an entry may have half a megabyte.
    """
    left = options().result_limit
    size = options().page_size
    for number, one in enumerate(entries[:size]):
        left -= len(one.encoded)
        if left < 0:
            return max(1, number)
    return size
