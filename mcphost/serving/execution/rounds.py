"""Run one round and record it.

A tool that is not read-only runs only after its `started` entry is committed; no reply is sent
before its `finished` entry is. So every reply is recorded, and a round that cannot be recorded does
not run.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, assert_never
from uuid import UUID

import orjson

from mcphost.audit.records import Record
from mcphost.audit.writer.writer import RecordLost, RecordRefused, writer
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.declarations import ABSENT
from mcphost.observability import counters, tracing
from mcphost.observability.availability import availability
from mcphost.observability.tracing import Run, Tracer
from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    UNAVAILABLE,
    ProtocolError,
    unavailable,
)
from mcphost.runtime.call import Call, Delivery
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import (
    Complete,
    Deferred,
    Failed,
    Failure,
    FailureKind,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.runtime.ports import Misuse, Ports
from mcphost.runtime.program import TaskSupport
from mcphost.sealing.tokens import SealError
from mcphost.serving import limits, load, replies, shutdown
from mcphost.serving.context import Held, RoundEnding, Turn
from mcphost.serving.database import DatabaseAwayError, in_database, until_there
from mcphost.serving.execution import (
    audit_records,
    cancelled_calls,
    claims,
    resume,
    state_parts,
    stored_tasks,
)
from mcphost.serving.execution.cancelled_calls import CANCELLED, CalledOff
from mcphost.serving.execution.claims import ClaimRefused, Finished, Superseded, WantedClaim, Won
from mcphost.serving.execution.deliveries import CANNOT_ASK, answer_by, deliver, journal_before
from mcphost.serving.execution.held_task import HeldTask, Retries, running_tasks
from mcphost.serving.execution.stored_tasks import CreatedTask
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, Delivered, Handle, Reply
from mcphost.serving.request_state import InvalidState
from mcphost.tasks import selectors as tasks
from mcphost.vault.errors import VaultError

Measured = tuple[Outcome, int]
Ran = tuple[Delivered, tuple[Record, ...]]
"""The reply of a round, and the records to commit before it is sent."""
Measuring = Coroutine[Any, Any, Measured]


class Running(NamedTuple):
    """A round that runs, and when it began (`time.perf_counter`)."""

    work: Awaitable[Measured]
    began: float


async def in_span(tracer: Tracer, turn: Turn, running: Measuring) -> Measured:
    """Run the round in a trace span that has its ending."""
    with tracer.round(_run(turn)) as span:
        try:
            outcome, size = await running
        except asyncio.CancelledError:
            span.end_with(audit_records.CANCELLED, failed=False)
            raise
        word = audit_records.word_for(outcome)
        span.end_with(word, failed=word not in audit_records.WELL)
        return outcome, size


def _run(turn: Turn) -> Run:
    call, primitive = turn.call, turn.primitive
    return Run(call.method, primitive.name, primitive.version, str(call.id), call.round)


MAX_ATTEMPTS = 5
"""How many processes may stop while they run one round that any process may take, before it fails."""
GIVEN_UP = "The server stopped several times while this ran"
NOT_NOW = "The server cannot record calls at the moment"
UNRECORDED_END = "The tool has run, but its result could not be recorded"
UNRECORDED_TASK = "The call could not be recorded as a task, and has not run"
_UNSEEN = "a record for which no request waits was lost"


log = logging.getLogger(__name__)


class MovablePorts(Ports, Protocol):
    """The ports of a round whose call may become a task while the round runs."""

    def so_far(self) -> Journal | None:
        """The journal with the steps that this round has recorded; None if it has none, or since the
        last call of this method."""

    def move(self, task: HeldTask) -> None:
        """From now on the round is that of a task, whose journal has what `so_far` returned."""


async def run(turn: Turn, ports: MovablePorts) -> Reply:
    """Run the round and commit its records: input responses before it runs, input requests before
    they are sent.

    While the database is unreachable no round starts. A running round waits at its next commit;
    that wait does not count towards its time limit.

    Raises ProtocolError (UNAVAILABLE) when the round cannot be recorded. A cancelled round is
    recorded as such, and no request waits for that.
    """
    if availability.away or writer.is_behind() or writer.refuse_new():
        await check_recorded()
    if turn.incoming.held is not None:
        return await _run_held(turn, ports, turn.incoming.held)
    if turn.resumed.state is not None:
        resumed = await _resume(turn, ports)
        if not isinstance(resumed, Turn):
            return resumed
        turn = resumed
    supported = turn.primitive.task_support is not TaskSupport.NEVER
    is_task = supported and stored_tasks.begins_as_task(turn)
    before = () if is_task and not turn.resumed.taken else audit_records.before(turn)
    if before:
        await _begin(turn, _commit(before))
    delivered, after = await _ran(turn, ports)
    try:
        if delivered.creation is None:
            await writer.submit(after)
        else:
            await stored_tasks.commit(delivered, after)
    except (RecordLost, RecordRefused) as error:
        raise _unrecorded(turn, error) from None
    if turn.resumed.carried:
        await state_parts.end(turn, delivered)
    return delivered.reply


async def check_recorded() -> None:
    """Wait until the database can be reached. Raises ProtocolError (UNAVAILABLE) if no round may start
    now, because it could not be recorded."""
    if availability.away or writer.is_behind():
        await _until_there()
    if writer.refuse_new():
        raise unavailable(NOT_NOW)


async def cancelled_reply(turn: Turn) -> Reply | None:
    """The reply to a request that resumes a cancelled call, which is recorded; else None. Raises
    ProtocolError."""
    cancelled = await cancelled_calls.reply_of(turn)
    if cancelled is not None:
        await record_refusal(turn, CANCELLED, turn.call.id)
    return cancelled


async def _resume(turn: Turn, ports: MovablePorts) -> Turn | Reply:
    """Run a round that is claimed, and return the reply; or the turn of one that is not claimed. Of a
    cancelled call, the reply says so. Raises ProtocolError."""
    cancelled = await cancelled_reply(turn)
    if cancelled is not None:
        return cancelled
    try:
        if turn.is_claimed and turn.resumed.goes_on:
            return await _run_once(turn, ports)
        return await _unanswered(turn)
    except CalledOff as end:
        return cancelled_calls.reply_for(turn.call.method, turn.call.target, end.reason)


async def _refused(turn: Turn, reason: str) -> ProtocolError | CalledOff:
    """Record that a state is not accepted any more, and return the error: that of any invalid state, or
    CalledOff if its call was cancelled a moment ago."""
    why = await cancelled_calls.reason_of(turn.call.id, turn.call.tenant)
    await record_refusal(turn, reason if why is None else CANCELLED, turn.call.id)
    if why is not None:
        return CalledOff(why)
    return resume.invalid_state()


async def refused_reply(turn: Turn, reason: str) -> Reply:
    """The reply to a request whose claim was refused: only of a cancelled call there is one. Raises
    ProtocolError, as for any invalid state."""
    error = await _refused(turn, reason)
    if isinstance(error, CalledOff):
        return cancelled_calls.reply_for(turn.call.method, turn.call.target, error.reason)
    raise error


async def _unanswered(turn: Turn) -> Turn:
    """The turn of a round that is not claimed, with what its state does not hold. Raises
    ProtocolError."""
    if turn.is_claimed:
        await _refuse_if_answered(turn)
    return await _whole(turn)


async def _whole(turn: Turn) -> Turn:
    """The turn with what its state does not hold. Raises ProtocolError as for any invalid state, if
    that is not there any more."""
    try:
        return await state_parts.load(turn)
    except InvalidState as error:
        await record_refusal(turn, error.reason, error.call)
        raise resume.invalid_state() from None


async def _run_held(turn: Turn, ports: MovablePorts, held: Held) -> Reply:
    """Run a round of a held call. Raises SupersededError if this process no longer owns it."""
    supported = turn.primitive.task_support is not TaskSupport.NEVER
    is_task = supported and stored_tasks.begins_as_task(turn)
    before = () if is_task else audit_records.before(turn)
    running = None
    if turn.primitive.missing_function and turn.call.delivery is Delivery.LEGACY and not is_task:
        _refuse_absent(turn, held)
        running = Running(_left(turn), time.perf_counter())
    await _begin(turn, _recorded(held.start(before)))
    return await _conclude(turn, held, _ran(turn, ports, running))


def _refuse_absent(turn: Turn, held: Held) -> None:
    """Refuse a session's call whose function only other processes have, if its client may simply repeat
    it, or could not follow it there. Raises ProtocolError (UNAVAILABLE)."""
    primitive, first = turn.primitive, turn.resumed.state is None
    repeatable = first and primitive.read_only and not primitive.requires
    if repeatable or (shutdown.draining() and not held.movable):
        raise unavailable(ABSENT)


async def _left(turn: Turn) -> Measured:
    """The outcome of a round that is left to a process that has the function."""
    return Yielded(turn.journal, load.ABSENT_FUNCTION), 0


def _unrecorded(turn: Turn, error: RecordLost | RecordRefused) -> ProtocolError:
    return _unrecorded_end(turn, _not_recorded(error))


async def _run_once(turn: Turn, ports: MovablePorts) -> Reply:
    """Run the round unless any process has run it. The same input responses get the same reply.

    Raises ProtocolError: INVALID_PARAMS, as for an invalid state, if other input responses were
    accepted before; UNAVAILABLE if the reply is not known yet.
    """
    claimed = await claims.claim(wanted_claim(turn), audit_records.before(turn))
    match claimed:
        case Won():
            return await run_won(turn, ports, claimed)
        case Finished(reply):
            await _record_repetition(turn)
            return replies.read(reply)
        case ClaimRefused(reason):
            raise await _refused(turn, reason)
        case _:
            assert_never(claimed)


def wanted_claim(turn: Turn) -> WantedClaim:
    """What a round is claimed by. Of a call's first round only one that is left to another process is."""
    now, call, state = time.time(), turn.call, turn.resumed.state
    until = answer_by(turn) if state is None else state.expires_at
    remaining = max(0.0, until - now)
    return WantedClaim(call.id, turn.resumed.claim, call.tenant, turn.resumed.digest, remaining)


