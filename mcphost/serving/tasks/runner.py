"""Run the rounds of tasks in this process.

The task's row is the truth. Whatever wakes this module, a change, a freed place or the regular look,
it reads the row, and takes the task by compare-and-set: a wake-up that is lost or comes twice does no
harm.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.audit.records import new_id
from mcphost.audit.writer.writer import RecordLostError
from mcphost.calls.ownership import Lease, SupersededError
from mcphost.feed.loop import ChangeNews
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.declarations import ABSENT
from mcphost.observability import counters
from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    UNAVAILABLE,
    ProtocolError,
    invalid_params,
    shown,
    unavailable,
)
from mcphost.protocol.legacy.tasks import TaskProgress
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import lookups, request_state, revocation, sealing, shutdown
from mcphost.serving.context import Incoming, Resumed, TakenAnswer
from mcphost.serving.database import DATABASE_ERRORS, in_database
from mcphost.serving.events import Relay
from mcphost.serving.execution import audit_records, rounds, stored_requests, stored_tasks
from mcphost.serving.execution.calls import RoundPorts, turn_of
from mcphost.serving.execution.deliveries import state_context
from mcphost.serving.execution.links import warm
from mcphost.serving.execution.owned_task import OwnedTask, Retries, running_tasks
from mcphost.serving.execution.stored_requests import TenantGoneError
from mcphost.serving.limits import InUse
from mcphost.serving.lookups import CallTarget
from mcphost.serving.options import options
from mcphost.serving.ports import NoStream
from mcphost.serving.request_state import InvalidStateError
from mcphost.tasks import listing, selectors, services
from mcphost.tasks.jobs import Places, hand_out
from mcphost.tasks.selectors import TaskRow
from mcphost.tasks.states import TaskState
from mcphost.vault.errors import VaultError

ELSEWHERE_SECONDS: Final = 1.0
"""How soon the job of a task is handed out again that a worker without its function has taken."""
CANCELLED_REASON: Final = "the task was cancelled"

log = logging.getLogger(__name__)


class RestoredTask(NamedTuple):
    """A stored request, and the state from which the next round resumes.

    The request's principal is as it was; `now` is as it is, None if it has lost its access.
    `progress` is what earlier rounds have reported.
    """

    incoming: Incoming
    now: Principal | None
    resumed: Resumed
    progress: TaskProgress | None


class Runner:
    """Takes tasks and runs their rounds. On the event loop, except `put`, `find_tasks` and `on_…`."""

    def __init__(self) -> None:
        self._places = InUse()
        self._occupied: dict[UUID, Sequence[str]] = {}
        self._relay: Relay[UUID | None] = Relay(self._begin_all)
        self._cancelled: Relay[UUID] = Relay(self._cancel_all)
        self._has_waiting = False
        self._beginning: set[UUID] = set()
        self._absent: set[tuple[UUID, str]] = set()

    def start(self) -> None:
        """Run tasks, on the running loop."""
        self._relay.start()
        self._cancelled.start()
        running_tasks.freed = self._freed

    async def stop(self) -> None:
        """Begin no more rounds. Those that run go on."""
        await self._relay.stop()
        await self._cancelled.stop()

    def find_tasks(self) -> None:
        """Find tasks that wait for a process. In a database thread, every few seconds."""
        services.expire_questions()
        counters.tasks_taken_over.add(services.free_orphans(heartbeat.id))
        services.ready()
        self._absent.clear()
        self._relay.put(None)
        _measure()

    def on_due(self, news: ChangeNews) -> None:
        """A task may wait for a process. From the change log's thread."""
        self._relay.put(UUID(news.object_id))

    def on_cancelled(self, news: ChangeNews) -> None:
        """A task was cancelled. From the change log's thread."""
        self._cancelled.put(UUID(news.object_id))

    def on_tools(self, news: ChangeNews) -> None:
        """A tenant's tools were changed. From the change log's thread."""
        if self._absent:
            self.on_gap()

    def on_gap(self) -> None:
        """Changes may have been missed, or other processes have other functions. From the change log's
        thread."""
        self._absent.clear()
        self._relay.put(None)

    def _freed(self, owned_task: OwnedTask) -> None:
        places = self._occupied.pop(owned_task.lease.id, None)
        if places is not None:
            self._places.give_back(places)
        if owned_task.parked:
            self._relay.put(owned_task.lease.id)
        if owned_task.again_in is not None:
            asyncio.get_running_loop().call_later(owned_task.again_in, self._relay.put, None)
        if (
            self._has_waiting or options().tasks.queued
        ):  # another task waits for the place, or may do
            self._has_waiting = False
            self._relay.put(None)

    async def _cancel_all(self, tasks: Sequence[UUID]) -> None:
        for task in tasks:
            running_tasks.cancel(task, CANCELLED_REASON)

    async def run(self, task: UUID) -> None:
        """Run the next round of a task, if one waits for a process, and wait until it is over.

        A cancellation ends the wait, not the round.
        """
        await self._begin(task)
        await running_tasks.over(task)

    async def _begin_all(self, woken: Sequence[UUID | None]) -> None:
        limits = options().tasks
        tasks = dict.fromkeys(task for task in woken if task is not None)
        if limits.queued:
            places = Places(limits.rounds_per_tenant, limits.rounds_per_tool)
            await in_database(hand_out, tuple(tasks), places)
            return
        if None in woken and not shutdown.draining():
            absent = frozenset(self._absent)
            due = await in_database(selectors.due, limits.rounds_per_tenant, limits.rounds, absent)
            # There may be more than these: look again when a place is free.
            self._has_waiting |= len(due) >= min(limits.rounds_per_tenant, limits.rounds)
            tasks |= dict.fromkeys(due)
        for task in tasks:
            try:
                await self._begin(task)
            except (*DATABASE_ERRORS, RecordLostError):
                raise
            except Exception:  # the next look finds it again; the others do not wait for that
                log.exception("a round of a task could not begin")

    async def _begin(self, task: UUID) -> None:
        """Begin the next round of a task here, unless that has just been done by another wake-up."""
        if task in self._beginning or task in running_tasks or shutdown.draining():
            return
        self._beginning.add(task)
        try:
            await self._begin_alone(task)
        finally:
            self._beginning.remove(task)

    async def _begin_alone(self, task: UUID) -> None:
        row = await in_database(selectors.find, task)
        if row is None or row.state is not TaskState.WORKING or row.open or row.is_owned:
            return
        absent = await _absent(row)
        if absent is not None and absent.code == UNAVAILABLE:
            self._leave_to_others(row)
            return
        places = self._places_of(row)
        if places is None:
            self._has_waiting = True
            await in_database(services.make_due, (task,))
            return
        lease = Lease(row.id, row.tenant, heartbeat.id, row.epoch + 1)
        until = row.expires_at.timestamp()
        try:
            restored = await _restored(row)
        except (SealError, VaultError, InvalidStateError, TenantGoneError) as error:
            stored_tasks.log_unreadable(row, error)
            await _give_up(OwnedTask(row.call, _no_caller(row), lease, until))
            return
        if shutdown.draining():
            return
        principal = restored.now or restored.incoming.principal
        owned_task = OwnedTask(row.call, principal, lease, until, row.questions, restored.progress)
        self._places.take(places)
        self._occupied[task] = places
        refused = _refusal(row, restored) or absent
        if refused is not None:  # a loss of access must not cut off what ends the task for it
            work = _refuse(row, owned_task, restored.incoming, refused)
            running_tasks.attend(owned_task, work, may_be_revoked=False)
            return
        running_tasks.attend(owned_task, _run_round(row, owned_task, restored, principal))

    def _leave_to_others(self, row: TaskRow) -> None:
        """Leave a task due for a process that has the function of its tool, and look for others."""
        self._absent.add((row.tenant, row.tool))
        if options().tasks.queued:  # its job went to the wrong worker: hand it out again
            asyncio.get_running_loop().call_later(ELSEWHERE_SECONDS, self._relay.put, row.id)
        else:
            self._relay.put(None)

    def _places_of(self, row: TaskRow) -> Sequence[str] | None:
        """The places that a round of this task takes; None if one of them is not free."""
        limits = options().tasks
        place_limits = {
            "": limits.rounds,
            f"{row.tenant}": limits.rounds_per_tenant,
            f"{row.tenant} {row.tool}": limits.rounds_per_tool,
        }
        full = any(self._places[key] >= limit for key, limit in place_limits.items())
        return None if full else tuple(place_limits)


