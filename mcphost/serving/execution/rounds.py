"""Run one round of a call.

A tool that is not read-only runs only after its `started` entry is committed; no reply is sent
before its `finished` entry is. So every reply is recorded, and a round that cannot be recorded does
not run. `commits` commits both.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeVar, assert_never

import orjson

from mcphost.audit.records import Record
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.calls.ownership import SupersededError
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.declarations import ABSENT
from mcphost.observability import counters, tracing
from mcphost.observability.availability import availability
from mcphost.observability.tracing import Run, Tracer
from mcphost.protocol.errors import unavailable
from mcphost.protocol.tasks import TaskView
from mcphost.runtime.call import Delivery
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
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import TaskSupport
from mcphost.sealing.tokens import SealError
from mcphost.serving import limits, load, replies, shutdown
from mcphost.serving.context import OwnedCall, RoundEnding, TaskMode, Turn
from mcphost.serving.database import in_database
from mcphost.serving.execution import (
    audit_records,
    cancelled_calls,
    claims,
    commits,
    resume,
    state_parts,
    stored_tasks,
)
from mcphost.serving.execution.cancelled_calls import CANCELLED
from mcphost.serving.execution.claims import ClaimRefused, Finished, WantedClaim, Won
from mcphost.serving.execution.deliveries import CANNOT_ASK, answer_by, deliver, journal_before
from mcphost.serving.execution.owned_task import OwnedTask, Retries, running_tasks
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, CreatedTask, Delivered, Handle, Reply
from mcphost.serving.request_state import InvalidStateError
from mcphost.tasks import selectors as tasks
from mcphost.vault.errors import VaultError

Measured = tuple[Outcome, int]
Measuring = Coroutine[Any, Any, Measured]
Ran = tuple[Delivered, tuple[Record, ...]]
"""The reply of a round, and the records to commit before it is sent."""

T = TypeVar("T")

MAX_ATTEMPTS = 5
"""How many processes may stop while they run one round that any process may take, before it fails."""
GIVEN_UP = "The server stopped several times while this ran"

log = logging.getLogger(__name__)


class Running(NamedTuple):
    """A round that runs, and when it began (`time.perf_counter`)."""

    work: Awaitable[Measured]
    began: float


class DeferrablePorts(Ports, Protocol):
    """The ports of a round whose call may become a task while the round runs."""

    def journal_so_far(self) -> Journal | None:
        """The journal with the steps that this round has recorded; None if it has none, or since the
        last call of this method."""

    def become_task(self, task: OwnedTask) -> None:
        """From now on the round is that of a task, whose journal has what `journal_so_far` returned."""


async def run(turn: Turn, ports: DeferrablePorts) -> Reply:
    """Run the round and commit its records: input responses before it runs, input requests before
    they are sent.

    While the database is unreachable no round starts. A running round waits at its next commit;
    that wait does not count towards its time limit.

    Raises ProtocolError (UNAVAILABLE) when the round cannot be recorded. A cancelled round is
    recorded as such, and no request waits for that.
    """
    if availability.unreachable or not writer.is_ready():
        await commits.check()
    if turn.incoming.owned_call is not None:
        return await _run_owned(turn, ports, turn.incoming.owned_call)
    if turn.resumed.state is not None:
        resumed = await _resume(turn, ports)
        if not isinstance(resumed, Turn):
            return resumed
        turn = resumed
    before = () if turn.task.at_once and not turn.resumed.responses else audit_records.before(turn)
    if before:
        await commits.begin(turn, writer.submit(before))
    delivered, after = await _ran(turn, ports)
    try:  # not `commits.committed`: every call would pay for it
        if delivered.creation is None:
            await writer.submit(after)
        else:
            delivered = await stored_tasks.commit(turn.call, delivered, after)
    except (RecordLostError, RecordRefusedError) as error:
        raise commits.error_for(error, ended=turn) from None
    if turn.resumed.carried:
        await state_parts.end(turn, delivered)
    return delivered.reply


async def _resume(turn: Turn, ports: DeferrablePorts) -> Turn | Reply:
    """The reply of a round that is claimed, or of a cancelled call; else the turn to run. Raises
    ProtocolError."""
    cancelled = await cancelled_reply(turn)
    if cancelled is not None:
        return cancelled
    if turn.is_claimed and turn.resumed.goes_on:
        return await _run_claimed(turn, ports)
    # Further responses to what was answered would be refused, and the call would seem to wait.
    if turn.is_claimed and await claims.is_claimed(wanted_claim(turn)):
        return await refused_reply(turn, "answered")
    return await _whole(turn)


async def run_unrecorded(turn: Turn, ports: Ports) -> Mapping[str, Any]:
    """Run a round without a record, because it changes nothing and discloses next to nothing.

    It must not request input. Raises ProtocolError for any outcome that is not a result.
    """
    work = _outcome(turn, ports)
    if tracing.tracer is not None:
        work = _in_span(tracing.tracer, turn, work)
    outcome, _ = await work
    if isinstance(outcome, InputRequired | Yielded | Deferred):
        outcome = Failed(Failure(FailureKind.CRASHED, CANNOT_ASK))
    if isinstance(outcome, Failed):
        _explain(turn, outcome.error)
    reply = (await deliver(turn, outcome)).reply
    return replies.finish(reply, {})


async def run_won(turn: Turn, ports: DeferrablePorts, won: Won) -> Reply:
    """Run a round that this process has claimed, and store its reply with the claim. Raises
    ProtocolError."""
    try:
        delivered, after = await _ran_won(turn, ports, won)
        reply = replies.write(delivered.reply)
    except BaseException:
        claims.release_without_waiting(won)
        raise
    if _found_no_thread(delivered.outcome):
        await claims.release(won)
        await commits.committed(writer.submit(after), turn)
        return delivered.reply
    try:
        await commits.committed(claims.conclude(won, reply, after), turn)
    except SupersededError:
        raise unavailable("Another process has taken this call over") from None
    await state_parts.end(turn, delivered)
    return delivered.reply


async def cancelled_reply(turn: Turn) -> Reply | None:
    """The reply to a request that resumes a cancelled call, which is recorded; else None. Raises
    ProtocolError."""
    cancelled = await cancelled_calls.reply_of(turn)
    if cancelled is not None:
        await commits.refusal(turn, CANCELLED, turn.call.id)
    return cancelled


async def refused_reply(turn: Turn, reason: str) -> Reply:
    """The reply to a request whose state is not accepted any more, which is recorded: there is one only
    if its call was cancelled a moment ago. Raises ProtocolError, as for any invalid state."""
    call = turn.call
    why = await cancelled_calls.reason_of(call.id, call.tenant)
    await commits.refusal(turn, reason if why is None else CANCELLED, call.id)
    if why is None:
        raise resume.invalid_state()
    return cancelled_calls.reply_for(call.method, call.target, why)


def wanted_claim(turn: Turn) -> WantedClaim:
    """What a round is claimed by. Of a call's first round only one that is left to another process is."""
    now, call, state = time.time(), turn.call, turn.resumed.state
    until = answer_by(turn) if state is None else state.expires_at
    remaining = max(0.0, until - now)
    return WantedClaim(call.id, turn.resumed.claim, call.tenant, turn.resumed.digest, remaining)


