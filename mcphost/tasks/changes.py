"""What happens to tasks, as conditions of the record writer (`audit.writer.conditions`).

Each change takes hold only while the task works; those of a round only while the task is still that
of the process and epoch that began the round. So a change that comes twice or too late has no
effect, and two processes never run a task at once. Changes that clients can see are announced.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.utils import timezone

from mcphost.audit.writer.conditions import Condition, RowChange, Values
from mcphost.calls.conditions_sql import Effects, announcements, change, effect
from mcphost.calls.ownership import COLUMNS, NO_OWNER, Lease, is_mine, owned
from mcphost.calls.states import QuestionState
from mcphost.tasks.states import TRANSITIONS, TaskEvent, TaskState

CHANGED: Final = "task"
"""The name of the change in the change log. The object id is the task's, as in those below."""
PROGRESS: Final = "task_progress"
"""The name of the change: a task has reported progress that its client wants to receive."""
DUE: Final = "task_due"
"""The name of the change: a task may wait for a process."""
CANCELLED: Final = "task_cancelled"
"""The name of the change: a task was cancelled, and its owner must end the round."""


class NewTask(NamedTuple):
    """A task to be created. `request` and `journal` are sealed."""

    id: UUID
    tenant: UUID
    principal_key: str
    holder: str
    era: str
    call: UUID
    tool: str
    request: str
    journal: str
    round: int
    created_at: datetime
    expires_at: datetime
    session: UUID | None = None


class NewQuestion(NamedTuple):
    """A question to be stored. `request` is sealed."""

    id: UUID
    key: str
    author_key: str
    digest: str
    method: str
    request: str
    expires_at: datetime


class MaxTasks(NamedTuple):
    """How many tasks may work at once: of one caller, and of one tenant."""

    of_holder: int
    of_tenant: int


def create(
    task: NewTask,
    max_tasks: MaxTasks,
    owner: UUID = NO_OWNER,
    questions: Sequence[NewQuestion] = (),
) -> Condition:
    """Condition: the call is no task yet, and its caller and tenant have fewer than `max_tasks`.

    With an `owner` the task runs there already, in epoch 1. Else it is due, unless it asks.
    """
    row = {
        "task": task.id.hex,
        "tenant": task.tenant.hex,
        "owner": owner.hex,
        "principal_key": task.principal_key,
        "holder": task.holder,
        "era": task.era,
        "call": task.call.hex,
        "tool": task.tool,
        "request": task.request,
        "journal": task.journal,
        "round": task.round,
        "session": None if task.session is None else task.session.hex,
        "created": _time(task.created_at),
        "expires": _time(task.expires_at),
        "epoch": 0 if owner == NO_OWNER else 1,
        "due": owner == NO_OWNER and not questions,
        **max_tasks._asdict(),
    }
    effects = _announced(task.tenant, task.id, DUE) if row["due"] else {}
    return _condition(_CREATE, row, {**_ask_effects(task.id, task.round, questions), **effects})


def start(lease: Lease, number: int, answered_questions: Sequence[UUID]) -> Condition:
    """Condition: no process has taken the task after the epoch before, and it has no open question.

    Takes the task and begins the round `number`, which takes in the answers to `answered_questions`.
    """
    taken_in = [
        {"question": question_id.hex, "round": number} for question_id in answered_questions
    ]
    row = {**_owned(lease), "round": number}
    return _condition(_START, row, {_TAKE_IN: taken_in})


def checkpoint(lease: Lease, journal: str) -> Condition:
    """Condition: the task belongs to this lease. Stores the journal while the round goes on."""
    return _condition(_CHECKPOINT, {**_owned(lease), "journal": journal})


def describe(lease: Lease, message: str | None, progress: str | None = None) -> Condition:
    """Condition: the task belongs to this lease. Stores the status message and the progress, sealed.

    None leaves what is stored.
    """
    row = {**_owned(lease), "message": message, "progress": progress}
    sealed_texts = ((PROGRESS, progress), (CHANGED, message))
    news = [change_name for change_name, text in sealed_texts if text is not None]
    return _condition(_DESCRIBE, row, _announced(lease.tenant, lease.id, *news))


