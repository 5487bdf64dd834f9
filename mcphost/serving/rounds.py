"""Running one round and recording it.

A tool that is not read-only runs only after its `started` entry is committed; no answer leaves
before its `finished` entry is. So what was answered is recorded, and what could not be recorded
was not run.
"""

import asyncio
import logging
import time

import orjson

from mcphost.audit.records import Record
from mcphost.audit.writer import RecordLost, RecordRefused, writer
from mcphost.observability import counters, tracing
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports
from mcphost.serving import records
from mcphost.serving.spans import in_span
from mcphost.serving.turn import Turn

RETRY_SECONDS = 2
UNRECORDED_END = "The tool has run, but how its call ended could not be recorded"

_CANCELLED_UNSEEN = "the record of a cancelled round was lost"

log = logging.getLogger(__name__)


async def run(turn: Turn, ports: Ports) -> Outcome:
    """Run the round and commit its records.

    Raises ProtocolError (UNAVAILABLE) when it cannot be recorded. A cancelled round is recorded as
    such, without anybody waiting for it.
    """
    if writer.refuse_new():
        raise _unavailable("The server cannot record calls at the moment")
    if not turn.primitive.read_only:
        await _begin(turn)
    counters.rounds.add()
    began = time.perf_counter()
    try:
        outcome, size = await _outcome(turn, ports)
    except asyncio.CancelledError as end:
        seconds = time.perf_counter() - began
        _observe(turn, records.CANCELLED, seconds)
        _leave(records.cancelled(turn, seconds, end))
        raise
    seconds = time.perf_counter() - began
    _observe(turn, records.word_for(outcome), seconds)
    if isinstance(outcome, Failed):
        _explain(turn, outcome.error)
    await _end(turn, records.finished(turn, outcome, seconds, size))
    return outcome


async def run_unrecorded(turn: Turn, ports: Ports) -> Outcome:
    """Run a round that leaves no record, because it changes nothing and tells next to nothing."""
    outcome, _ = await _outcome(turn, ports)
    if isinstance(outcome, Failed):
        _explain(turn, outcome.error)
    return outcome


async def _begin(turn: Turn) -> None:
    """Commit that the round starts. A hang-up meanwhile is an end too: the tool has not run."""
    try:
        await _commit(records.started(turn))
    except asyncio.CancelledError as end:
        _leave(records.cancelled(turn, 0, end))
        raise


async def _end(turn: Turn, record: Record) -> None:
    """Commit how the round ended. What cannot be said of a tool that changes things is an error
    that nobody takes for an invitation to call it again."""
    try:
        await _commit(record)
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


async def _commit(record: Record) -> None:
    try:
        await writer.submit((record,))  # to cancel the wait does not cancel the commit
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
        log.warning(_CANCELLED_UNSEEN)


def _look(future: "asyncio.Future[None]") -> None:
    if not future.cancelled() and future.exception() is not None:
        log.warning(_CANCELLED_UNSEEN)


def _unavailable(message: str) -> ProtocolError:
    return ProtocolError(UNAVAILABLE, message, {"retryAfter": RETRY_SECONDS})
