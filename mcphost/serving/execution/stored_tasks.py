"""The stored state of tasks: sealed when it is written, and read for clients and for the next
round.
"""

import logging
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson

from mcphost.audit.records import Record, new_id
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.calls.ownership import NO_OWNER, Lease
from mcphost.calls.states import QuestionState
from mcphost.observability import counters
from mcphost.observability.logs import FirstTimes
from mcphost.protocol import results
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, over_limit
from mcphost.protocol.legacy.tasks import (
    TASK,
    TaskProgress,
    no_task,
    only_task,
    wanted_ttl,
)
from mcphost.protocol.revisions import REVISIONS, Era
from mcphost.protocol.tasks import TaskStatus, TaskView, declared, extension_missing
from mcphost.runtime.call import Call, Delivery
from mcphost.runtime.journal import TIMED_OUT, Answer
from mcphost.runtime.outcomes import Deferred, InputRequest
from mcphost.runtime.ports import SystemClock
from mcphost.runtime.program import TaskSupport
from mcphost.sealing.tokens import Purpose
from mcphost.serving import limits, request_state, sealing
from mcphost.serving.background import background
from mcphost.serving.context import Incoming, TaskMode, Turn
from mcphost.serving.database import commit_patiently, in_database
from mcphost.serving.execution import stored_requests
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, CreatedTask, Delivered, Handle, Refused
from mcphost.tasks import changes, selectors
from mcphost.tasks.changes import MaxTasks, NewQuestion, NewTask
from mcphost.tasks.selectors import QuestionRow, TaskRow

REQUEST: Final = b"request"
MESSAGE: Final = b"message"
PROGRESS: Final = b"progress"
OUTCOME: Final = b"outcome"
ANSWER: Final = b"answer"
"""Which text of a task or question is sealed. It is authenticated with the text, so that one text
cannot stand for another."""
MAX_MESSAGE: Final = 500
"""How much of a status message is kept, in characters."""
UNREADABLE: Final = "The task can no longer be read"
_LOST: Final = {"code": INTERNAL_ERROR, "message": "The error could not be stored"}
_BITS: Final = 128
RETRY_SECONDS: Final = 10

_CLOCK = SystemClock()
_unreadable: Final = FirstTimes()

log = logging.getLogger(__name__)


def task_mode(call: Call, incoming: Incoming, support: TaskSupport) -> TaskMode:
    """When the call of a tool becomes a task: if its tool allows that and its client can follow it. A
    task becomes none again, nor does a trial."""
    if call.delivery in (Delivery.TASK, Delivery.PLAYGROUND):
        return TaskMode.NEVER
    return requested_mode(incoming, support)


def requested_mode(incoming: Incoming, support: TaskSupport) -> TaskMode:
    """When a request to a tool becomes a task. In a session that is what the request says.

    Spec: io.modelcontextprotocol/tasks, "Capability Negotiation".
    """
    if support is TaskSupport.NEVER:
        return TaskMode.NEVER
    if incoming.exchange.era is Era.LEGACY:
        return TaskMode.AT_ONCE if wants_task(incoming) else TaskMode.NEVER
    if not declared(incoming.exchange.meta.capabilities):
        return TaskMode.NEVER
    return TaskMode.IF_SLOW if support is TaskSupport.SLOW else TaskMode.AT_ONCE


def check_task_support(incoming: Incoming, tool: str, support: TaskSupport) -> None:
    """Refuse a call that may be no task, or nothing else.

    Spec: io.modelcontextprotocol/tasks, "Capability Negotiation"; 2025-11-25:
    basic/utilities/tasks, "Tool-Level Negotiation". Raises ProtocolError.
    """
    if incoming.exchange.era is Era.MODERN:
        if support is TaskSupport.REQUIRED and not declared(incoming.exchange.meta.capabilities):
            raise extension_missing()
        return
    as_task = wants_task(incoming)
    if as_task:
        wanted_ttl(incoming.exchange.params)
    if as_task and support is TaskSupport.NEVER:
        raise no_task(tool)
    if support is TaskSupport.REQUIRED and not as_task:
        raise only_task(tool)


def wants_task(incoming: Incoming) -> bool:
    """Whether a session's request asks to become a task (2025-11-25: basic/utilities/tasks)."""
    revision = REVISIONS.get(incoming.exchange.revision)
    return revision is not None and revision.tasks and TASK in incoming.exchange.params