async def _refuse_if_answered(turn: Turn) -> None:
    """Refuse to repeat input requests that were answered already. Raises ProtocolError as for any
    invalid state.

    Further responses would be refused, and the call would seem to wait for them.
    """
    if await claims.is_claimed(wanted_claim(turn)):
        raise await _refused(turn, "answered")


async def _record_repetition(turn: Turn) -> None:
    """Record that a client repeated its input responses, limited per minute as refusals are."""
    if limits.may_be_recorded(f"{turn.call.id}:repeated"):
        await _commit((audit_records.repeated(turn),))


async def run_won(turn: Turn, ports: MovablePorts, won: Won) -> Reply:
    """Run a round that this process has claimed, and store its reply with the claim. Raises
    ProtocolError."""
    try:
        delivered, after = await _ran_won(turn, ports, won)
        reply = replies.write(delivered.reply)
    except BaseException:
        claims.let_go(won)
        raise
    if _had_no_room(delivered.outcome):
        await claims.release(won)
        await _end(turn, _commit(after))
    else:
        await _end(turn, claims.conclude(won, reply, after))
        await state_parts.end(turn, delivered)
    return delivered.reply


async def _ran_won(turn: Turn, ports: MovablePorts, won: Won) -> Ran:
    """Run the round, unless it has made its call a task before its process died."""
    if won.epoch > 1 and turn.primitive.task_support is not TaskSupport.NEVER:
        row = await in_database(tasks.of_call, turn.call.id)
        if row is not None:
            return Delivered(Deferred(turn.journal), Handle(stored_tasks.handle(row))), ()
    delivered, after = await _ran(await _whole(turn), ports)
    if delivered.creation is None:
        return delivered, after
    await stored_tasks.commit(delivered, after)
    return delivered, ()


