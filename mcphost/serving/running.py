"""From a request to the result of its first round, whatever primitive it is for."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcphost.audit.records import new_id
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.ports import Limits, Ports
from mcphost.serving import limits, rounds
from mcphost.serving.announcing import TenantAnnouncer
from mcphost.serving.deliveries import modern
from mcphost.serving.incoming import Incoming
from mcphost.serving.notifier import notifier_for
from mcphost.serving.options import options
from mcphost.serving.programs import threads
from mcphost.serving.streams import Stream
from mcphost.serving.turn import Primitive, Turn

Runner = Callable[[Turn, Ports], Awaitable[Outcome]]


def turn_of(
    incoming: Incoming, primitive: Primitive, target: str, arguments: Mapping[str, Any]
) -> Turn:
    """The first round of a new call."""
    meta = incoming.exchange.meta
    client = Client(
        name=str(meta.client_info.get("name", "")),
        version=str(meta.client_info.get("version", "")),
        capabilities=meta.capabilities,
    )
    call = Call(
        id=new_id(),
        tenant=incoming.tenant.id,
        principal=incoming.principal,
        method=incoming.exchange.method,
        target=target,
        arguments=arguments,
        client=client,
        revision=incoming.exchange.revision,
        era=incoming.exchange.era,
        delivery=Delivery.MODERN,
        trace_id=incoming.trace_id,
    )
    return Turn(incoming, primitive, call, EMPTY)


async def run(turn: Turn, stream: Stream, runner: Runner = rounds.run) -> Mapping[str, Any]:
    """Run it within the caller's limits. The method's result, without its envelope.

    Raises ProtocolError for what is not a result: over a limit, failed, not recorded.
    """
    incoming = turn.incoming
    ports = _ports(turn, stream)
    if limits.are_set(incoming):
        await limits.take_turn(incoming)
        with limits.occupy(incoming):
            outcome = await runner(turn, ports)
    else:
        outcome = await runner(turn, ports)
    return modern.deliver(outcome, turn.call)


def _ports(turn: Turn, stream: Stream) -> Ports:
    seconds = turn.primitive.time_limit or options().tool_seconds
    return Ports(
        threads=threads(),
        notifier=notifier_for(turn.incoming.exchange, stream),
        limits=Limits(seconds, options().result_limit),
        announcer=TenantAnnouncer(turn.incoming.tenant.id),
    )