async def _run_owned(turn: Turn, ports: DeferrablePorts, owned_call: OwnedCall) -> Reply:
    """Run a round of an owned call. Raises SupersededError if this process no longer owns it."""
    of_session = turn.call.delivery is Delivery.LEGACY and not turn.task.at_once
    absent = of_session and bool(turn.primitive.missing_function)
    if absent:
        _refuse_absent(turn, owned_call)
    before = () if turn.task.at_once else audit_records.before(turn)
    await commits.begin(turn, owned_call.start(before))
    if absent:
        return await _conclude(
            turn, owned_call, _ended(turn, Running(_absent_outcome(turn), time.perf_counter()))
        )
    return await _conclude(turn, owned_call, _ran(turn, ports))


def _refuse_absent(turn: Turn, owned_call: OwnedCall) -> None:
    """Refuse a session's call whose function only other processes have, if its client may simply repeat
    it, or could not follow it there. Raises ProtocolError (UNAVAILABLE)."""
    primitive, first = turn.primitive, turn.resumed.state is None
    repeatable = first and primitive.read_only and not primitive.requires
    if repeatable or (shutdown.draining() and not owned_call.movable):
        raise unavailable(ABSENT)


async def _absent_outcome(turn: Turn) -> Measured:
    """The outcome of a round that is left to a process that has the function."""
    return Yielded(turn.journal, load.ABSENT_FUNCTION), 0


