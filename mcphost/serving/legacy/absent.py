"""Calls of sessions whose code this process lacks: other processes have it, or none does at the moment.

Such a call is left to a process that can run it, while one lives or may come.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.selectors import Offering, PrimitiveProblem, Snapshot
from mcphost.feed.cache import MISS
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.declarations import NO_PROCESS
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.uris import normalize
from mcphost.serving import lookups
from mcphost.serving.context import Incoming
from mcphost.serving.database import in_database_unbounded

_NAMES: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""The methods that run a primitive, and the parameters that name it."""


class CallTarget(NamedTuple):
    """The primitive that a call runs. `name` is its name or URI; `scopes` are the caller's."""

    tenant: UUID
    method: str
    name: str
    scopes: frozenset[str]


def target_of(incoming: Incoming) -> CallTarget | None:
    """The primitive that a request runs; None if its method runs none."""
    exchange = incoming.exchange
    if exchange.method not in _NAMES:
        return None
    name = str(exchange.params.get(_NAMES[exchange.method], ""))
    return CallTarget(incoming.tenant.id, exchange.method, name, incoming.principal.scopes)


async def lacks_any(tenant: UUID) -> bool:
    """Whether this process lacks the code of anything that the tenant has published."""
    offering = await _offering(tenant)
    return bool(offering.problems) or any(one.function for one in offering.everything)


async def awaits_another(target: CallTarget) -> bool:
    """Whether only another process can run this, and one lives or may come."""
    function = _lacked(await _offering(target.tenant), target)
    return function is not None and heartbeat.may_come(function)


async def require_code(incoming: Incoming) -> None:
    """Raise ProtocolError (INTERNAL_ERROR) if no process has the code of a call that goes on."""
    target, held = target_of(incoming), incoming.held
    if target is None or held is None or not (held.uncertain or held.resumed.state is not None):
        return
    if _lacked(await _offering(target.tenant), target) == "":
        raise ProtocolError(INTERNAL_ERROR, NO_PROCESS)


async def _offering(tenant: UUID) -> Offering:
    known = catalogue.cached_offering(tenant)
    return known if known is not MISS else await in_database_unbounded(catalogue.offering, tenant)


def _lacked(offering: Offering, target: CallTarget) -> str | None:
    """The function that this process lacks, empty if no process is known to have it; None if this
    process can run the primitive, or it is not published."""
    served = _served(offering, target)
    if served is not None:
        return served.function or None
    return "" if any(_is_at(problem, target) for problem in offering.problems) else None


def _served(offering: Offering, target: CallTarget) -> Snapshot | None:
    if target.method == "tools/call":
        return lookups.tool(offering, target.name, target.scopes)
    if target.method == "prompts/get":
        return lookups.prompt(offering, target.name, target.scopes)
    with suppress(ValueError):
        found = lookups.resource(offering, target.name, target.scopes)
        return None if found is None else found[0]
    return None


def _is_at(problem: PrimitiveProblem, target: CallTarget) -> bool:
    """Whether the target is a primitive that cannot be served."""
    if not problem.scopes <= target.scopes:
        return False
    with suppress(ValueError):
        match problem.sort:
            case PrimitiveType.TOOL:
                return (target.method, target.name) == ("tools/call", problem.name)
            case PrimitiveType.PROMPT:
                return (target.method, target.name) == ("prompts/get", problem.name)
            case PrimitiveType.RESOURCE:
                at_uri = target.method == "resources/read"
                return at_uri and normalize(target.name) == problem.uri
            case PrimitiveType.TEMPLATE:
                at_uri = target.method == "resources/read"
                template = UriTemplate(problem.uri)
                return at_uri and template.match(normalize(target.name)) is not None
    return False
