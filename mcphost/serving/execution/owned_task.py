"""The tasks that this process runs, by id: the state their rounds start from, the changes they commit, retries.

Questions and status messages are stored while a round runs, in order. The end of the round waits
for them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, NamedTuple
from uuid import UUID

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.calls.ownership import Lease, SupersededError
from mcphost.observability import counters
from mcphost.protocol.errors import INTERNAL_ERROR, OVER_LIMIT, UNAVAILABLE, ProtocolError
from mcphost.protocol.legacy.tasks import TaskProgress
from mcphost.runtime.call import Delivery, Principal
from mcphost.runtime.outcomes import Failed, FailureKind, InputRequest
from mcphost.sealing.tokens import Reason, SealError
from mcphost.serving import shutdown
from mcphost.serving.background import background
from mcphost.serving.context import FRESH, Resumed, RoundEnding
from mcphost.serving.database import commit_patiently
from mcphost.serving.execution import stored_tasks
from mcphost.serving.replies import Asking, Delivered, Handle, Refused, Reply
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import Phase
from mcphost.tasks import changes
from mcphost.tasks.selectors import QuestionRow
from mcphost.tasks.states import TRANSITIONS, TaskEvent, TaskState
from mcphost.vault.errors import VaultError

MAX_RETRY_SECONDS: Final = 300.0
"""The longest pause before a round that has failed runs again. The first is a second."""
RETRYING: Final = "It failed. Attempt {} of {} begins in {:g} s."
AGAIN_SECONDS: Final = 1.0
"""When a round is tried again that found no free thread."""
TOO_LARGE: Final = "The result is too large to be kept"
NOT_KEPT: Final = "The result could not be stored"

SUPERSEDED: Final = "another process runs the task, or it has ended"
EXPIRED: Final = "the task has expired"

log = logging.getLogger(__name__)


class Retries(NamedTuple):
    """How often the author of the tool lets a round run again that has failed, and how often it was."""

    allowed: int = 0
    done: int = 0


class OwnedTask:
    """Implements `serving.context.OwnedCall` for a task that this process has taken, or takes with `start`.

    `questions` are those of earlier rounds; `expires_at` is when the task does, in seconds since
    1970. `progress` is what an earlier round has reported. `again_in` is in how many seconds the same
    round runs again, once it has ended so. Only for the event loop's thread.

    It is also a `serving.revocation.Presence`: a round ends when its caller loses access.
    """

    delivery = Delivery.TASK
    uncertain = False
    movable = True

    def __init__(
        self,
        call: UUID,
        principal: Principal,
        lease: Lease,
        expires_at: float,
        questions: Sequence[QuestionRow] = (),
        progress: TaskProgress | None = None,
    ) -> None:
        self.call = call
        self.principal = principal
        self.lease = lease
        self.resumed = FRESH
        self.round = 1
        self.expires_at = expires_at
        self.parked = False
        self._work: asyncio.Task[None] | None = None
        self._refusal: ProtocolError | None = None
        self._answered = [question.id for question in questions if question.is_settled]
        self._keys = [question.author_key for question in questions]
        self.retries = Retries()
        self.again_in: float | None = None
        self._published: set[tuple[str, str]] = set()
        self._writing: asyncio.Task[None] | None = None
        self._unwritten: list[tuple[InputRequest, float]] = []
        self._message: str | None = None
        self._progress: TaskProgress | None = None
        self._progressed = progress
        self._ends: TaskState | None = None
        self._journal: Callable[[], Awaitable[str]] | None = None

    def close_stream(self) -> None:
        """A task has no stream."""

    def resume(self, resumed: Resumed) -> None:
        """Set the state from which the round resumes."""
        assert resumed.state is not None
        self.resumed = resumed
        self.round = resumed.state.round + 1

    def revoke(self, refusal: ProtocolError) -> None:
        """End the round, and the task with `refusal`."""
        self._refusal = refusal
        self.cancel(refusal.message)

    def cancel(self, reason: str) -> None:
        """End the round that runs.

        Not before its first step: an asyncio task that is cancelled before that runs nothing, and so
        would not clean up.
        """
        if self._work is not None:
            asyncio.get_running_loop().call_soon(self._work.cancel, reason)

    async def start(self, records: Sequence[Record]) -> None:
        condition = changes.start(self.lease, self.round, self._answered)
        if not await writer.submit_if(condition, records):
            raise SupersededError

    def publish(self, request: InputRequest, expires_at: float) -> None:
        """Store a question while the round goes on. Returns at once."""
        self._unwritten.append((request, min(self.expires_at, expires_at)))
        self._write()

    def remember(self, journal: Callable[[], Awaitable[str]]) -> None:
        """Store the journal that `journal` seals. Returns at once."""
        self._journal = journal
        self._write()

    async def store_journal(self, journal: Callable[[], Awaitable[str]]) -> None:
        """Store the journal that `journal` seals, so that no step of it runs again. Never raises."""
        self.remember(journal)
        if self._writing is not None:
            await asyncio.shield(self._writing)

    def describe(self, message: str | None, progress: TaskProgress | None = None) -> None:
        """Store a status message, and progress above that of before. Returns at once; of several in
        a row, the last is stored."""
        if message is not None:
            self._message = message
        last = self._progressed
        if progress is not None and (last is None or progress.progress > last.progress):
            self._progress = self._progressed = progress
        self._write()

    def _write(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = background.start(self._written(), copy_context())

    async def _written(self) -> None:
        """Write what is unwritten. What cannot be written now is written with the round's end."""
        try:
            while self._unwritten or self._described or self._journal is not None:
                await self._write_some()
        except (RecordLostError, RecordRefusedError, SealError, VaultError) as error:
            log.warning("a task's progress could not be stored: %r", error, extra=self._facts)

    @property
    def _described(self) -> bool:
        return not (self._message is None and self._progress is None)

    async def _write_some(self) -> None:
        if self._described:
            await self._write_description()
        journal, self._journal = self._journal, None
        if journal is not None:
            checkpoint = changes.checkpoint(self.lease, await journal())
            # While the database is away, the code after the step waits.
            if not await commit_patiently(checkpoint):
                self.cancel(SUPERSEDED)  # so that no further step runs here, too
        for unwritten in tuple(self._unwritten):
            request, until = unwritten
            rows = await stored_tasks.prepare_questions(
                self.lease.tenant, [request], self._keys, until
            )
            if await writer.submit_if(changes.publish(self.lease, self.round, rows)):
                self._keys.append(request.key)
                self._published.add((request.key, request.digest))
            self._unwritten.remove(unwritten)

    async def _write_description(self) -> None:
        text, self._message = self._message, None
        progress, self._progress = self._progress, None
        message = None if text is None else await stored_tasks.seal_message(self.lease, text)
        sealed = (
            None if progress is None else await stored_tasks.seal_progress(self.lease, progress)
        )
        await writer.submit_if(changes.describe(self.lease, message, sealed))

    async def conclude(self, delivered: Delivered, ending: RoundEnding) -> None:
        """End the round. What it has done is recorded even if the task has been cancelled.

        Raises SupersededError if the task is not this process's any more.
        """
        if self._writing is not None:
            await asyncio.shield(self._writing)
        condition = await self._ending(delivered)
        if not await commit_patiently(condition, ending.records):
            await writer.submit(ending.records)
            raise SupersededError
        self._count_end()
        if self.again_in is not None:
            counters.task_rounds_retried.add()
        self.parked = isinstance(delivered.reply, Asking)

    async def fail(self, error: ProtocolError, records: Sequence[Record] = ()) -> None:
        """End the task with an error."""
        if await commit_patiently(await self._failed(Refused(error)), records):
            self._count_end()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the asyncio task of the round. The round ends when the task expires: its result could
        not be fetched any more."""
        loop = asyncio.get_running_loop()
        self._work = background.start(work, copy_context())
        timer = loop.call_later(max(0.0, self.expires_at - time.time()), self.cancel, EXPIRED)
        self._work.add_done_callback(lambda _: timer.cancel())

    async def over(self) -> None:
        """Wait until the round is over."""
        if self._work is not None:
            await asyncio.wait([self._work])

    async def complete_round(self, work: Awaitable[object]) -> None:
        """Wait for the round, and end the task, or free it, if the round could not."""
        try:
            await work
        except SupersededError:
            log.info("a task is not this process's any more", extra=self._facts)
        except asyncio.CancelledError:
            await self._cut_off()
        except ProtocolError as error:
            if error.code == UNAVAILABLE:
                await self._again()
            else:
                await self.fail(error)
        except Exception:
            log.exception("a task's round failed", extra=self._facts)
            await self.fail(ProtocolError(INTERNAL_ERROR, "Internal error"))

    async def _cut_off(self) -> None:
        """Go on after a round was cancelled: by its client, by a loss of access, or at shutdown."""
        if shutdown.phase() is Phase.CUT:
            await self._again()
        elif self._refusal is not None:
            await self.fail(self._refusal)

    async def _again(self) -> None:
        """Let any process run the same round again."""
        with suppress(RecordLostError, RecordRefusedError):
            await commit_patiently(changes.release(self.lease, AGAIN_SECONDS))

    async def _ending(self, delivered: Delivered) -> Condition:
        reply = delivered.reply
        if self._may_run_again(delivered):
            return await self._retried()
        if isinstance(reply, Asking):
            return await self._parked(reply, delivered)
        if isinstance(reply, Refused) and reply.error.code == OVER_LIMIT:  # no thread was free
            return changes.release(self.lease, AGAIN_SECONDS)
        return await self._finished(reply)

    def _may_run_again(self, delivered: Delivered) -> bool:
        """Whether the round has failed unexpectedly, and the author lets it run again."""
        outcome = delivered.outcome
        crashed = isinstance(outcome, Failed) and outcome.error.kind is FailureKind.CRASHED
        return crashed and self.retries.done < self.retries.allowed

    async def _retried(self) -> Condition:
        allowed, done = self.retries
        self.again_in = min(2.0**done, MAX_RETRY_SECONDS)
        message = ""
        with suppress(SealError, VaultError):
            text = RETRYING.format(done + 2, allowed + 1, self.again_in)
            message = await stored_tasks.seal_message(self.lease, text)
        return changes.retry(self.lease, self.again_in, message)

    async def _parked(self, reply: Asking, delivered: Delivered) -> Condition:
        assert delivered.sealed is not None
        state = delivered.sealed.state
        requests = [
            InputRequest(
                key, request["method"], request["params"], state.input_requests[key].question
            )
            for key, request in reply.requests.items()
            if (key, state.input_requests[key].question) not in self._published
        ]
        rows = await stored_tasks.prepare_questions(
            self.lease.tenant, requests, self._keys, min(state.expires_at, self.expires_at)
        )
        seconds = None if reply.requests else 0.0
        return changes.park(self.lease, reply.state, self.round, rows, seconds)

    async def _finished(self, reply: Reply) -> Condition:
        assert not isinstance(reply, Asking | Handle)
        if isinstance(reply, Refused):
            return await self._failed(reply)
        try:
            outcome = await stored_tasks.seal_outcome(self.lease, reply)
        except (SealError, VaultError) as error:
            log.error("the result of a task cannot be kept: %r", error, extra=self._facts)
            return await self._failed(Refused(ProtocolError(INTERNAL_ERROR, _unkept(error))))
        return self._end(TaskEvent.RESULT, outcome)

    async def _failed(self, reply: Refused) -> Condition:
        """The end with an error. Without keys it cannot be stored, and the task ends all the same."""
        outcome = message = ""
        with suppress(SealError, VaultError):
            outcome = await stored_tasks.seal_outcome(self.lease, reply)
            message = await stored_tasks.seal_message(self.lease, reply.error.message)
        return self._end(TaskEvent.ERROR, outcome, message)

    def _end(self, event: TaskEvent, outcome: str, message: str = "") -> Condition:
        self._ends = TRANSITIONS[TaskState.WORKING, event]
        return changes.finish(self.lease, event, outcome, message)

    def _count_end(self) -> None:
        if self._ends is not None:
            counters.tasks_ended.add(self._ends)

    @property
    def _facts(self) -> dict[str, Any]:
        return {"call": str(self.call)}


def _unkept(error: SealError | VaultError) -> str:
    large = isinstance(error, SealError) and error.reason is Reason.TOO_LARGE
    return TOO_LARGE if large else NOT_KEPT


class RunningTasks:
    """The tasks that this process runs, by id. Only for the event loop's thread.

    `freed` is called when a round is over: perhaps another can begin, or the next of the same task.
    """

    def __init__(self) -> None:
        self._by_id: dict[UUID, OwnedTask] = {}
        self.freed: Callable[[OwnedTask], None] = _unheard

    def __contains__(self, task: UUID) -> bool:
        return task in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def attend(
        self,
        owned_task: OwnedTask,
        work: Coroutine[Any, Any, object],
        *,
        may_be_revoked: bool = True,
    ) -> None:
        """Run a round of a task: `work`. Nothing that happens to it leaves the task without a way on.

        It ends when its caller loses access, if it `may_be_revoked`.
        """
        self._by_id[owned_task.lease.id] = owned_task
        if may_be_revoked:
            presences.register(owned_task)
        owned_task.begin(self._attended(owned_task, work))

    async def _attended(self, owned_task: OwnedTask, work: Coroutine[Any, Any, object]) -> None:
        try:
            await owned_task.complete_round(work)
        finally:
            presences.unregister(owned_task)
            self._by_id.pop(owned_task.lease.id, None)
            self.freed(owned_task)

    async def over(self, task: UUID) -> None:
        """Wait until the round of a task is over, if it runs here."""
        owned_task = self._by_id.get(task)
        if owned_task is not None:
            await owned_task.over()

    async def all_over(self) -> None:
        """Wait until no round of a task runs here."""
        while self._by_id:
            await next(iter(self._by_id.values())).over()

    def cancel(self, task: UUID, reason: str) -> None:
        """Cancel the round of a task, if it runs here."""
        owned_task = self._by_id.get(task)
        if owned_task is not None:
            owned_task.cancel(reason)


def _unheard(_: OwnedTask) -> None:
    return None


running_tasks: Final = RunningTasks()
