"""Running one round and recording it.

A tool that is not read-only runs only after its `started` entry is committed; no answer leaves
before its `finished` entry is. So what was answered is recorded, and what could not be recorded
was not run.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, assert_never
from uuid import UUID

import orjson

from mcphost.audit.records import Record
from mcphost.audit.writer import RecordLost, RecordRefused, writer
from mcphost.observability import counters, tracing
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.runtime.outcomes import (
    Complete,
    Failed,
    Failure,
    FailureKind,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.runtime.ports import Ports
from mcphost.serving import claiming, records, replies, resuming
from mcphost.serving.claiming import Finished, Refused, Superseded, Wanted, Won
from mcphost.serving.deliveries import modern
from mcphost.serving.held import Held
from mcphost.serving.replies import Delivered, Reply
from mcphost.serving.spans import in_span
from mcphost.serving.turn import Turn

RETRY_SECONDS = 2
UNRECORDED_END = "The tool has run, but how its call ended could not be recorded"

CANNOT_ASK = "This asks for input, which it cannot do in this kind of call"

_UNSEEN = "a record for which nobody waits was lost"

Deliver = Callable[[Turn, Outcome], Awaitable[Delivered]]

log = logging.getLogger(__name__)


async def run(turn: Turn, ports: Ports, deliver: Deliver = modern.deliver) -> Reply:
    """Run the round and commit its records: answers before it runs, questions before they are asked.

    `deliver` says what the outcome is to whoever made the call.

    Raises ProtocolError (UNAVAILABLE) when it cannot be recorded. A cancelled round is recorded as
    such, without anybody waiting for it.
    """
    if writer.refuse_new():
        raise _unavailable("The server cannot record calls at the moment")
    if turn.incoming.held is not None:
        return await _run_held(turn, ports, deliver, turn.incoming.held)
    if turn.must_run_once:
        return await _run_once(turn, ports)
    before = records.before(turn)
    if before:
        await _begin(turn, _commit(before))
    delivered, after = await _ran(turn, ports, deliver)
    await _end(turn, _commit(after))
    return delivered.reply


async def _run_held(turn: Turn, ports: Ports, deliver: Deliver, held: Held) -> Reply:
    """Run the round of a call that its process has. Raises SupersededError when it has it no more."""
    await _begin(turn, _recorded(held.start(records.before(turn))))
    delivered, after = await _ran(turn, ports, deliver)
    await _end(turn, _recorded(held.conclude(delivered.reply, after)))
    return delivered.reply


async def _run_once(turn: Turn, ports: Ports) -> Reply:
    """Run the round unless it has been run, here or elsewhere: the same answers get the same reply.

    Raises ProtocolError: other answers than those that were taken are refused like any state that
    is not good; whose reply is not known yet is told to ask again.
    """
    claimed = await claiming.claim(_wanted(turn), records.before(turn))
    match claimed:
        case Won():
            return await _run_won(turn, ports, claimed)
        case Finished(reply):
            return replies.read(reply)
        case Refused(reason):
            await record_refusal(turn, reason, turn.call.id)
            raise resuming.invalid_state()
        case _:
            assert_never(claimed)


def _wanted(turn: Turn) -> Wanted:
    call, state = turn.call, turn.resumed.state
    assert state is not None
    left = max(0.0, state.expires_at - time.time())
    return Wanted(call.id, call.round, call.tenant, turn.resumed.digest, left)


async def _run_won(turn: Turn, ports: Ports, won: Won) -> Reply:
    try:
        delivered, after = await _ran(turn, ports, modern.deliver)
        reply = replies.write(delivered.reply)
    except BaseException:
        claiming.let_go(won)
        raise
    if _had_no_room(delivered.outcome):
        await claiming.release(won)
        await _end(turn, _commit(after))
    else:
        await _end(turn, claiming.conclude(won, reply, after))
    return delivered.reply


def _had_no_room(outcome: Outcome) -> bool:
    """Whether nothing ran, so that the same answers may be tried again."""
    return isinstance(outcome, Failed) and outcome.error.kind is FailureKind.OVERLOADED


async def _ran(turn: Turn, ports: Ports, deliver: Deliver) -> tuple[Delivered, tuple[Record, ...]]:
    """Run it. What is answered, and what is to be recorded before the answer leaves."""
    counters.rounds.add()
    began = time.perf_counter()
    try:
        outcome, size = await _outcome(turn, ports)
        delivered = await deliver(turn, outcome)
    except asyncio.CancelledError as end:
        seconds = time.perf_counter() - began
        _observe(turn, records.CANCELLED, seconds)
        _leave(records.cancelled(turn, seconds, end))
        raise
    seconds = time.perf_counter() - began
    _observe(turn, records.word_for(delivered.outcome), seconds)
    if isinstance(delivered.outcome, Failed):
        _explain(turn, delivered.outcome.error)
    return delivered, records.after(turn, delivered, seconds, size)


async def run_unrecorded(turn: Turn, ports: Ports) -> Mapping[str, Any]:
    """Run a round that leaves no record, because it changes nothing and tells next to nothing.

    What it asks would be asked of nobody. Raises ProtocolError for what is no result.
    """
    outcome, _ = await _outcome(turn, ports)
    if isinstance(outcome, InputRequired | Yielded):
        outcome = Failed(Failure(FailureKind.CRASHED, CANNOT_ASK))
    if isinstance(outcome, Failed):
        _explain(turn, outcome.error)
    reply = (await modern.deliver(turn, outcome)).reply
    return replies.finish(reply, {})


async def record_refusal(turn: Turn, reason: str, call: UUID | None) -> None:
    """Record that the state of a request was refused, and why; the caller is not told."""
    log.warning("a request's state was refused: %s", reason, extra=_facts(turn))
    await _commit((records.refused(turn, reason, call),))


def record_late(turn: Turn) -> None:
    """Record that a program used its context after its round had ended. On the event loop."""
    _leave(records.late(turn))


async def _begin(turn: Turn, commit: Awaitable[None]) -> None:
    """Commit what comes before. A hang-up meanwhile is an end too: the tool has not run."""
    try:
        await commit
    except asyncio.CancelledError as end:
        _leave(records.cancelled(turn, 0, end))
        raise


async def _end(turn: Turn, commit: Awaitable[None]) -> None:
    """Wait for the commit of how the round ended. What cannot be said of a tool that changes things is an error
    that nobody takes for an invitation to call it again."""
    try:
        await commit
    except Superseded:
        raise _unavailable("Another process has taken this call over") from None
    except ProtocolError as error:
        if turn.primitive.read_only or error.code != UNAVAILABLE:
            raise
        raise ProtocolError(INTERNAL_ERROR, UNRECORDED_END) from None


async def _outcome(turn: Turn, ports: Ports) -> tuple[Outcome, int]:
    """What the program gives back, in a span of its own where traces are wanted."""
    if tracing.tracer is None:
        return await _advance(turn, ports)
    return await in_span(tracing.tracer, turn, _advance(turn, ports))


async def _advance(turn: Turn, ports: Ports) -> tuple[Outcome, int]:
    try:
        return _measured(await turn.primitive.program.advance(turn.call, turn.journal, ports))
    except Exception as error:
        log.exception("a program raised instead of failing", extra=_facts(turn))
        return Failed(Failure(FailureKind.CRASHED, "This failed unexpectedly", repr(error))), 0


def _measured(outcome: Outcome) -> tuple[Outcome, int]:
    """The outcome with the size of its result as JSON: what cannot be sent is a failure now."""
    if not isinstance(outcome, Complete):
        return outcome, 0
    try:
        return outcome, len(orjson.dumps(outcome.result))
    except TypeError as error:
        message = "What was returned is not a valid result."
        return Failed(Failure(FailureKind.INVALID_RESULT, message, repr(error))), 0


def _observe(turn: Turn, outcome: str, seconds: float) -> None:
    primitive = turn.primitive
    counters.round_seconds.observe(seconds, primitive.kind, primitive.sort, outcome)


def _explain(turn: Turn, error: Failure) -> None:
    facts = {**_facts(turn), "kind": error.kind.value}
    log.warning("a round failed: %s", error.detail or error.message, extra=facts)


def _facts(turn: Turn) -> dict[str, str]:
    call = turn.call
    return {"primitive": turn.primitive.name, "method": call.method, "call": str(call.id)}


async def _commit(what: tuple[Record, ...]) -> None:
    await _recorded(_written(what))


async def _written(what: tuple[Record, ...]) -> None:
    await writer.submit(what)  # to cancel the wait does not cancel the commit


async def _recorded(commit: Awaitable[None]) -> None:
    try:
        await commit
    except RecordLost:
        raise _unavailable("The server could not record the call") from None
    except RecordRefused:
        message = "The call could not be recorded as it is"
        raise ProtocolError(INTERNAL_ERROR, message) from None


def _leave(record: Record) -> None:
    """Submit without waiting. Should it be lost, the log of the writer says so."""
    try:
        writer.submit((record,)).add_done_callback(_look)
    except RecordLost:
        log.warning(_UNSEEN)


def _look(future: "asyncio.Future[None]") -> None:
    if not future.cancelled() and future.exception() is not None:
        log.warning(_UNSEEN)


def _unavailable(message: str) -> ProtocolError:
    return ProtocolError(UNAVAILABLE, message, {"retryAfter": RETRY_SECONDS})
