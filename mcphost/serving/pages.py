"""One page of a list (spec: server/utilities/pagination, server/utilities/caching)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from mcphost.protocol import results
from mcphost.serving import cursors, policy
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.options import options

TTL_MS = 0


class Entry(Protocol):
    """What is listed: `listing` is how it looks on the wire, `encoded` the same as JSON."""

    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def listing(self) -> Mapping[str, Any]: ...
    @property
    def encoded(self) -> bytes: ...


E = TypeVar("E", bound=Entry)


async def after(incoming: Incoming) -> str:
    """The key of the entry after which the page starts that is asked for.

    Raises ProtocolError for a caller that may not list (FORBIDDEN), and for what is no cursor of
    this list (INVALID_PARAMS).
    """
    policy.require_scope(incoming.principal, policy.LIST)
    exchange = incoming.exchange
    if "cursor" not in exchange.params:
        return ""
    return await cursors.read(incoming.principal, exchange.method, exchange.params["cursor"])


async def page(
    incoming: Incoming, start: str, field: str, entries: Sequence[E], key: Callable[[E], str]
) -> Mapping[str, Any]:
    """What the caller may know of after `start`, as much as a page holds.

    `entries` are ordered by their keys; `field` is the name of the list in the result.
    """
    principal = incoming.principal
    shown = [one for one in entries if key(one) > start and policy.visible(principal, one)]
    size = _size(shown)
    listed: dict[str, Any] = {field: [one.listing for one in shown[:size]]}
    if len(shown) > size:
        method, last = incoming.exchange.method, key(shown[size - 1])
        listed["nextCursor"] = await cursors.issue(principal, method, last)
    same_for_all = not any(one.scopes for one in entries)
    scope = policy.cache_scope(incoming.tenant, same_for_all=same_for_all)
    return results.complete(results.cacheable(listed, TTL_MS, scope), server_info(incoming.tenant))


def _size(entries: Sequence[Entry]) -> int:
    """How many of them a page holds: one at least, and else no more bytes than a result may have.

    Icons make entries of half a megabyte.
    """
    left = options().result_limit
    size = options().page_size
    for number, one in enumerate(entries[:size]):
        left -= len(one.encoded)
        if left < 0:
            return max(1, number)
    return size
