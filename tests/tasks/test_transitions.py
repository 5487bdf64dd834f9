"""Each event in each state of a task, and the status that clients of both revisions see afterwards."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import product
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import Writer
from mcphost.calls.ownership import NO_OWNER, Lease
from mcphost.calls.states import QuestionState
from mcphost.protocol import tasks as modern
from mcphost.protocol.legacy import tasks as legacy
from mcphost.protocol.tasks import TaskStatus, TaskView
from mcphost.tasks import changes, selectors, services
from mcphost.tasks.changes import NewQuestion
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.states import TRANSITIONS, TaskEvent, TaskState
from tests.audit.conftest import writer
from tests.calls.claim_rows import submit
from tests.tasks.rows import a_question, a_task

__all__ = ["writer"]

pytestmark = pytest.mark.django_db(transaction=True)

TENANT: Final = uuid4()
OWNER: Final = uuid4()
ERROR: Final = {"code": -32603, "message": "Internal error"}


class Row(NamedTuple):
    """A task in one of the states, with its question if it has one."""

    task: UUID
    question: UUID

    @property
    def lease(self) -> Lease:
        return Lease(self.task, TENANT, OWNER, 1)


class Shown(NamedTuple):
    """What clients of the two revisions see; None if the task is unknown."""

    modern: str | None
    legacy: str | None


STATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "due": {"epoch": 0, "due_at": timezone.now()},
    "runs": {"epoch": 1, "owner": OWNER},
    "runs and asks": {"epoch": 1, "owner": OWNER},
    "waits": {"epoch": 1},
    "answered": {"epoch": 0},
    "completed": {"epoch": 1, "state": TaskState.COMPLETED},
    "failed": {"epoch": 1, "state": TaskState.FAILED},
    "cancelled": {"epoch": 1, "state": TaskState.CANCELLED},
    "expired": {"epoch": 1, "owner": OWNER, "expires_at": timezone.now() - timedelta(days=1)},
}
QUESTIONS: Final = {
    "runs and asks": QuestionState.OPEN,
    "waits": QuestionState.OPEN,
    "answered": QuestionState.ANSWERED,
}
ENDS: Final = ("completed", "failed", "cancelled")


def _new() -> NewQuestion:
    until = timezone.now() + timedelta(minutes=5)
    return NewQuestion(uuid4(), "size", "size", "digest", "elicitation/create", "sealed", until)


CONDITIONS: Final[Mapping[str, Callable[[Row], Condition]]] = {
    "begin": lambda row: changes.start(row.lease, 2, ()),
    "checkpoint": lambda row: changes.checkpoint(row.lease, "journal"),
    "progress": lambda row: changes.describe(row.lease, "message"),
    "ask": lambda row: changes.publish(row.lease, 1, [_new()]),
    "end by asking": lambda row: changes.park(row.lease, "journal", 1, [_new()]),
    "end by leaving": lambda row: changes.park(row.lease, "journal", 1, (), 0.0),
    "release": lambda row: changes.release(row.lease, 0.0),
    "result": lambda row: changes.finish(row.lease, TaskEvent.RESULT, "outcome"),
    "error": lambda row: changes.finish(row.lease, TaskEvent.ERROR, "outcome"),
    "cancel": lambda row: changes.cancel(row.task, TENANT),
    "answer": lambda row: changes.answer(row.question, row.task, TENANT, "answer"),
}


def _crash(row: Row) -> None:
    """What `free_orphans` does to a task whose process has died."""
    theirs = Task.objects.filter(id=row.task, state=TaskState.WORKING, owner=OWNER)
    theirs.update(owner=NO_OWNER, due_at=timezone.now())


def _expire(row: Row) -> None:
    past = timezone.now() - timedelta(seconds=1)
    TaskQuestion.objects.filter(task=row.task).update(expires_at=past)
    services.expire_questions()


SERVICES: Final[Mapping[str, Callable[[Row], object]]] = {
    "operator's cancel": lambda row: services.cancel(row.task, TENANT),
    "retry": lambda row: services.retry(row.task, TENANT),
    "answers are all there": lambda row: services.ready(),
    "question expires": _expire,
    "crash": _crash,
    "prune": lambda row: services.prune(),
}
EVENTS: Final = (*CONDITIONS, *SERVICES)
ASKED: Final = TaskStatus.INPUT_REQUIRED
CHANGED: Final[Mapping[tuple[str, str], TaskStatus]] = {
    ("runs", "ask"): ASKED,
    ("runs", "end by asking"): ASKED,
    ("runs", "result"): TaskStatus.COMPLETED,
    ("runs and asks", "result"): TaskStatus.COMPLETED,
    ("runs", "error"): TaskStatus.FAILED,
    ("runs and asks", "error"): TaskStatus.FAILED,
    ("runs and asks", "answer"): TaskStatus.WORKING,
    ("waits", "answer"): TaskStatus.WORKING,
    ("runs and asks", "question expires"): TaskStatus.WORKING,
    ("waits", "question expires"): TaskStatus.WORKING,
    **{
        (state, event): TaskStatus.CANCELLED
        for state in ("due", "runs", "runs and asks", "waits", "answered")
        for event in ("cancel", "operator's cancel")
    },
}
"""What clients see after an event that changes what they see."""


def _make(state: str) -> Row:
    task = a_task(TENANT, **{"owner": NO_OWNER, **STATES[state]})
    asked = QUESTIONS.get(state)
    question = None if asked is None else a_question(task, state=asked)
    return Row(task.id, uuid4() if question is None else question.id)


def _status(row: Row) -> TaskStatus | None:
    found = selectors.find(row.task, TENANT)
    if found is None:
        return None
    return ASKED if found.open else TaskStatus(found.state)


def _shown(row: Row, *, tool_failed: bool = False) -> Shown:
    status = _status(row)
    if status is None:
        return Shown(None, None)
    now = timezone.now()
    result = {"content": [], "isError": tool_failed} if status == TaskStatus.COMPLETED else None
    view = TaskView(row.task.hex, status, now, now, 1, 1, result=result, error=ERROR)
    return Shown(modern.get_task_result(view, {})["status"], legacy.task(view)["status"])


def _all(row: Row) -> list[Any]:
    questions = TaskQuestion.objects.filter(task=row.task).order_by("id")
    return [*Task.objects.filter(id=row.task).values(), *questions.values()]


def _happens(event: str, row: Row, writer: Writer) -> None:
    if event in CONDITIONS:
        submit(writer, (CONDITIONS[event](row), []))
    else:
        SERVICES[event](row)


@pytest.mark.requirement("tasks.ended", "session-tasks.lifecycle")
@pytest.mark.parametrize("state", STATES)
def test_each_event_changes_each_task_state_as_the_table_says(writer: Writer, state: str) -> None:
    for event in EVENTS:
        TaskQuestion.objects.all().delete()
        Task.objects.all().delete()
        row = _make(state)
        before, rows = _status(row), _all(row)
        _happens(event, row, writer)
        after = CHANGED.get((state, event), before)
        assert _shown(row) == Shown(after, after), event
        failed = TaskStatus.FAILED if after == TaskStatus.COMPLETED else after
        assert _shown(row, tool_failed=True) == Shown(after, failed), event
        if state in ENDS:
            assert _all(row) == rows, event


@pytest.mark.parametrize("state", [each for each in STATES if each not in ENDS])
def test_every_unfinished_task_becomes_due_or_is_deleted_without_client_and_process(
    writer: Writer, state: str
) -> None:
    """Without its client and its process, each task comes to be due again, or is deleted."""
    row = _make(state)
    for event in ("crash", "question expires", "answers are all there", "prune"):
        _happens(event, row, writer)
    if state == "expired":
        assert _all(row) == []
        return
    assert selectors.due(10, 10) == (row.task,)
    task = Task.objects.get(id=row.task)
    lease = Lease(row.task, TENANT, uuid4(), task.epoch + 1)
    assert submit(writer, (changes.start(lease, 2, ()), [])) == [True]


def test_the_table_has_events_only_for_working_tasks() -> None:
    works = {(TaskState.WORKING, event) for event in TaskEvent}
    assert {pair for pair in product(TaskState, TaskEvent) if pair in TRANSITIONS} == works


TAKEN: Final = tuple(name for name in CONDITIONS if name not in ("begin", "cancel", "answer"))
"""The changes that only the process may make that has taken the task."""


def test_a_process_with_an_outdated_claim_cannot_change_the_task(writer: Writer) -> None:
    for event in TAKEN:
        row = _make("runs")
        Task.objects.filter(id=row.task).update(epoch=2)  # it has taken the task again since
        before = _all(row)
        assert submit(writer, (CONDITIONS[event](row), [])) == [False], event
        assert _all(row) == before, event


def _takes(writer: Writer, task: UUID, epoch: int) -> bool:
    lease = Lease(task, TENANT, uuid4(), epoch)
    (taken,) = submit(writer, (changes.start(lease, 2, ()), []))
    return bool(taken)


def test_a_task_is_claimed_once_and_not_from_a_live_process(writer: Writer) -> None:
    row = _make("due")
    assert _takes(writer, row.task, 1)
    assert not _takes(writer, row.task, 1)
    assert not _takes(writer, row.task, 2), "the process before is not known to be dead"
    Task.objects.filter(id=row.task).update(owner=NO_OWNER)
    assert not _takes(writer, row.task, 1)
    assert _takes(writer, row.task, 2)


def test_a_round_begins_only_after_its_input_requests_are_answered_in_time(writer: Writer) -> None:
    row = _make("waits")
    late = CONDITIONS["answer"](row)
    assert not _takes(writer, row.task, 2)
    asked = TaskQuestion.objects.filter(task=row.task)
    asked.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert submit(writer, (late, [])) == [False]
    asked.update(expires_at=timezone.now() + timedelta(minutes=1))
    assert submit(writer, (late, [])) == [True]
    assert _takes(writer, row.task, 2)