def _had_no_room(outcome: Outcome) -> bool:
    """Whether no thread was free, so that the client may retry.

    Steps of an async function may have run before. In a retry they run again, with the same
    idempotency keys.
    """
    return isinstance(outcome, Failed) and outcome.error.kind is FailureKind.OVERLOADED


async def _ran_until_slow(turn: Turn, ports: MovablePorts, work: Measuring) -> Ran:
    """Run the round, and make its call a task if it is slow: the round then runs on."""
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    running = loop.create_task(work)
    created = None
    try:
        await asyncio.wait({running}, timeout=options().tasks.after_seconds)
        if not running.done():  # whatever happens to the request, the task is created or not
            moving = _moved(turn, ports, Running(running, began))
            created = await asyncio.shield(loop.create_task(moving))
    except asyncio.CancelledError as end:
        if created is None:
            running.cancel(str(end))
        raise
    if created is None:
        return await _ran(turn, ports, Running(running, began))
    return Delivered(Deferred(turn.journal), Handle(created.view)), ()


async def _moved(turn: Turn, ports: MovablePorts, running: Running) -> CreatedTask | None:
    """Make a task of a call whose round runs; None if that is not possible now."""
    try:
        so_far = turn._replace(journal=ports.so_far() or turn.journal)
        created = await stored_tasks.create(turn, await journal_before(so_far), owner=heartbeat.id)
        if not await writer.submit_if(created.condition):
            return None
    except (RecordLost, RecordRefused, SealError, VaultError) as error:
        log.warning("a slow call could not become a task: %r", error, extra=_facts(turn))
        return None
    counters.tasks_created.add()
    until = created.view.created_at.timestamp() + (created.view.ttl_ms or 0) / 1000
    call = turn.call
    held = HeldTask(call.id, call.principal, created.taking, until)
    held.round = call.round
    held.retries = Retries(turn.primitive.retries)
    ports.move(held)
    incoming = turn.incoming._replace(held=held)
    moved = turn._replace(incoming=incoming, call=call._replace(delivery=Delivery.TASK))
    running_tasks.attend(held, _conclude(moved, held, _ran(moved, ports, running)))
    return created