async def _conclude(turn: Turn, owned_call: OwnedCall, ended: Awaitable[Ran]) -> Reply:
    delivered, after = await ended
    if delivered.creation is None:
        await commits.committed(owned_call.conclude(delivered, RoundEnding(after, turn)), turn)
    else:
        create = stored_tasks.commit(turn.call, delivered, after)
        delivered = await commits.committed(create, turn)
    return delivered.reply


async def _run_claimed(turn: Turn, ports: DeferrablePorts) -> Reply:
    """Run the round unless any process has run it. The same input responses get the same reply.

    Raises ProtocolError: INVALID_PARAMS, as for an invalid state, if other input responses were
    accepted before; UNAVAILABLE if the reply is not known yet.
    """
    claimed = await claims.claim(wanted_claim(turn), audit_records.before(turn))
    match claimed:
        case Won():
            return await run_won(turn, ports, claimed)
        case Finished(reply):
            if limits.may_be_recorded(f"{turn.call.id}:repeated"):
                await commits.committed(writer.submit((audit_records.repeated(turn),)))
            return replies.read(reply)
        case ClaimRefused(reason):
            return await refused_reply(turn, reason)
        case _:
            assert_never(claimed)


async def _ran_won(turn: Turn, ports: DeferrablePorts, won: Won) -> Ran:
    """Run the round, unless it has made its call a task before its process died."""
    if won.epoch > 1 and turn.primitive.task_support is not TaskSupport.NEVER:
        row = await in_database(tasks.of_call, turn.call.id)
        if row is not None:
            return _handed_over(turn, stored_tasks.created_view(row))
    turn = await _whole(turn)
    delivered, after = await _ran(turn, ports)
    if delivered.creation is None:
        return delivered, after
    return await commits.committed(stored_tasks.commit(turn.call, delivered, after), turn), ()


async def _whole(turn: Turn) -> Turn:
    """The turn with what its state does not hold. Raises ProtocolError as for any invalid state, if
    that is not there any more."""
    try:
        return await state_parts.load(turn)
    except InvalidStateError as error:
        await commits.refusal(turn, error.reason, error.call)
        raise resume.invalid_state() from None


def _found_no_thread(outcome: Outcome) -> bool:
    """Whether no thread was free, so that the client may retry.

    Steps of an async function may have run before. In a retry they run again, with the same
    idempotency keys.
    """
    return isinstance(outcome, Failed) and outcome.error.kind is FailureKind.OVERLOADED


async def _ran(turn: Turn, ports: DeferrablePorts) -> Ran:
    """Run the round; return its reply, and the records to commit before the reply is sent."""
    counters.rounds.add()
    work, began = _outcome(turn, ports), time.perf_counter()
    if tracing.tracer is not None:
        work = _in_span(tracing.tracer, turn, work)
    if turn.task is TaskMode.IF_SLOW:
        return await _ran_until_slow(turn, ports, work)
    return await _ended(turn, Running(work, began))


async def _ran_until_slow(turn: Turn, ports: DeferrablePorts, work: Measuring) -> Ran:
    """Run the round, and make its call a task if it is slow: the round then runs on, whatever happens to
    the request. If the request is cancelled before, this waits for the end of the round, as of any."""
    loop, moving = asyncio.get_running_loop(), None
    running = loop.create_task(work)
    round = Running(running, time.perf_counter())
    try:
        await asyncio.wait({running}, timeout=options().tasks.after_seconds)
        if not running.done():
            moving = loop.create_task(_become_task(turn, ports, round))
            created = await asyncio.shield(moving)
            if created is not None:
                return _handed_over(turn, created.view)
    except asyncio.CancelledError as end:
        if moving is None or await _result(moving) is None:
            await _cancel(running, end)
            _note_cancelled(turn, round, end)
        raise
    return await _ended(turn, round)


async def _result(work: "asyncio.Task[T]") -> T:
    """Wait for the result of work, also if the caller is cancelled meanwhile: it must know."""
    while not work.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({work})
    return work.result()


async def _cancel(work: "asyncio.Task[Any]", end: asyncio.CancelledError) -> None:
    """Cancel work, as often as the caller is cancelled, until it is over."""
    work.cancel(str(end))
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as again:
            work.cancel(str(again))


def _handed_over(turn: Turn, view: TaskView) -> Ran:
    """The reply of a round whose call is a task now."""
    return Delivered(Deferred(turn.journal), Handle(view)), ()


