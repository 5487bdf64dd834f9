"""Session calls whose code this process lacks: other processes have it, or at the moment none
does.

Such a call is left to a process that can run it, while one lives or may come.
"""

from typing import NamedTuple
from uuid import UUID

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.selectors import Offering
from mcphost.feed.cache import MISS
from mcphost.feed.nodes import heartbeat
from mcphost.serving import lookups
from mcphost.serving.context import Incoming
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.lookups import CallTarget, Scopes


class SessionTarget(NamedTuple):
    """What a call of a session runs, for a caller with these scopes."""

    tenant: UUID
    target: CallTarget
    scopes: Scopes


def target_of(incoming: Incoming) -> SessionTarget | None:
    """What a request runs; None if its method runs no primitive."""
    exchange = incoming.exchange
    target = lookups.target(exchange.method, exchange.params)
    if target is None:
        return None
    return SessionTarget(incoming.tenant.id, target, incoming.principal.scopes)


async def lacks_any(tenant: UUID) -> bool:
    """Whether this process lacks the code of anything that the tenant has published."""
    offering = await _offering(tenant)
    problems, everything = offering.problems, offering.everything
    return any(problem.missing_function for problem in problems) or any(
        primitive.missing_function for primitive in everything
    )


async def awaits_another(call: SessionTarget) -> bool:
    """Whether only another process can run this, and one lives or may come."""
    offering = await _offering(call.tenant)
    served = lookups.primitive(offering, call.target, call.scopes)
    if served is not None:
        function = served[0].missing_function
    else:
        function = lookups.missing_function(offering, call.target, call.scopes)
    return bool(function) and heartbeat.may_come(function)


async def require_code(incoming: Incoming) -> None:
    """Raise ProtocolError if no process is known to have the code of a call that goes on."""
    owned_call = incoming.owned_call
    if owned_call is None or not (owned_call.uncertain or owned_call.resumed.state is not None):
        return
    call = target_of(incoming)
    if call is not None:
        absent = lookups.absent(await _offering(call.tenant), call.target, call.scopes)
        if absent is not None:
            raise absent


async def _offering(tenant: UUID) -> Offering:
    cached = catalogue.cached_offering(tenant)
    return cached if cached is not MISS else await in_database_unbounded(catalogue.offering, tenant)
