"""`tasks/get`, `tasks/update` and `tasks/cancel` (extension io.modelcontextprotocol/tasks)."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.observability import counters
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.protocol.params import check_responses
from mcphost.protocol.tasks import (
    TaskView,
    declared,
    empty_result,
    extension_missing,
    get_task_result,
    parse_task_id,
    unknown_task,
)
from mcphost.sealing.tokens import SealError
from mcphost.serving import limits, policy
from mcphost.serving.context import Incoming
from mcphost.serving.database import BatchReader
from mcphost.serving.execution import audit_records, resume, stored_tasks
from mcphost.serving.first_use import with_shapes
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import server_info
from mcphost.serving.request_state import principal_key
from mcphost.tasks import changes, selectors
from mcphost.tasks.selectors import QuestionRow, TaskKey, TaskRow
from mcphost.tasks.states import TaskState
from mcphost.vault.errors import VaultError

log = logging.getLogger(__name__)

tasks_of_callers = BatchReader(selectors.find_all)
"""What clients poll: many at a time."""


async def get_task(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Return the state of a task of the caller, with its open questions or its result."""
    row = await _declared_task(incoming)
    return get_task_result(await view(row, incoming), _server(incoming))


async def update_task(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Store answers to the open questions of a task. Answers to other keys are ignored.

    Returns once they are stored; the task goes on when all its questions have answers.
    """
    row = await _declared_task(incoming)
    responses = incoming.exchange.params["inputResponses"]
    answered = [
        (question, responses[question.key]) for question in row.open if question.key in responses
    ]
    await with_shapes(check_responses, {question.key: response for question, response in answered})
    for question, response in answered:
        resume.check_kind(question.key, question.method, response)
    await asyncio.gather(*(_store(row, question, response) for question, response in answered))
    return empty_result(_server(incoming))


async def cancel_task(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Cancel a task, and the round that runs. Does nothing once it has ended."""
    row = await _declared_task(incoming)
    if row.state is TaskState.WORKING:
        await cancel(incoming, row)
    return empty_result(_server(incoming))


async def _declared_task(incoming: Incoming) -> TaskRow:
    if not declared(incoming.exchange.meta.capabilities):
        raise extension_missing()
    return await find_task(incoming)


async def find_task(incoming: Incoming) -> TaskRow:
    """The task that the request names.

    Raises ProtocolError: the same for ids of no task, of other callers, of expired tasks and of
    clients of another revision.
    """
    exchange, principal = incoming.exchange, incoming.principal
    policy.require_scope(principal, policy.CALL)
    task = parse_task_id(exchange.params["taskId"])
    if task is None:
        raise unknown_task()
    caller = principal_key(principal)
    limits.count_poll(task.hex, caller)
    row = await tasks_of_callers.get(TaskKey(task, incoming.tenant.id, caller, exchange.era))
    if row is None:
        raise unknown_task()
    return row


async def view(row: TaskRow, incoming: Incoming) -> TaskView:
    """The state of a task for its client. Raises ProtocolError if it can no longer be read."""
    try:
        return await stored_tasks.read_view(row, _server(incoming))
    except (SealError, VaultError) as error:
        stored_tasks.log_unreadable(row, error)
        raise ProtocolError(INTERNAL_ERROR, stored_tasks.UNREADABLE) from None


async def _store(row: TaskRow, question: QuestionRow, response: Mapping[str, Any]) -> None:
    try:
        await stored_tasks.store_answer(row, question.id, response)
    except (RecordLostError, RecordRefusedError, SealError, VaultError) as error:
        raise not_stored(error) from None


async def cancel(incoming: Incoming, row: TaskRow) -> bool:
    """Cancel a task, and the round that runs; False if it has ended. Raises ProtocolError."""
    record = audit_records.task_cancelled(incoming, row.call, row.round, row.tool)
    try:
        was_working = await writer.submit_if(changes.cancel(row.id, row.tenant), (record,))
    except (RecordLostError, RecordRefusedError) as error:
        raise not_stored(error) from None
    if was_working:
        counters.tasks_ended.add(TaskState.CANCELLED)
    return was_working


def not_stored(error: Exception) -> ProtocolError:
    """The error for a request whose change could not be stored."""
    if isinstance(error, RecordLostError | RecordRefusedError):
        log.error("a change of a task could not be stored: %s", error)
        return unavailable("The server could not record this; send it again")
    return ProtocolError(INTERNAL_ERROR, "This cannot be recorded, and a retry will not help")


def _server(incoming: Incoming) -> Mapping[str, Any]:
    return server_info(incoming.tenant.title, incoming.tenant.icon)