async def create(
    turn: Turn, journal: str, new_questions: Sequence[NewQuestion] = (), owner: UUID = NO_OWNER
) -> CreatedTask:
    """Prepare a task that continues from the sealed `journal`, after the round of this turn.

    With an `owner`, the round still runs in that process. Raises SealError, VaultError.
    """
    call, incoming = turn.call, turn.incoming
    task = UUID(bytes=secrets.token_bytes(_BITS // 8))
    seconds = request_state.lifetime(call.principal, options().tasks.seconds)
    if wants_task(incoming):
        seconds = min(seconds, (wanted_ttl(incoming.exchange.params) or math.inf) / 1000)
    seconds = math.floor(seconds * 1000) / 1000  # as the client is told
    written = stored_requests.write(_without_state(incoming))
    sealed = await seal(call.tenant, task, REQUEST, written)
    now = _CLOCK.now()
    new = NewTask(
        id=task,
        tenant=call.tenant,
        principal_key=request_state.principal_key(call.principal),
        holder=limits.holder(call.principal, incoming.source),
        era=call.era,
        call=call.id,
        tool=call.target,
        request=sealed,
        journal=journal,
        round=call.round,
        created_at=now,
        expires_at=now + timedelta(seconds=seconds),
        session=None if incoming.session is None else incoming.session.id,
    )
    max_tasks = MaxTasks(options().tasks.per_caller, options().tasks.per_tenant)
    view = TaskView(task.hex, TaskStatus.WORKING, now, now, round(seconds * 1000), _poll_ms())
    lease = Lease(task, call.tenant, owner, 1)
    return CreatedTask(changes.create(new, max_tasks, owner, new_questions), view, lease)


async def submit(created: CreatedTask, records: Sequence[Record] = ()) -> bool:
    """Create a task in one commit with `records`; False if its call is one already, or there are too many.

    Raises RecordLostError, RecordRefusedError. If it is not known whether a lost commit has created the task, that is
    cancelled as soon as possible: no client has its handle.
    """
    try:
        return await writer.submit_if(created.condition, records)
    except RecordLostError:
        background.start(_undo(created.lease))
        raise


async def _undo(lease: Lease) -> None:
    with suppress(RecordLostError, RecordRefusedError):
        if await commit_patiently(changes.cancel(lease.id, lease.tenant)):
            log.warning("a task whose creation was in doubt is cancelled")


async def commit(call: Call, delivered: Delivered, records: Sequence[Record]) -> Delivered:
    """Create the task of a reply with a `creation`, with the records of the round that ends. If the call has
    become a task before, the reply has the handle of that.

    Raises ProtocolError (OVER_LIMIT) if its caller or tenant has too many; RecordLostError, RecordRefusedError.
    """
    creation, outcome = delivered.creation, delivered.outcome
    assert creation is not None
    if not await submit(creation, records):
        row = await in_database(selectors.of_call, call.id)
        if row is None:
            raise over_limit("Too many tasks are working", RETRY_SECONDS)
        return delivered._replace(reply=Handle(created_view(row)))
    counters.tasks_created.add()
    if isinstance(outcome, Deferred) and outcome.instead_of_refusal:
        counters.tasks_of_load.add()
    return delivered


def _without_state(incoming: Incoming) -> Incoming:
    """The request without what its rounds have learned: that is in the journal."""
    exchange = incoming.exchange
    left_out = ("requestState", "inputResponses")
    params = {name: value for name, value in exchange.params.items() if name not in left_out}
    return incoming._replace(exchange=exchange._replace(params=params))


async def prepare_questions(
    tenant: UUID, requests: Iterable[InputRequest], used_keys: Sequence[str], expires_at: float
) -> list[NewQuestion]:
    """Prepare the rows of input requests. `used_keys` are the author's keys that the task has used.

    A key is used for one request only (spec: io.modelcontextprotocol/tasks, "Task Update
    Requests"): the author's own first, then `key#2` and so on. Raises SealError, VaultError.
    """
    until = datetime.fromtimestamp(expires_at, UTC)
    rows = []
    for input_request in requests:
        identifier, times = new_id(), used_keys.count(input_request.key) + 1
        written = orjson.dumps({"method": input_request.method, "params": input_request.params})
        sealed = await seal(tenant, identifier, REQUEST, written)
        key = input_request.key if times == 1 else f"{input_request.key}#{times}"
        rows.append(
            NewQuestion(
                identifier,
                key,
                input_request.key,
                input_request.digest,
                input_request.method,
                sealed,
                until,
            )
        )
    return rows


def log_unreadable(row: TaskRow, error: Exception) -> None:
    """Log that a task can no longer be read, once: its client polls it until it expires."""
    if _unreadable.is_first(row.id):
        log.error("a task can no longer be read: %r", error, extra={"call": str(row.call)})


async def read_view(row: TaskRow, server: Mapping[str, Any]) -> TaskView:
    """The state of a task for its client, whose result is what the call would have returned.

    `server` is its `serverInfo`. Raises SealError, VaultError.
    """
    status, lifetime = TaskStatus(row.state), row.expires_at - row.created_at
    requests = {question.key: await read_request(row.tenant, question) for question in row.open}
    outcome: Mapping[str, Any] = {"error": _LOST} if status is TaskStatus.FAILED else {}
    if row.outcome:
        outcome = orjson.loads(await unseal(row.tenant, row.id, OUTCOME, row.outcome))
    result = outcome.get("result")
    return TaskView(
        row.id.hex,
        TaskStatus.INPUT_REQUIRED if requests else status,
        row.created_at,
        row.changed_at,
        round(lifetime / timedelta(milliseconds=1)),
        _poll_ms(),
        await _read_message(row),
        requests,
        None if result is None else results.complete(result, server),
        outcome.get("error"),
    )


def created_view(row: TaskRow) -> TaskView:
    """The first state of a task, for the client that repeats the request that created it."""
    ttl_ms = round((row.expires_at - row.created_at) / timedelta(milliseconds=1))
    at = row.created_at
    return TaskView(row.id.hex, TaskStatus.WORKING, at, at, ttl_ms, _poll_ms())


async def seal_outcome(lease: Lease, ended: Answered | Refused) -> str:
    """The end of a task, sealed. Raises SealError (too large), VaultError."""
    if isinstance(ended, Answered):
        written: Mapping[str, Any] = {"result": ended.result}
    else:
        written = {"error": _error(ended.error)}
    return await seal(lease.tenant, lease.id, OUTCOME, orjson.dumps(written))


def _error(error: ProtocolError) -> dict[str, Any]:
    written: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        written["data"] = dict(error.data)
    return written


async def store_answer(
    row: TaskRow, question: UUID, result: Mapping[str, Any], failure: str = ""
) -> None:
    """Store the answer to a question of a task; a second one has no effect.

    `failure` is as in `runtime.journal.Answer`. Raises RecordLostError, RecordRefusedError, SealError,
    VaultError.
    """
    written = orjson.dumps([result, failure])
    sealed = await seal(row.tenant, question, ANSWER, written)
    await writer.submit_if(changes.answer(question, row.id, row.tenant, sealed))


async def read_answer(row: TaskRow, question: QuestionRow, version: str) -> Answer:
    """The answer to a question, which the `version` of the program asked. Raises SealError,
    VaultError."""
    if question.state is QuestionState.EXPIRED:
        return Answer(question.digest, version, {}, TIMED_OUT)
    result, failure = orjson.loads(await unseal(row.tenant, question.id, ANSWER, question.answer))
    return Answer(question.digest, version, result, failure)


async def seal_message(lease: Lease, text: str) -> str:
    """A status message, sealed. Raises SealError, VaultError."""
    short = text[:MAX_MESSAGE]
    return await seal(lease.tenant, lease.id, MESSAGE, short.encode("utf-8", "replace"))


async def seal_progress(lease: Lease, report: TaskProgress) -> str:
    """A report of progress, sealed. Raises SealError, VaultError."""
    short = None if report.message is None else report.message[:MAX_MESSAGE]
    return await seal(lease.tenant, lease.id, PROGRESS, orjson.dumps([*report[:3], short]))


async def read_progress(row: TaskRow) -> TaskProgress | None:
    """The last progress for the client of a task that works. Raises SealError, VaultError."""
    if not row.progress:
        return None
    return TaskProgress(*orjson.loads(await unseal(row.tenant, row.id, PROGRESS, row.progress)))


async def seal(tenant: UUID, about: UUID, part: bytes, payload: bytes) -> str:
    """Seal a text for the row of a task or question. Raises SealError, VaultError."""
    return await sealing.seal(Purpose.ROW, tenant, payload, context=about.bytes + part)


async def unseal(tenant: UUID, about: UUID, part: bytes, sealed: str) -> bytes:
    """Open what `seal` sealed. Raises SealError, VaultError."""
    return await sealing.unseal(Purpose.ROW, tenant, sealed, context=about.bytes + part)


async def read_request(tenant: UUID, question: QuestionRow) -> Mapping[str, Any]:
    """The method and params of a question. Raises SealError, VaultError."""
    written: Mapping[str, Any] = orjson.loads(
        await unseal(tenant, question.id, REQUEST, question.request)
    )
    return written


async def _read_message(row: TaskRow) -> str:
    if not row.message:
        return ""
    return (await unseal(row.tenant, row.id, MESSAGE, row.message)).decode()


def _poll_ms() -> int:
    return max(1, round(options().tasks.poll_seconds * 1000))