async def _become_task(turn: Turn, ports: DeferrablePorts, running: Running) -> CreatedTask | None:
    """Make a task of a call whose round runs; None if that is not possible now."""
    try:
        journal_so_far = turn._replace(journal=ports.journal_so_far() or turn.journal)
        created = await stored_tasks.create(
            turn, await journal_before(journal_so_far), owner=heartbeat.id
        )
        if not await stored_tasks.submit(created):
            return None
    except (RecordLostError, RecordRefusedError, SealError, VaultError) as error:
        log.warning("a slow call could not become a task: %r", error, extra=turn.facts)
        return None
    counters.tasks_created.add()
    until = created.view.created_at.timestamp() + (created.view.ttl_ms or 0) / 1000
    call = turn.call
    owned_task = OwnedTask(call.id, call.principal, created.lease, until)
    owned_task.round = call.round
    owned_task.retries = Retries(turn.primitive.retries)
    ports.become_task(owned_task)
    moved = turn._replace(
        incoming=turn.incoming._replace(owned_call=owned_task),
        call=call._replace(delivery=Delivery.TASK),
        task=TaskMode.NEVER,
    )
    running_tasks.attend(owned_task, _conclude(moved, owned_task, _ended(moved, running)))
    return created


async def _ended(turn: Turn, running: Running) -> Ran:
    """Wait for the round's outcome; return its reply, and the records to commit before that is sent."""
    kind, primitive_type = turn.primitive.kind, turn.primitive.primitive_type
    try:
        outcome, size = await running.work
        if type(outcome) is Complete:
            delivered = Delivered(outcome, Answered(outcome.result))
        else:
            delivered = await deliver(turn, outcome)
    except asyncio.CancelledError as end:
        _note_cancelled(turn, running, end)
        raise
    seconds = time.perf_counter() - running.began
    label = audit_records.outcome_label(delivered.outcome)
    counters.round_seconds.observe(seconds, kind, primitive_type, label)
    if isinstance(delivered.outcome, Failed):
        _explain(turn, delivered.outcome.error)
    return delivered, audit_records.after(turn, delivered, label, seconds, size)


def _note_cancelled(turn: Turn, running: Running, end: asyncio.CancelledError) -> None:
    seconds = time.perf_counter() - running.began
    kind, primitive_type = turn.primitive.kind, turn.primitive.primitive_type
    counters.round_seconds.observe(seconds, kind, primitive_type, audit_records.CANCELLED)
    commits.submit_without_waiting(audit_records.cancelled(turn, seconds, end))


async def _in_span(tracer: Tracer, turn: Turn, work: Measuring) -> Measured:
    """Run the round in a trace span that has its ending."""
    call, primitive = turn.call, turn.primitive
    run = Run(call.method, primitive.name, primitive.version, str(call.id), call.round)
    with tracer.round(run) as span:
        try:
            outcome, size = await work
        except asyncio.CancelledError:
            span.end_with(audit_records.CANCELLED, failed=False)
            raise
        label = audit_records.outcome_label(outcome)
        span.end_with(label, failed=label not in audit_records.SUCCESSFUL_ENDINGS)
        return outcome, size


async def _outcome(turn: Turn, ports: Ports) -> Measured:
    """Run the program; return its outcome and the size of its result as JSON.

    A result that cannot be encoded becomes a failure.
    """
    if turn.task.at_once:
        return Deferred(
            turn.journal, instead_of_refusal=turn.task is TaskMode.INSTEAD_OF_REFUSAL
        ), 0
    try:
        outcome = await turn.primitive.program.advance(turn.call, turn.journal, ports)
    except Exception as error:
        log.exception("a program raised instead of failing", extra=turn.facts)
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


_EXPECTED: Final = frozenset({FailureKind.TOOL_ERROR, FailureKind.CAPABILITY_MISSING})
"""Failures that the program or the client intends."""


def _explain(turn: Turn, error: Failure) -> None:
    facts = {**turn.facts, "kind": error.kind.value}
    if error.kind is FailureKind.INVALID_ARGUMENTS:  # the message names the caller's own fields
        log.info("a round's arguments did not fit the input schema", extra=facts)
        return
    level = logging.INFO if error.kind in _EXPECTED else logging.WARNING
    log.log(level, "a round failed: %s", error.detail or error.message, extra=facts)