def publish(lease: Lease, number: int, questions: Sequence[NewQuestion]) -> Condition:
    """Condition: the task belongs to this lease. Stores questions while the round goes on."""
    announced = _announced(lease.tenant, lease.id, CHANGED)
    effects = {**_ask_effects(lease.id, number, questions), **announced}
    return _condition(_PUBLISH, _owned(lease), effects)


def park(
    lease: Lease,
    journal: str,
    number: int,
    questions: Sequence[NewQuestion] = (),
    seconds: float | None = None,
) -> Condition:
    """Condition: the task belongs to this lease. Ends the round `number`, which asked `questions`.

    The task is due again in `seconds`; None if it waits for answers.
    """
    row = {
        **_owned(lease),
        "journal": journal,
        "seconds": seconds or 0.0,
        "due": seconds is not None,
    }
    news = (CHANGED,) if seconds is None else (CHANGED, DUE)
    announced = _announced(lease.tenant, lease.id, *news)
    effects = {**_ask_effects(lease.id, number, questions), **announced}
    return _condition(_PARK, row, effects)


def release(lease: Lease, seconds: float) -> Condition:
    """Condition: the task belongs to this lease. Lets any process run the same round in `seconds`."""
    return _condition(_RELEASE, {**_owned(lease), "seconds": seconds})


def retry(lease: Lease, seconds: float, message: str) -> Condition:
    """Condition: the task belongs to this lease. Lets any process run the same round in `seconds`, because
    it has failed. Stores the status message, sealed."""
    row = {**_owned(lease), "seconds": seconds, "message": message}
    return _condition(_RETRY, row, _announced(lease.tenant, lease.id, CHANGED))


def finish(lease: Lease, event: TaskEvent, outcome: str, message: str = "") -> Condition:
    """Condition: the task belongs to this lease. Ends it with its sealed outcome."""
    state = TRANSITIONS[TaskState.WORKING, event]
    row = {**_owned(lease), "state": state, "outcome": outcome, "message": message}
    announced = _announced(lease.tenant, lease.id, CHANGED)
    effects = {_FORGET: [{"task": lease.id.hex}], **announced}
    return _condition(_FINISH, row, effects)


def cancel(task: UUID, tenant: UUID) -> Condition:
    """Condition: the task works. Cancels it, whichever process runs it."""
    state = TRANSITIONS[TaskState.WORKING, TaskEvent.CANCEL]
    announced = _announced(tenant, task, CHANGED, CANCELLED)
    effects = {_FORGET: [{"task": task.hex}], **announced}
    return _condition(_CANCEL, {"task": task.hex, "state": state}, effects)


def answer(question: UUID, task: UUID, tenant: UUID, answer: str) -> Condition:
    """Condition: the question is open, and its task works. Stores the sealed answer."""
    row = {"question": question.hex, "task": task.hex, "answer": answer}
    return _condition(_ANSWER, row, _announced(tenant, task, CHANGED, DUE))


def _condition(
    row_change: RowChange, row: Mapping[str, Any], effects: Effects | None = None
) -> Condition:
    nonce = token_hex(8)
    values = Values({**row, "nonce": nonce}, effects or {})
    return Condition(row_change, nonce, lambda: values)


