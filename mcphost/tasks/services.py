"""Periodic and rare changes of tasks, each in a transaction of its own."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from secrets import token_hex
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls.ownership import NO_OWNER, free, of_dead
from mcphost.calls.states import QuestionState
from mcphost.calls.streams import PRUNED_AT_ONCE
from mcphost.feed import nodes
from mcphost.feed.services import announce, announce_all
from mcphost.observability import counters
from mcphost.tasks.changes import CANCELLED, CHANGED, DUE
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.selectors import HAS_OPEN_QUESTION, QuestionRow
from mcphost.tasks.states import TRANSITIONS, TaskEvent, TaskState

FIRST_RETRY_PAUSE = timedelta(seconds=1)
"""How long a task waits after the first process that ran it has died; then twice as long, and so on."""
FREED_AT_ONCE = 200
_OF_WORKING = Exists(Task.objects.filter(id=OuterRef("task"), state=TaskState.WORKING))


def make_due(tasks: Collection[UUID]) -> None:
    """Let the tasks wait for a process with room, if they wait for nothing else."""
    _ready().filter(id__in=tasks).update(due_at=Now())


def carry(task: UUID, call: UUID) -> None:
    """Let a call of a session send the task's questions, unless a later call may. Ids of calls
    are in the order of time."""
    before = Q(carrier=None) | Q(carrier__lt=call)
    Task.objects.filter(before, id=task).update(carrier=call)


def carry_instead(task: UUID, call: UUID | None, of: UUID | None) -> bool:
    """Let a call send the task's questions instead of one that does not; False if that has changed.

    With None instead of a call, the next that can send them may.
    """
    return bool(Task.objects.filter(id=task, carrier=of).update(carrier=call))


@transaction.atomic
def send(questions: Sequence[QuestionRow], call: UUID) -> bool:
    """Let a call send these questions; False, and no change, if one of them has another sender now."""
    for question in questions:
        rows = TaskQuestion.objects.filter(
            id=question.id, sender=question.sender, state=QuestionState.OPEN
        )
        if not rows.update(sender=call):
            transaction.set_rollback(True)
            return False
    return True


def ready() -> int:
    """Make tasks due whose answers are all there, but that no process has begun; return how many."""
    return _ready().update(due_at=Now())


@transaction.atomic
def expire_questions() -> int:
    """Expire open questions whose time is over; return how many."""
    late = TaskQuestion.objects.filter(state=QuestionState.OPEN, expires_at__lte=Now())
    expired = list(late.values_list("id", "task")[:PRUNED_AT_ONCE])
    late.filter(id__in=[id for id, _ in expired]).update(
        state=QuestionState.EXPIRED, settled_at=Now()
    )
    tasks = Task.objects.filter(id__in={task for _, task in expired}).values_list("tenant", "id")
    if about := [(tenant, task.hex) for tenant, task in tasks]:
        announce_all(CHANGED, about)
    return len(expired)


def free_orphans(process: UUID) -> int:
    """Free the tasks of dead processes, as seen by `process`, which is alive; return how many."""
    orphans = Task.objects.filter(of_dead(process), state=TaskState.WORKING)
    freed = 0
    for task, owner, attempts in orphans.values_list("id", "owner", "attempts")[:FREED_AT_ONCE]:
        due_at = timezone.now() + FIRST_RETRY_PAUSE * 2 ** min(max(attempts - 1, 0), 10)
        orphan = orphans.filter(id=task, owner=owner)
        freed += orphan.update(owner=NO_OWNER, due_at=due_at)
    return freed


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired tasks with their questions; return how many.

    Also deletes questions of tasks that have ended. On PostgreSQL one is left if it was answered in the
    very commit that ended its task: a statement cannot change a row and delete it.
    """
    over = Task.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    expired = list(over.values_list("id", "tenant")[:PRUNED_AT_ONCE])
    ids = [id for id, _ in expired]
    Task.objects.filter(id__in=ids).delete()  # waits for a round that is just storing questions
    TaskQuestion.objects.filter(~_OF_WORKING).delete()
    if expired:
        announce_all(CHANGED, [(tenant, id.hex) for id, tenant in expired])
    return len(ids)


@transaction.atomic
def cancel(task: UUID, tenant: UUID, message: str = "") -> bool:
    """Cancel a task, whichever process runs it; False if there is none that works.

    `message` is its last status message, sealed.
    """
    working_task = Task.objects.filter(id=task, tenant=tenant, state=TaskState.WORKING)
    state = TRANSITIONS[TaskState.WORKING, TaskEvent.CANCEL]
    erased = {"request": "", "journal": "", "message": message, "progress": ""}
    if not working_task.update(
        state=state, updated_at=Now(), nonce=token_hex(8), owner=NO_OWNER, due_at=None, **erased
    ):
        return False
    TaskQuestion.objects.filter(task=task).delete()
    for change_name in (CHANGED, CANCELLED):
        announce(change_name, tenant=tenant, object_id=task.hex)
    transaction.on_commit(lambda: counters.tasks_ended.add(state), robust=True)
    return True


@transaction.atomic
def retry(task: UUID, tenant: UUID) -> bool:
    """Run the next round of a task now, with all its attempts again; False if it cannot run now.

    It can while the task works, no living process runs it, and no question of it is open.
    """
    if not _idle(task, tenant).update(owner=NO_OWNER, due_at=Now(), attempts=0, retries=0):
        return False
    announce(DUE, tenant=tenant, object_id=task.hex)
    return True


def may_retry(task: UUID, tenant: UUID) -> bool:
    """Whether `retry` would let the task run."""
    return _idle(task, tenant).exists()


def _idle(task: UUID, tenant: UUID) -> "QuerySet[Task]":
    working = Task.objects.filter(id=task, tenant=tenant, state=TaskState.WORKING)
    return working.filter(_startable(), expires_at__gt=Now())


def _ready() -> "QuerySet[Task]":
    waiting = Task.objects.filter(state=TaskState.WORKING, owner=NO_OWNER, due_at=None)
    return waiting.filter(~HAS_OPEN_QUESTION)


def _startable() -> Q:
    """That a task has no open question, and no living process runs it.

    Where one process serves, it writes no heartbeats, so its tasks are never those of a dead one:
    it frees what its predecessor left by itself.
    """
    startable = Q(owner=NO_OWNER) if settings.MCPHOST_ALONE else free(nodes.heartbeat.id)
    return startable & ~Q(HAS_OPEN_QUESTION)