def _measure() -> None:
    now = listing.count_working()
    counters.tasks_working.value = now.working
    counters.tasks_waiting.value = now.waiting
    counters.tasks_due.value = now.due


async def _restored(row: TaskRow) -> RestoredTask:
    """Read the task. Raises SealError, VaultError, InvalidStateError, TenantGoneError: it can
    never go on."""
    tenant = await lookups.tenant(row.tenant)
    if tenant is None:
        raise TenantGoneError
    written = await stored_tasks.unseal(row.tenant, row.id, stored_tasks.REQUEST, row.request)
    incoming = stored_requests.read(written, tenant)
    incoming = incoming._replace(http_request_id=new_id())  # records distinguish the rounds
    now = await revocation.current(incoming.principal, tenant)
    return RestoredTask(incoming, now, await _resumed(row), await stored_tasks.read_progress(row))


async def _resumed(row: TaskRow) -> Resumed:
    context = state_context(row.call)
    state = request_state.read(
        await sealing.unseal(Purpose.ROW, row.tenant, row.journal, context=context)
    )
    number = state.round + 1
    settled = [
        question
        for question in row.questions
        if question.is_settled and question.answer_round in (None, number)
    ]
    answers = [
        TakenAnswer(
            question.author_key,
            question.method,
            await stored_tasks.read_answer(row, question, state.version),
        )
        for question in settled
    ]
    journal = state.journal
    for answer in answers:
        journal = journal.with_answer(answer.key, answer.answer)
    return Resumed(state, journal, tuple(answers), key_id(row.journal))


