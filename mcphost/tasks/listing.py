"""Tasks for display: lists, one task, and counts. Nothing that is sealed is read."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import QuestionState
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.selectors import HAS_OPEN_QUESTION
from mcphost.tasks.states import TaskState

WAITING: Final = "waiting"
"""The status of a task that works and has an open question."""
FAILED_RECENTLY: Final = "failed_recently"
"""The status of a task that failed in the last day."""
STATUSES: Final = (
    TaskState.WORKING.value,
    WAITING,
    TaskState.COMPLETED.value,
    TaskState.FAILED.value,
    FAILED_RECENTLY,
    TaskState.CANCELLED.value,
)
PAGE: Final = 50
READ_AT_ONCE: Final = 500
RECENTLY: Final = timedelta(days=1)
HAS_FAILED_RECENTLY: Final = Q(state=TaskState.FAILED, updated_at__gt=Now() - RECENTLY)


class ListedQuestion(NamedTuple):
    """A question of a task that works."""

    task: UUID
    key: str
    method: str
    round: int
    state: QuestionState
    asked_at: datetime
    settled_at: datetime | None
    expires_at: datetime


class ListedTask(NamedTuple):
    """A task, with its questions while it works.

    Pages identify it by its call: the id of an anonymous caller's task is all that it takes to
    follow the task.
    """

    id: UUID
    tenant: UUID
    call: UUID
    tool: str
    state: str
    round: int
    owner: UUID
    epoch: int
    attempts: int
    due_at: datetime | None
    taken_at: datetime
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    questions: tuple[ListedQuestion, ...] = ()

    @property
    def status(self) -> str:
        """The state, or WAITING."""
        return WAITING if self.works and self.open else self.state

    @property
    def works(self) -> bool:
        """Whether it has not ended."""
        return self.state == TaskState.WORKING

    @property
    def is_owned(self) -> bool:
        """Whether a process runs it."""
        return self.owner != NO_OWNER

    @property
    def open(self) -> tuple[ListedQuestion, ...]:
        """The questions that have no answer yet."""
        return tuple(
            question for question in self.questions if question.state == QuestionState.OPEN
        )


class TaskPage(NamedTuple):
    """A page of tasks; `after` is the call of the last one, None on the last page; `before` is the call
    of the first one, None on the first page."""

    tasks: tuple[ListedTask, ...]
    after: UUID | None
    before: UUID | None = None


class TaskTally(NamedTuple):
    """How many tasks of a tenant work, wait for answers, and have failed recently."""

    working: int = 0
    waiting: int = 0
    failed: int = 0


class WorkingTasks(NamedTuple):
    """How many tasks work, in all; how many of them wait for answers, or for a process."""

    working: int
    waiting: int
    due: int


_TASK = tuple(name for name in ListedTask._fields if name != "questions")


def page(
    tenant: UUID,
    status: str = "",
    tool: str = "",
    *,
    after: UUID | None = None,
    before: UUID | None = None,
    limit: int = PAGE,
) -> TaskPage:
    """A page of a tenant's tasks, the newest first.

    They are older than the task of the call `after`, or newer than that of `before`.
    """
    tasks = _narrowed(Task.objects.filter(tenant=tenant, expires_at__gt=Now()), status)
    if tool:
        tasks = tasks.filter(tool=tool)
    if before is not None:
        tasks = _beyond(tasks, tenant, before, "gt").order_by("created_at", "id")
        rows = _listed(tasks[: limit + 1])
        newer = tuple(reversed(rows[:limit]))
        following = newer[0].call if len(rows) > limit else None
        return TaskPage(newer, newer[-1].call if newer else None, following)
    if after is not None:
        tasks = _beyond(tasks, tenant, after, "lt")
    rows = _listed(tasks.order_by("-created_at", "-id")[: limit + 1])
    back = rows[0].call if rows and after is not None else None
    return TaskPage(rows[:limit], rows[limit - 1].call if len(rows) > limit else None, back)


def every(tenant: UUID | None = None, status: str = "") -> Iterator[ListedTask]:
    """The tasks of a tenant, or of all, the oldest first."""
    tasks = _narrowed(Task.objects.filter(expires_at__gt=Now()), status)
    if tenant is not None:
        tasks = tasks.filter(tenant=tenant)
    ids = list(tasks.order_by("created_at", "id").values_list("id", flat=True))
    for start in range(0, len(ids), READ_AT_ONCE):
        chunk = Task.objects.filter(id__in=ids[start : start + READ_AT_ONCE])
        yield from _listed(chunk.order_by("created_at", "id"))


def find(task: UUID) -> ListedTask | None:
    """One task, unless it has expired."""
    return next(iter(_listed(Task.objects.filter(id=task, expires_at__gt=Now()))), None)


def of_call(call: UUID, tenant: UUID) -> ListedTask | None:
    """The task that the call has become; None if there is none of this tenant, or not any more."""
    return next(iter(_listed(_of_calls((call,)).filter(tenant=tenant))), None)


def of_calls(calls: Collection[UUID]) -> Mapping[UUID, ListedTask]:
    """The tasks that these calls have become, by call."""
    return {task.call: task for task in _listed(_of_calls(calls))}


def open_questions(calls: Collection[UUID]) -> frozenset[tuple[UUID, str]]:
    """The open questions of the tasks that these calls have become: calls and the author's keys."""
    by_task = dict(_of_calls(calls).values_list("id", "call"))
    questions = TaskQuestion.objects.filter(task__in=by_task, state=QuestionState.OPEN)
    return frozenset((by_task[id], key) for id, key in questions.values_list("task", "author_key"))