async def _conclude(turn: Turn, held: Held, ended: Awaitable[Ran]) -> Reply:
    delivered, after = await ended
    ending = RoundEnding(after, partial(_unrecorded, turn))
    try:
        await held.conclude(delivered, ending)
    except (RecordLost, RecordRefused) as error:
        raise _unrecorded(turn, error) from None
    return delivered.reply


async def _ran(turn: Turn, ports: MovablePorts, running: Running | None = None) -> Ran:
    """Run the round; return its reply, and the records to commit before the reply is sent.

    With `running`, the round runs already.
    """
    kind, sort = turn.primitive.kind, turn.primitive.sort
    if running is None:
        counters.rounds.add()
        work: Measuring = _outcome(turn, ports)
        if tracing.tracer is not None:
            work = in_span(tracing.tracer, turn, work)
        if turn.primitive.task_support is TaskSupport.SLOW and stored_tasks.may_become_task(turn):
            return await _ran_until_slow(turn, ports, work)
        running = Running(work, time.perf_counter())
    try:
        outcome, size = await running.work
        if type(outcome) is Complete:
            delivered = Delivered(outcome, Answered(outcome.result))
        else:
            delivered = await deliver(turn, outcome)
    except asyncio.CancelledError as end:
        seconds = time.perf_counter() - running.began
        counters.round_seconds.observe(seconds, kind, sort, audit_records.CANCELLED)
        _leave(audit_records.cancelled(turn, seconds, end))
        raise
    seconds = time.perf_counter() - running.began
    word = audit_records.word_for(delivered.outcome)
    counters.round_seconds.observe(seconds, kind, sort, word)
    if isinstance(delivered.outcome, Failed):
        _explain(turn, delivered.outcome.error)
    return delivered, audit_records.after(turn, delivered, word, seconds, size)


async def run_unrecorded(turn: Turn, ports: Ports) -> Mapping[str, Any]:
    """Run a round without a record, because it changes nothing and discloses next to nothing.

    It must not request input. Raises ProtocolError for any outcome that is not a result.
    """
    work: Measuring = _outcome(turn, ports)
    if tracing.tracer is not None:
        work = in_span(tracing.tracer, turn, work)
    outcome, _ = await work
    if isinstance(outcome, InputRequired | Yielded | Deferred):
        outcome = Failed(Failure(FailureKind.CRASHED, CANNOT_ASK))
    if isinstance(outcome, Failed):
        _explain(turn, outcome.error)
    reply = (await deliver(turn, outcome)).reply
    return replies.finish(reply, {})


async def record_refusal(turn: Turn, reason: str, call: UUID | None) -> None:
    """Record and log why a request's state was refused. The caller does not learn the reason."""
    log.warning("a request's state was refused: %s", reason, extra=_facts(turn))
    await _commit((audit_records.refused(turn, reason, call),))


