"""Run a call's request on any primitive, within the caller's limits, and return the reply."""

from collections.abc import Awaitable, Mapping
from typing import Any

from mcphost.audit.records import new_id
from mcphost.protocol.eras import Era
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.ports import (
    Announcer,
    Links,
    Misuse,
    Notifier,
    RoundLimits,
    Store,
    SystemClock,
    SystemRandomness,
    Threads,
)
from mcphost.serving import limits, shutdown
from mcphost.serving.context import Incoming, Resumed, RunnablePrimitive, Turn
from mcphost.serving.execution import resume, rounds
from mcphost.serving.execution.announcements import TenantAnnouncer
from mcphost.serving.execution.deliveries import may_go_elsewhere
from mcphost.serving.execution.links import CallLinks, warm
from mcphost.serving.execution.ports import NULL_NOTIFIER, StreamNotifier, TenantStore, threads
from mcphost.serving.options import options
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import Reply
from mcphost.serving.request_state import InvalidState
from mcphost.vault.sealer import is_warm

UNCERTAIN = "The server stopped while the program ran; it may have taken effect"

DELIVERIES = {Era.MODERN: Delivery.MODERN, Era.LEGACY: Delivery.LEGACY}
"""The delivery of each era."""


class RoundPorts:
    """Implements `runtime.ports.Ports` for one round. Seldom used ports are made on first use."""

    __slots__ = ("_stream", "_turn")
    clock = SystemClock()
    randomness = SystemRandomness()

    def __init__(self, turn: Turn, stream: EventStream) -> None:
        self._turn = turn
        self._stream = stream

    @property
    def threads(self) -> Threads:
        return threads()

    @property
    def notifier(self) -> Notifier:
        """What sends the notifications that the request opted in to, and no others.

        Progress needs a `progressToken` (spec: basic/patterns/progress), log messages a `logLevel`
        (spec: server/utilities/logging).
        """
        meta = self._turn.incoming.exchange.meta
        if meta.progress_token is None and meta.log_level is None:
            return NULL_NOTIFIER
        return StreamNotifier(self._stream, meta.progress_token, meta.log_level)

    @property
    def limits(self) -> RoundLimits:
        seconds = self._turn.primitive.time_limit or options().tool_seconds
        return RoundLimits(seconds, options().result_limit)

    @property
    def announcer(self) -> Announcer:
        return TenantAnnouncer(self._turn.call.tenant)

    @property
    def store(self) -> Store:
        return TenantStore(self._turn.call.tenant)

    @property
    def links(self) -> Links:
        return CallLinks(self._turn.incoming, self._turn.call, self._stream)

    def leaving(self) -> bool:
        return shutdown.draining() and may_go_elsewhere(self._turn)

    def close_stream(self) -> None:
        held = self._turn.incoming.held
        if held is not None:
            held.close_stream()

    def misused(self, misuse: Misuse, other: Call | None) -> None:
        rounds.record_misuse(self._turn, misuse, other)


def run(
    incoming: Incoming,
    primitive: RunnablePrimitive,
    target: str,
    arguments: Mapping[str, Any],
    stream: EventStream,
) -> Awaitable[Reply]:
    """Run a round of a call within the caller's limits: the first, or the next of a resumed call.

    Raises ProtocolError, at once or when awaited, when there is no reply of the program: over a
    limit, invalid state, not recorded, or (INTERNAL_ERROR) a process that has died began the round
    and its outcome is not known.
    """
    held = incoming.held
    if held is not None and held.uncertain and primitive.claims:
        raise ProtocolError(INTERNAL_ERROR, UNCERTAIN)
    turn = turn_of(incoming, primitive, target, arguments)
    if limits.are_set(incoming):
        return _run_limited(turn, stream)
    return _run(turn, stream)


async def run_unrecorded(turn: Turn, stream: EventStream) -> Mapping[str, Any]:
    """Run a round that cannot request input, unrecorded, within the caller's limits.

    Raises ProtocolError for any outcome that is not a result.
    """
    await limits.count_call(turn.incoming)
    with limits.occupy(turn.incoming):
        return await rounds.run_unrecorded(turn, RoundPorts(turn, stream))


def turn_of(
    incoming: Incoming, primitive: RunnablePrimitive, target: str, arguments: Mapping[str, Any]
) -> Turn:
    """The first round of a new call, or the next round of a held call."""
    held, exchange = incoming.held, incoming.exchange
    info = exchange.meta.client_info
    call = Call(
        new_id() if held is None else held.call,
        incoming.tenant.id,
        incoming.principal,
        exchange.method,
        target,
        arguments,
        Client(str(info.get("name", "")), str(info.get("version", "")), exchange.meta.capabilities),
        exchange.revision,
        exchange.era,
        DELIVERIES[exchange.era],
        trace_id=incoming.trace_id,
        version=primitive.version,
    )
    if held is None:
        return Turn(incoming, primitive, call, EMPTY)
    resumed = held.resumed
    return Turn(incoming, primitive, _call(call, resumed), resumed.journal, resumed)


async def _run_limited(turn: Turn, stream: EventStream) -> Reply:
    if turn.resumed.state is None:
        await limits.count_call(turn.incoming)
    else:
        await limits.place(turn.incoming)
    with limits.occupy(turn.incoming):
        return await _run(turn, stream)


def _run(turn: Turn, stream: EventStream) -> Awaitable[Reply]:
    comes_back = resume.comes_back(turn.incoming.exchange.params)
    if (comes_back and turn.call.delivery is Delivery.MODERN) or not is_warm(turn.call.tenant):
        return _run_resumed(turn, stream)
    return rounds.run(turn, RoundPorts(turn, stream))


async def _run_resumed(turn: Turn, stream: EventStream) -> Reply:
    await warm(turn.call.tenant)
    if turn.call.delivery is Delivery.MODERN and resume.comes_back(turn.incoming.exchange.params):
        turn = await _resumed(turn)
    return await rounds.run(turn, RoundPorts(turn, stream))


async def _resumed(turn: Turn) -> Turn:
    """The round to which the request's state leads. Raises ProtocolError for an invalid state."""
    try:
        resumed = await resume.resume(turn.incoming, turn.bound, unasked=turn.primitive.unasked)
    except InvalidState as error:
        await rounds.record_refusal(turn, error.reason, error.call)
        raise resume.invalid_state() from None
    return turn._replace(call=_call(turn.call, resumed), journal=resumed.journal, resumed=resumed)


def _call(call: Call, resumed: Resumed) -> Call:
    state = resumed.state
    return call if state is None else call._replace(id=state.call, round=state.round + 1)
