"""Read tasks: frozen rows."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Now, RowNumber

from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import QuestionState
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.states import TaskState


class QuestionRow(NamedTuple):
    """A question of a task. `request` and `answer` are sealed."""

    id: UUID
    key: str
    author_key: str
    digest: str
    method: str
    request: str
    round: int
    answer_round: int | None
    sender: UUID | None
    state: QuestionState
    answer: str
    settled_at: datetime | None
    expires_at: datetime

    @property
    def is_settled(self) -> bool:
        """Whether the next round takes it in: it has an answer, or its time is over."""
        return self.state is not QuestionState.OPEN


class TaskRow(NamedTuple):
    """A task and, while it works, its questions. Texts of the client or the tool are sealed."""

    id: UUID
    tenant: UUID
    principal_key: str
    era: str
    call: UUID
    tool: str
    state: TaskState
    request: str
    message: str
    progress: str
    outcome: str
    journal: str
    session: UUID | None
    round: int
    owner: UUID
    epoch: int
    attempts: int
    retries: int
    carrier: UUID | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    questions: tuple[QuestionRow, ...] = ()

    @property
    def is_owned(self) -> bool:
        """Whether a process runs it."""
        return self.owner != NO_OWNER

    @property
    def open(self) -> tuple[QuestionRow, ...]:
        """The questions that have no answer yet."""
        return tuple(
            question for question in self.questions if question.state is QuestionState.OPEN
        )

    @property
    def changed_at(self) -> datetime:
        """When a client could last see a change: an answer changes only its question."""
        settled = (
            question.settled_at for question in self.questions if question.settled_at is not None
        )
        return max((self.updated_at, *settled))


class TaskKey(NamedTuple):
    """The id of a task, with the tenant, the caller and the form of tasks that it has to have."""

    id: UUID
    tenant: UUID
    principal_key: str
    era: str


HAS_OPEN_QUESTION = Exists(
    TaskQuestion.objects.filter(task=OuterRef("id"), state=QuestionState.OPEN)
)
"""The condition that a task has an open question."""
_QUESTION = tuple(QuestionRow._fields)
_TASK = tuple(name for name in TaskRow._fields if name != "questions")


def find(task: UUID, tenant: UUID | None = None) -> TaskRow | None:
    """The task, unless it has expired, or is of another tenant."""
    tasks = Task.objects.filter(id=task, expires_at__gt=Now())
    return next(iter(_rows(tasks if tenant is None else tasks.filter(tenant=tenant))), None)


def find_all(keys: Collection[TaskKey]) -> dict[TaskKey, TaskRow]:
    """Those of the tasks that have not expired, and have the tenant, caller and form of their keys.

    A task of another caller takes the look-ups of one that does not exist.
    """
    ids, tenants, principal_keys, eras = map(set, zip(*keys, strict=True))
    tasks = Task.objects.filter(
        id__in=ids,
        tenant__in=tenants,
        principal_key__in=principal_keys,
        era__in=eras,
        expires_at__gt=Now(),
    )
    by_key = {TaskKey(row.id, row.tenant, row.principal_key, row.era): row for row in _rows(tasks)}
    return {key: row for key, row in by_key.items() if key in keys}


def owned(ids: Collection[UUID], tenant: UUID, principal_key: str, era: str) -> frozenset[UUID]:
    """Those of the tasks that are this caller's."""
    tasks = Task.objects.filter(
        id__in=ids, tenant=tenant, principal_key=principal_key, era=era, expires_at__gt=Now()
    )
    return frozenset(tasks.values_list("id", flat=True))


def sessions_of(ids: Collection[UUID]) -> dict[UUID, UUID]:
    """The sessions that made these tasks; without those that no session made."""
    rows = Task.objects.filter(id__in=ids).values_list("id", "session")
    return {task: session for task, session in rows if session is not None}


def page_of(
    tenant: UUID, principal_key: str, era: str, after: tuple[datetime, UUID] | None, limit: int
) -> tuple[TaskRow, ...]:
    """Up to `limit` tasks of this caller, the oldest first, that follow the one `after`."""
    own = Task.objects.filter(
        tenant=tenant, principal_key=principal_key, era=era, expires_at__gt=Now()
    )
    if after is not None:
        at, last = after
        own = own.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=last))
    return tuple(_rows(own.order_by("created_at", "id")[:limit]))


def of_call(call: UUID) -> TaskRow | None:
    """The task that the call has become, if any."""
    return next(iter(_rows(Task.objects.filter(call=call, expires_at__gt=Now()))), None)


def _rows(tasks: "QuerySet[Task]") -> list[TaskRow]:
    rows = [TaskRow(*values) for values in tasks.values_list(*_TASK)]
    rows = [row._replace(state=TaskState(row.state)) for row in rows]
    working = [row.id for row in rows if row.state is TaskState.WORKING]
    questions = _questions(working) if working else {}
    return [row._replace(questions=tuple(questions.get(row.id, ()))) for row in rows]


def _questions(tasks: Collection[UUID]) -> dict[UUID, list[QuestionRow]]:
    questions = TaskQuestion.objects.filter(task__in=tasks).order_by("asked_at", "id")
    by_task: dict[UUID, list[QuestionRow]] = defaultdict(list)
    for task, *values in questions.values_list("task", *_QUESTION):
        row = QuestionRow(*values)
        by_task[task].append(row._replace(state=QuestionState(row.state)))
    return by_task


def due(of_tenant: int, limit: int, absent: Collection[tuple[UUID, str]] = ()) -> tuple[UUID, ...]:
    """Tasks that wait for a process, the longest first; at most `of_tenant` of each tenant.

    Without those of tools that are `absent`: their tenants and names.
    """
    position = Window(RowNumber(), partition_by=F("tenant"), order_by=(F("due_at"), F("id")))
    waiting = Task.objects.filter(state=TaskState.WORKING, due_at__lte=Now(), expires_at__gt=Now())
    for tenant, tool in absent:
        waiting = waiting.exclude(tenant=tenant, tool=tool)
    fair = (
        waiting.annotate(position=position).filter(position__lte=of_tenant).order_by("due_at", "id")
    )
    return tuple(fair.values_list("id", flat=True)[:limit])