def _time(moment: datetime) -> str:
    """A time as the databases read it: in UTC, without a zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _owned(lease: Lease) -> dict[str, Any]:
    # The task's id comes first: rows are sorted by their text.
    return {"task": lease.id.hex, **owned(lease.owner, lease.epoch)}


def _announced(tenant: UUID, task: UUID, *news: str) -> Effects:
    return announcements([(change_name, tenant, task.hex) for change_name in news])


def _ask_effects(task: UUID, number: int, questions: Sequence[NewQuestion]) -> Effects:
    now = timezone.now()
    return {
        _ASK: [
            {
                "id": question.id.hex,
                "task": task.hex,
                "name": question.key,
                "author_key": question.author_key,
                "digest": question.digest,
                "method": question.method,
                "request": question.request,
                "round": number,
                "seconds": max(0.0, (question.expires_at - now).total_seconds()),
            }
            for question in questions
        ]
    }


_OWNED: Final = {"task": "uuid", "nonce": "text", **COLUMNS}
_INSERTED: Final = {
    "tenant": "uuid",
    "principal_key": "text",
    "holder": "text",
    "era": "text",
    "call": "uuid",
    "tool": "text",
    "request": "text",
    "journal": "text",
    "round": "bigint",
    "session": "uuid",
    **COLUMNS,
    "nonce": "text",
}
_IS_MINE: Final = is_mine("tasks_task")


def _update(changes: str, condition: str) -> str:
    """SQL that changes working tasks. A change that is repeated recognizes its own nonce."""
    return (
        f"UPDATE tasks_task SET nonce = r.nonce, {changes} FROM {{r}} "  # noqa: S608 - constants
        "WHERE tasks_task.id = r.task AND (tasks_task.nonce = r.nonce OR "
        f"(tasks_task.state = '{TaskState.WORKING}' AND {condition})) "
        "RETURNING tasks_task.nonce AS nonce"
    )


def _of_owner(name: str, changes: str, columns: Mapping[str, str]) -> RowChange:
    return change(f"task_{name}", {**_OWNED, **columns}, _update(changes, _IS_MINE))


def _numbered(column: str) -> str:
    """SQL that numbers the new tasks of one batch that have the same value of a column."""
    return (
        f"row_number() OVER (PARTITION BY r.{column}, r.known ORDER BY r.task) AS nth_of_{column}"
    )


def _counted(column: str) -> str:
    """SQL that counts the working tasks of each value in a batch, once however many tasks have it."""
    working = f"t.state = '{TaskState.WORKING}' AND t.{column} = n.{column}"
    return (
        f"by_{column} AS MATERIALIZED (SELECT n.{column}, "  # noqa: S608 - constants
        f"(SELECT count(*) FROM tasks_task t WHERE {working}) AS working "
        f"FROM (SELECT DISTINCT {column} FROM new) AS n)"
    )


def _fewer(column: str, limit_column: str) -> str:
    """SQL for the condition that there are fewer working tasks, with those of the batch before."""
    working = f"SELECT c.working FROM by_{column} c WHERE c.{column} = r.{column}"  # noqa: S608 - constants
    return f"({working}) + r.nth_of_{column} <= r.{limit_column}"


_FREE: Final = f"owner = '{NO_OWNER.hex}', due_at = CASE WHEN r.due THEN {{later}} END"
_ERASED: Final = (
    f"request = '', journal = '', progress = '', owner = '{NO_OWNER.hex}', due_at = NULL"
)
_SINCE: Final = "updated_at = {now}"

_CREATE: Final = change(
    "task_create",
    {
        "task": "uuid",
        **_INSERTED,
        "created": "timestamptz",
        "expires": "timestamptz",
        "due": "boolean",
        "of_holder": "bigint",
        "of_tenant": "bigint",
    },
    # A task that is there already is counted as such, and is left to the conflict.
    "WITH known AS (SELECT r.*, EXISTS (SELECT 1 FROM tasks_task t WHERE t.call = r.call) AS known "  # noqa: S608
    f"FROM {{r}}), new AS MATERIALIZED (SELECT r.*, {_numbered('holder')}, {_numbered('tenant')} "
    f"FROM known r), {_counted('holder')}, {_counted('tenant')} "
    f"INSERT INTO tasks_task (id, {', '.join(_INSERTED)}, state, message, progress, outcome, attempts, "
    "due_at, taken_at, created_at, updated_at, expires_at) "
    f"SELECT r.task, {', '.join(f'r.{name}' for name in _INSERTED)}, '{TaskState.WORKING}', '', '', '', "
    "0, CASE WHEN r.due THEN {now} END, {now}, r.created, r.created, r.expires FROM new r "
    f"WHERE (r.known OR ({_fewer('holder', 'of_holder')} AND {_fewer('tenant', 'of_tenant')})) "
    "ON CONFLICT (call) DO UPDATE SET nonce = excluded.nonce "
    "WHERE tasks_task.nonce = excluded.nonce RETURNING tasks_task.nonce AS nonce",
)
_START: Final = change(
    "task_start",
    {**_OWNED, "round": "bigint"},
    _update(
        "owner = r.owner, epoch = r.epoch, round = r.round, due_at = NULL, taken_at = {now}, "
        "attempts = attempts + 1",
        f"tasks_task.epoch = r.epoch - 1 AND tasks_task.owner = '{NO_OWNER.hex}' "  # noqa: S608
        "AND tasks_task.expires_at > {now} AND NOT EXISTS (SELECT 1 FROM tasks_question q "
        f"WHERE q.task = tasks_task.id AND q.state = '{QuestionState.OPEN}')",
    ),
)
_CHECKPOINT: Final = _of_owner(
    "checkpoint", "journal = r.journal, attempts = 0", {"journal": "text"}
)
_DESCRIBE: Final = _of_owner(
    "describe",
    "message = coalesce(r.message, tasks_task.message), "
    "progress = coalesce(r.progress, tasks_task.progress), "
    "updated_at = CASE WHEN r.message IS NULL THEN tasks_task.updated_at ELSE {now} END",
    {"message": "text", "progress": "text"},
)
_PUBLISH: Final = _of_owner("publish", _SINCE, {})
_PARK: Final = _of_owner(
    "park",
    f"journal = r.journal, attempts = 0, retries = 0, {_FREE}, {_SINCE}",
    {"journal": "text", "seconds": "double precision", "due": "boolean"},
)
_RELEASE: Final = _of_owner(
    "release",
    f"owner = '{NO_OWNER.hex}', due_at = {{later}}",
    {"seconds": "double precision"},
)
_RETRY: Final = _of_owner(
    "retry",
    f"message = r.message, attempts = 0, retries = retries + 1, owner = '{NO_OWNER.hex}', "
    f"due_at = {{later}}, {_SINCE}",
    {"seconds": "double precision", "message": "text"},
)
_FINISH: Final = _of_owner(
    "finish",
    f"state = r.state, outcome = r.outcome, message = r.message, {_ERASED}, {_SINCE}",
    {"state": "text", "outcome": "text", "message": "text"},
)
_CANCEL: Final = change(
    "task_cancel",
    {"task": "uuid", "nonce": "text", "state": "text"},
    _update(f"state = r.state, message = '', {_ERASED}, {_SINCE}", "true"),
)
_ANSWER: Final = change(
    "task_answer",
    {"question": "uuid", "nonce": "text", "task": "uuid", "answer": "text"},
    "UPDATE tasks_question SET nonce = r.nonce, answer = r.answer, settled_at = {now}, "  # noqa: S608
    f"state = '{QuestionState.ANSWERED}' FROM {{r}} WHERE tasks_question.id = r.question "
    "AND tasks_question.task = r.task AND (tasks_question.nonce = r.nonce OR "
    f"(tasks_question.state = '{QuestionState.OPEN}' AND tasks_question.expires_at > {{now}} "
    "AND EXISTS (SELECT 1 FROM tasks_task t WHERE t.id = r.task "
    f"AND t.state = '{TaskState.WORKING}'))) RETURNING tasks_question.nonce AS nonce",
)
_ASK: Final = effect(
    "task_questions",
    {
        "id": "uuid",
        "task": "uuid",
        "name": "text",
        "author_key": "text",
        "digest": "text",
        "method": "text",
        "request": "text",
        "round": "bigint",
        "seconds": "double precision",
    },
    "INSERT INTO tasks_question (id, task, key, author_key, digest, method, request, round, state, "  # noqa: S608
    "answer, nonce, asked_at, expires_at) SELECT r.id, r.task, r.name, r.author_key, r.digest, "
    f"r.method, r.request, r.round, '{QuestionState.OPEN}', '', '', {{now}}, {{later}} FROM {{r}} "
    "WHERE {held} ON CONFLICT DO NOTHING",
)
_TAKE_IN: Final = effect(
    "task_answers",
    {"question": "uuid", "round": "bigint"},
    "UPDATE tasks_question SET answer_round = r.round FROM {r} "
    "WHERE tasks_question.id = r.question AND {held}",
)
_FORGET: Final = effect(
    "task_questions_forget",
    {"task": "uuid"},
    "DELETE FROM tasks_question WHERE task IN (SELECT r.task FROM {r} WHERE {held})",
)