async def _absent(row: TaskRow) -> ProtocolError | None:
    """Why this process cannot run the tool of a task, although it is published: UNAVAILABLE while
    another one can, or may come. None if it can, and if the tool is not published."""
    offering = await lookups.offering(row.tenant)
    tool = offering.tools_by_name.get(row.tool)
    if tool is None:
        return lookups.absent(offering, CallTarget("tools/call", row.tool), None)
    return unavailable(ABSENT) if tool.missing_function else None


def _refusal(row: TaskRow, restored: RestoredTask) -> ProtocolError | None:
    """Why the next round of a task may not run, if so."""
    if row.attempts >= rounds.MAX_ATTEMPTS:
        return ProtocolError(INTERNAL_ERROR, rounds.GIVEN_UP)
    return revocation.refusal(restored.incoming.principal, restored.now)


async def _run_round(
    row: TaskRow, owned_task: OwnedTask, restored: RestoredTask, now: Principal
) -> None:
    """Run the next round of a task, with the rights that its caller has now."""
    incoming, _, resumed, _ = restored
    tool = lookups.tool(await lookups.offering(row.tenant), row.tool, now.scopes)
    if tool is None:
        unknown = invalid_params(f"Unknown tool: {shown(row.tool)}")
        await _refuse(row, owned_task, incoming, unknown)
        return
    owned_task.resume(resumed)
    owned_task.retries = Retries(tool.retries, row.retries)
    arguments = incoming.exchange.params.get("arguments") or {}
    turn = turn_of(
        incoming._replace(principal=now, owned_call=owned_task), tool, row.tool, arguments
    )
    await warm(row.tenant)
    await rounds.run(turn, RoundPorts(turn, NoStream()))


async def _refuse(
    row: TaskRow, owned_task: OwnedTask, incoming: Incoming, error: ProtocolError
) -> None:
    """End a task whose next round may not run."""
    owned_task.round = row.round + 1
    await owned_task.start(())
    await owned_task.fail(
        error, (audit_records.task_refused(incoming, row.call, owned_task.round, error),)
    )


async def _give_up(owned_task: OwnedTask) -> None:
    """End a task that cannot be read."""
    with suppress(SupersededError):
        await owned_task.start(())
        await owned_task.fail(_unreadable())


def _unreadable() -> ProtocolError:
    return ProtocolError(INTERNAL_ERROR, stored_tasks.UNREADABLE)


def _no_caller(row: TaskRow) -> Principal:
    return Principal(PrincipalKind.ANONYMOUS, row.tenant)