def count_open_questions(
    tenants: Collection[UUID] | None, *, tool: str = "", until: datetime | None = None
) -> int:
    """Count the open questions of tasks that work: of one tool, or that expire by `until`. None: of all
    tenants."""
    working = Task.objects.filter(state=TaskState.WORKING, expires_at__gt=Now())
    if tenants is not None:
        working = working.filter(tenant__in=tenants)
    if tool:
        working = working.filter(tool=tool)
    questions = TaskQuestion.objects.filter(state=QuestionState.OPEN, expires_at__gt=Now())
    if until is not None:
        questions = questions.filter(expires_at__lte=until)
    return questions.filter(task__in=working.order_by().values("id")).count()


def tallies(tenants: Collection[UUID] | None) -> Mapping[UUID, TaskTally]:
    """The counts of tenants that have such tasks. None: of all tenants."""
    tasks = Task.objects.filter(
        Q(state=TaskState.WORKING) | HAS_FAILED_RECENTLY, expires_at__gt=Now()
    )
    if tenants is not None:
        tasks = tasks.filter(tenant__in=tenants)
    works = Q(state=TaskState.WORKING)
    counted = (
        tasks.order_by()
        .values("tenant")
        .annotate(
            working=Count("id", filter=works & ~Q(HAS_OPEN_QUESTION)),
            waiting=Count("id", filter=works & Q(HAS_OPEN_QUESTION)),
            failed=Count("id", filter=HAS_FAILED_RECENTLY),
        )
    )
    names = ("tenant", *TaskTally._fields)
    return {tenant: TaskTally(*counts) for tenant, *counts in counted.values_list(*names)}


def count_sealed(head: str = "", tenant: UUID | None = None) -> int:
    """Count the tasks that work: of a tenant, or of all; with a sealed text that begins so."""
    working = Task.objects.filter(state=TaskState.WORKING, expires_at__gt=Now())
    if tenant is not None:
        working = working.filter(tenant=tenant)
    if head:
        working = working.filter(Q(request__startswith=head) | Q(journal__startswith=head))
    return working.count()


def count_working() -> WorkingTasks:
    """Count the tasks of all tenants that work."""
    working = Task.objects.filter(state=TaskState.WORKING, expires_at__gt=Now())
    counts = working.order_by().aggregate(
        working=Count("id"),
        waiting=Count("id", filter=Q(HAS_OPEN_QUESTION)),
        due=Count("id", filter=Q(due_at__isnull=False)),
    )
    return WorkingTasks(**counts)


def _of_calls(calls: Collection[UUID]) -> "QuerySet[Task]":
    return Task.objects.filter(call__in=calls, expires_at__gt=Now())


def _beyond(tasks: "QuerySet[Task]", tenant: UUID, call: UUID, side: str) -> "QuerySet[Task]":
    """The tasks newer (`gt`) or older (`lt`) than that of a call; none if it has no task."""
    position = Task.objects.filter(tenant=tenant, call=call).values_list("created_at", "id").first()
    if position is None:
        return tasks.none()
    created_at, id = position
    beside = Q(**{"created_at": created_at, f"id__{side}": id})
    return tasks.filter(Q(**{f"created_at__{side}": created_at}) | beside)


def _narrowed(tasks: "QuerySet[Task]", status: str) -> "QuerySet[Task]":
    if not status:
        return tasks
    if status == FAILED_RECENTLY:
        return tasks.filter(HAS_FAILED_RECENTLY)
    if status not in (WAITING, TaskState.WORKING):
        return tasks.filter(state=status)
    asks = Q(HAS_OPEN_QUESTION)
    return tasks.filter(asks if status == WAITING else ~asks, state=TaskState.WORKING)


def _listed(tasks: "QuerySet[Task]") -> tuple[ListedTask, ...]:
    rows = [ListedTask(*values) for values in tasks.values_list(*_TASK)]
    questions = _questions(row.id for row in rows)
    return tuple(row._replace(questions=tuple(questions.get(row.id, ()))) for row in rows)


def _questions(tasks: Iterable[UUID]) -> Mapping[UUID, list[ListedQuestion]]:
    questions = TaskQuestion.objects.filter(task__in=list(tasks)).order_by("asked_at", "id")
    by_task: dict[UUID, list[ListedQuestion]] = {}
    for values in questions.values_list(*ListedQuestion._fields):
        row = ListedQuestion(*values)
        by_task.setdefault(row.task, []).append(row._replace(state=QuestionState(row.state)))
    return by_task
