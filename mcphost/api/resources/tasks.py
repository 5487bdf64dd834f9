"""Tasks: calls that go on after their request, each named by its call."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, not_found
from mcphost.api.representations import ListPage, PagedQuery, Representation
from mcphost.api.resources.calls import CancellationFields, cursor_id, key_of_id
from mcphost.audit.selectors import callers
from mcphost.feed import nodes
from mcphost.serving.execution.cancelling import cancel_task, plain_reason, retry_task
from mcphost.tasks import listing
from mcphost.tasks.listing import ListedQuestion, ListedTask
from mcphost.tenants.roles import Permission

_OVER = "The task has ended."
_BUSY = "The task cannot run now: it has ended, waits for responses, or runs already."


class TaskInputRequestRepresentation(Representation):
    """An input request of a task that works."""

    key: str
    method: str
    round: int
    state: str
    asked_at: datetime
    settled_at: datetime | None
    expires_at: datetime

    @classmethod
    def of(cls, question: ListedQuestion) -> Self:
        return cls(**{name: getattr(question, name) for name in cls.model_fields})


class TaskRepresentation(Representation):
    """A task. `state` is working, waiting (for responses), completed, failed or cancelled; `process` runs it now.

    It is named by its call: the id of the task itself is all that it takes to follow the task of an
    unauthenticated caller. `attempts` are those since a step or a round was last recorded, `times_taken` how often a process
    took it over. It has `input_requests` while it works.
    """

    call: UUID
    target: str
    state: str
    caller: str
    round: int
    attempts: int
    times_taken: int
    process: str | None
    due_at: datetime | None
    taken_at: datetime
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    input_requests: list[TaskInputRequestRepresentation]

    @classmethod
    def of(cls, task: ListedTask, caller: str, processes: Mapping[UUID, str]) -> Self:
        return cls(
            call=task.call,
            target=task.tool,
            state=task.status,
            caller=caller,
            round=task.round,
            attempts=task.attempts,
            times_taken=task.epoch,
            process=processes.get(task.owner, "") if task.is_owned else None,
            due_at=task.due_at,
            taken_at=task.taken_at,
            created_at=task.created_at,
            updated_at=task.updated_at,
            expires_at=task.expires_at,
            input_requests=[
                TaskInputRequestRepresentation.of(question) for question in task.questions
            ],
        )


class TaskQuery(PagedQuery):
    """The filters of the list of tasks."""

    target: str = Field("", max_length=2048, description="The name of a tool.")
    state: (
        Literal["working", "waiting", "completed", "failed", "failed_recently", "cancelled"] | None
    ) = Field(None, description="failed_recently: in the last day.")


class TaskListPage(ListPage[TaskRepresentation]):
    """The tasks of a tenant that have not expired, the newest first."""


class TaskCollection(Endpoint):
    """`/tenants/{slug}/tasks`."""

    @operation(ApiOperation("List tasks", Permission.VIEW_RECORDS, TaskListPage, query=TaskQuery))
    def get(self, call: ApiCall, query: TaskQuery) -> HttpResponse:
        page = listing.page(
            call.tenant.pk,
            query.state or "",
            query.target,
            after=cursor_id(call),
            limit=call.limit,
        )
        names, processes = callers([task.call for task in page.tasks]), nodes.names()
        items = [
            TaskRepresentation.of(task, names.get(task.call, ""), processes) for task in page.tasks
        ]
        return call.show_portion(TaskListPage, items, key_of_id(page.after))


class TaskObject(Endpoint):
    """`/tenants/{slug}/tasks/{task_call}`."""

    @operation(ApiOperation("Read a task", Permission.VIEW_RECORDS, TaskRepresentation))
    def get(self, call: ApiCall, task_call: UUID) -> HttpResponse:
        return call.show(_read(call, task_call))


class TaskCancellation(Endpoint):
    """`/tenants/{slug}/tasks/{task_call}/cancel`."""

    @operation(
        ApiOperation(
            "Cancel a task, whatever it does",
            Permission.MANAGE_TASKS,
            TaskRepresentation,
            body=CancellationFields,
            example={"reason": "The order was withdrawn."},
        )
    )
    def post(self, call: ApiCall, body: CancellationFields, task_call: UUID) -> HttpResponse:
        task = _task(call, task_call)

        def cancel() -> TaskRepresentation:
            if not cancel_task(task, plain_reason(body.reason), call.actor):
                raise _conflict(_OVER)
            return _read(call, task_call)

        return call.perform(cancel)


class TaskRetry(Endpoint):
    """`/tenants/{slug}/tasks/{task_call}/retry`."""

    @operation(
        ApiOperation(
            "Let the next round of a task run as soon as possible",
            Permission.MANAGE_TASKS,
            TaskRepresentation,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, task_call: UUID) -> HttpResponse:
        def retry() -> TaskRepresentation:
            if not retry_task(_task(call, task_call), call.actor):
                raise _conflict(_BUSY)
            return _read(call, task_call)

        return call.change(lambda: _read(call, task_call), retry)


def _conflict(sentence: str) -> ProblemError:
    fault = FieldFault("/state", "state", sentence)
    return ProblemError(ProblemType.CONFLICT, sentence, [fault])


def _task(call: ApiCall, task_call: UUID) -> ListedTask:
    task = listing.of_call(task_call, call.tenant.pk)
    if task is None:
        raise not_found()
    return task


def _read(call: ApiCall, task_call: UUID) -> TaskRepresentation:
    caller = callers([task_call]).get(task_call, "")
    return TaskRepresentation.of(_task(call, task_call), caller, nodes.names())