def record_misuse(turn: Turn, misuse: Misuse, other: Call | None) -> None:
    """Record and log that a tool context was misused (`Misuse`).

    The log has both calls if there is an `other`; the record of one tenant never names the call of
    another. On the event loop.
    """
    facts = {**_facts(turn), "tenant_id": str(turn.call.tenant), "misuse": str(misuse)}
    if other is not None:
        facts |= {"other_call": str(other.id), "other_tenant_id": str(other.tenant)}
    log.warning("a tool context was misused", extra=facts)
    _leave(audit_records.misused(turn, misuse))


async def _until_there() -> None:
    try:
        await until_there()
    except DatabaseAwayError:
        raise unavailable(NOT_NOW) from None


async def _begin(turn: Turn, commit: Awaitable[None]) -> None:
    """Commit the records before the round. Record a cancellation meanwhile as the round's end."""
    try:
        await commit
    except asyncio.CancelledError as end:
        _leave(audit_records.cancelled(turn, 0, end))
        raise


async def _end(turn: Turn, commit: Awaitable[None]) -> None:
    """Wait for the commit of the round's end. Raises ProtocolError if it fails."""
    try:
        await commit
    except Superseded:
        raise unavailable("Another process has taken this call over") from None
    except ProtocolError as error:
        raise _unrecorded_end(turn, error) from None


def _unrecorded_end(turn: Turn, error: ProtocolError) -> ProtocolError:
    """The error for a round whose end was not recorded.

    For a tool that is not read-only it is one that does not invite the client to retry.
    """
    if turn.primitive.read_only or error.code != UNAVAILABLE:
        return error
    as_task = stored_tasks.begins_as_task(turn)
    return ProtocolError(INTERNAL_ERROR, UNRECORDED_TASK if as_task else UNRECORDED_END)


async def _outcome(turn: Turn, ports: Ports) -> tuple[Outcome, int]:
    """Run the program; return its outcome and the size of its result as JSON.

    A result that cannot be encoded becomes a failure.
    """
    supported = turn.primitive.task_support is not TaskSupport.NEVER
    if supported and stored_tasks.begins_as_task(turn):
        return Deferred(turn.journal, no_room=turn.deferred), 0
    try:
        outcome = await turn.primitive.program.advance(turn.call, turn.journal, ports)
    except Exception as error:
        log.exception("a program raised instead of failing", extra=_facts(turn))
        return Failed(Failure(FailureKind.CRASHED, "This failed unexpectedly", repr(error))), 0
    if not isinstance(outcome, Complete):
        return outcome, 0
    if outcome.size is not None:
        return outcome, outcome.size
    try:
        return outcome, len(orjson.dumps(outcome.result))
    except TypeError as error:
        message = "The program returned an invalid result."
        return Failed(Failure(FailureKind.INVALID_RESULT, message, repr(error))), 0


def _explain(turn: Turn, error: Failure) -> None:
    facts = {**_facts(turn), "kind": error.kind.value}
    if error.kind is FailureKind.INVALID_ARGUMENTS:  # the message names the caller's own fields
        log.info("a round's arguments did not fit the input schema", extra=facts)
        return
    log.warning("a round failed: %s", error.detail or error.message, extra=facts)


def _facts(turn: Turn) -> dict[str, str]:
    call = turn.call
    return {"primitive": turn.primitive.name, "method": call.method, "call": str(call.id)}


async def _commit(what: tuple[Record, ...]) -> None:
    """Commit records. Cancelling this coroutine does not cancel the commit."""
    try:
        await writer.submit(what)
    except (RecordLost, RecordRefused) as error:
        raise _not_recorded(error) from None


async def _recorded(commit: Awaitable[None]) -> None:
    try:
        await commit
    except (RecordLost, RecordRefused) as error:
        raise _not_recorded(error) from None


def _not_recorded(error: RecordLost | RecordRefused) -> ProtocolError:
    if isinstance(error, RecordLost):
        return unavailable("The server could not record the call")
    return ProtocolError(INTERNAL_ERROR, "The call cannot be recorded, and a retry will not help")


def _leave(record: Record) -> None:
    """Submit a record without waiting. If it is lost, that is logged."""
    try:
        writer.submit((record,)).add_done_callback(_look)
    except RecordLost:
        log.warning(_UNSEEN)


def _look(future: "asyncio.Future[None]") -> None:
    if not future.cancelled() and future.exception() is not None:
        log.warning(_UNSEEN)
