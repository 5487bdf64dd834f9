"""From a request to the reply to it, whatever primitive it is for."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mcphost.audit.records import new_id
from mcphost.protocol.eras import Era
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.ports import Limits, Ports, nothing, stay
from mcphost.serving import drain, limits, resuming, rounds
from mcphost.serving.announcing import TenantAnnouncer
from mcphost.serving.deliveries import legacy, modern
from mcphost.serving.incoming import Incoming
from mcphost.serving.links import CallLinks, warm
from mcphost.serving.notifier import notifier_for
from mcphost.serving.options import options
from mcphost.serving.programs import threads
from mcphost.serving.replies import Reply
from mcphost.serving.resumed import FRESH, Resumed
from mcphost.serving.states import InvalidState
from mcphost.serving.stores import TenantStore
from mcphost.serving.streams import Stream
from mcphost.serving.turn import Primitive, Turn

UNCERTAIN = "The server stopped while this ran: it is not known whether it took effect"

DELIVERIES = {Era.MODERN: Delivery.MODERN, Era.LEGACY: Delivery.LEGACY}
"""How a request of each era is answered."""


async def run(
    incoming: Incoming,
    primitive: Primitive,
    target: str,
    arguments: Mapping[str, Any],
    stream: Stream,
) -> Reply:
    """Run a round of the call within the caller's limits: its first, or the next if it comes back.

    Raises ProtocolError for what is not a reply of the program: over a limit, a state that is not
    valid, not recorded.
    """
    held = incoming.held
    if held is not None and held.reply is not None:
        return held.reply
    if held is not None and held.uncertain and primitive.claims:
        raise ProtocolError(INTERNAL_ERROR, UNCERTAIN)
    turn = turn_of(incoming, primitive, target, arguments)
    if not limits.are_set(incoming):
        return await _run(turn, stream)
    if turn.resumed.state is None:
        await limits.take_turn(incoming)
    else:
        await limits.place(incoming)
    with limits.occupy(incoming):
        return await _run(turn, stream)


async def run_unrecorded(turn: Turn, stream: Stream) -> Mapping[str, Any]:
    """Run what can neither ask nor come back, within the caller's limits. Its result.

    Raises ProtocolError for what is not a result.
    """
    await limits.take_turn(turn.incoming)
    with limits.occupy(turn.incoming):
        return await rounds.run_unrecorded(turn, _ports(turn, stream))


def turn_of(
    incoming: Incoming, primitive: Primitive, target: str, arguments: Mapping[str, Any]
) -> Turn:
    """The first round of a new call, or the next of one that is held."""
    held = incoming.held
    resumed = FRESH if held is None else held.resumed
    meta = incoming.exchange.meta
    client = Client(
        name=str(meta.client_info.get("name", "")),
        version=str(meta.client_info.get("version", "")),
        capabilities=meta.capabilities,
    )
    call = Call(
        id=new_id() if held is None else held.call,
        tenant=incoming.tenant.id,
        principal=incoming.principal,
        method=incoming.exchange.method,
        target=target,
        arguments=arguments,
        client=client,
        revision=incoming.exchange.revision,
        era=incoming.exchange.era,
        delivery=DELIVERIES[incoming.exchange.era],
        trace_id=incoming.trace_id,
        version=primitive.version,
    )
    return Turn(incoming, primitive, _call(call, resumed), resumed.journal, resumed)


async def _run(turn: Turn, stream: Stream) -> Reply:
    await warm(turn.call.tenant)
    if turn.call.delivery is Delivery.LEGACY:
        return await rounds.run(turn, _ports(turn, stream), legacy.deliver)
    if resuming.comes_back(turn.incoming.exchange.params):
        turn = await _resumed(turn)
    return await rounds.run(turn, _ports(turn, stream))


async def _resumed(turn: Turn) -> Turn:
    """The round that the request's state leads to."""
    try:
        resumed = await resuming.resume(turn.incoming, turn.bound, unasked=turn.primitive.unasked)
    except InvalidState as error:
        await rounds.record_refusal(turn, error.reason, error.call)
        raise resuming.invalid_state() from None
    return turn._replace(call=_call(turn.call, resumed), journal=resumed.journal, resumed=resumed)


def _call(call: Call, resumed: Resumed) -> Call:
    state = resumed.state
    return call if state is None else call._replace(id=state.call, round=state.round + 1)


def _may_go_elsewhere(turn: Turn) -> bool:
    if turn.call.delivery is Delivery.LEGACY:
        held = turn.incoming.held
        return held is not None and held.movable and not turn.was_shed
    return modern.may_be_shed(turn)


def _ports(turn: Turn, stream: Stream) -> Ports:
    held = turn.incoming.held
    seconds = turn.primitive.time_limit or options().tool_seconds
    return Ports(
        threads=threads(),
        notifier=notifier_for(turn.incoming.exchange, stream),
        limits=Limits(seconds, options().result_limit),
        announcer=TenantAnnouncer(turn.incoming.tenant.id),
        store=TenantStore(turn.incoming.tenant.id),
        links=CallLinks(turn.incoming, turn.call, stream),
        leaving=drain.draining if _may_go_elsewhere(turn) else stay,
        late=partial(rounds.record_late, turn),
        close_stream=nothing if held is None else held.close_stream,
    )
