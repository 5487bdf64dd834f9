"""The tasks of sessions of revision 2025-11-25 (spec: basic/utilities/tasks).

A task's question is sent only on the stream of a `tasks/result` of that task: to the outbound guard
it is a request of that call, and the answer comes back as to any other. A question is sent by the
latest such request. Earlier ones wait for the task's end only.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import Error
from django.utils import timezone

from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import questions, session_calls
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.protocol.json_values import digest
from mcphost.protocol.legacy import tasks as written
from mcphost.protocol.legacy.questions import needed
from mcphost.protocol.legacy.results import convert_result
from mcphost.protocol.params import required
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.tasks import TaskView, unknown_task
from mcphost.runtime.journal import EMPTY, TIMED_OUT
from mcphost.runtime.outcomes import InputRequest, InputRequired
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import policy, request_state, sealing, shutdown
from mcphost.serving.background import background
from mcphost.serving.context import ClientSession, Incoming, OwnedCall, RoundEnding
from mcphost.serving.database import DatabaseAwayError, in_database
from mcphost.serving.events import Waiter, waiters
from mcphost.serving.execution import commits, stored_tasks
from mcphost.serving.execution.deliveries import state_context
from mcphost.serving.methods import pagination, tasks
from mcphost.serving.options import options
from mcphost.serving.replies import Asking, Delivered, SealedState
from mcphost.serving.request_state import AskedQuestion, RequestState, principal_key
from mcphost.tasks import selectors, services
from mcphost.tasks.selectors import QuestionRow, TaskRow
from mcphost.tasks.states import TaskState
from mcphost.vault.errors import VaultError

CARRIED_SECONDS: Final = 0.1
"""How soon a request looks again for questions that another one is about to send."""
SENT_SECONDS: Final = 3.0
"""How long it waits for that."""
POLL_SECONDS: Final = 15.0
"""How often a blocked `tasks/result` reads its task, besides when that changes."""
CANCELLED: Final = "The task was cancelled"
"""The error of `tasks/result` unless a user of the server cancelled it and said why."""


async def get(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    """`tasks/get`: the state of a task, without its result."""
    return written.task(await tasks.view(await _named_task(incoming), incoming))


async def cancel(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    """`tasks/cancel`: cancel a task, and return its state. Raises ProtocolError once it has ended."""
    row = await _named_task(incoming)
    if row.state is not TaskState.WORKING or not await tasks.cancel(incoming, row):
        raise written.has_ended(await tasks.view(await _named_task(incoming), incoming))
    return written.task(await tasks.view(await _named_task(incoming), incoming))


async def list_tasks(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    """`tasks/list`: a page of the caller's tasks, the oldest first."""
    principal, exchange = incoming.principal, incoming.exchange
    policy.require_scope(principal, policy.CALL)
    after = None
    if "cursor" in exchange.params:
        cursor = required(exchange.params, "cursor", str, "params")
        at, id = orjson.loads(await pagination.read(principal, exchange.method, cursor))
        after = datetime.fromisoformat(at), UUID(id)
    size = options().page_size
    rows = await in_database(
        selectors.page_of, principal.tenant, principal_key(principal), exchange.era, after, size + 1
    )
    shown = [written.task(view) for row in rows[:size] if (view := await _listed(row, incoming))]
    page: dict[str, Any] = {"tasks": shown}
    if len(rows) > size:
        last = rows[size - 1]
        position = orjson.dumps([last.created_at.isoformat(), last.id.hex]).decode()
        page["nextCursor"] = await pagination.issue(principal, exchange.method, position)
    return page


async def result(incoming: Incoming, session: ClientSession) -> Mapping[str, Any]:
    """`tasks/result`: wait for the end of a task and return its result.

    Meanwhile sends the task's questions on the stream of this request. Raises the error of a task
    that failed.
    """
    owned_call = incoming.owned_call
    assert owned_call is not None
    await commits.committed(owned_call.start(()))
    row = await _named_task(incoming)
    await _take_answers(row, owned_call)
    try:
        await in_database(services.carry, row.id, owned_call.call)
        return await _wait(incoming, session, owned_call, row)
    except asyncio.CancelledError:  # before it streams, other requests cannot see that it is over
        background.start(_release_questions(row, owned_call.call))
        raise


async def _wait(
    incoming: Incoming, session: ClientSession, owned_call: OwnedCall, row: TaskRow
) -> Mapping[str, Any]:
    """Wait for the task's end and return its result; an empty one once its questions are sent."""
    give_up_at, unsent = time.monotonic() + SENT_SECONDS, _Unsent()
    with waiters.expecting((row.tenant, row.id.hex), until_drain=True) as waiter:
        while not shutdown.draining():
            current = await in_database(selectors.find, row.id, row.tenant)
            if current is None:
                raise unknown_task()
            if current.state is not TaskState.WORKING:
                return await _ended(current, incoming)
            carries = await _carries(
                current, owned_call.call, session, late=unsent.for_long(current)
            )
            if carries and await _takes(
                current, owned_call.call, late=time.monotonic() > give_up_at
            ):
                await _ask(incoming, owned_call, current)
                return {}
            await waiter.wait(CARRIED_SECONDS if carries else POLL_SECONDS)
    raise unavailable("The server is about to stop; send the request again")


class _Unsent:
    """Since when the questions of a task have been seen unsent, although another request carries them."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: float | None = None

    def for_long(self, row: TaskRow) -> bool:
        """Whether that is for longer than a request needs to send them."""
        if not row.open or any(question.sender is not None for question in row.open):
            self._since = None
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now > self._since + SENT_SECONDS


async def _release_questions(row: TaskRow, call: UUID) -> None:
    """Let the next request that can send the task's questions do so instead of this one."""
    with suppress(Error, DatabaseAwayError):  # then the next does so once they are late
        if await in_database(services.carry_instead, row.id, None, call):
            waiters.notify((row.tenant, row.id.hex))


async def _listed(row: TaskRow, incoming: Incoming) -> TaskView | None:
    """The state of a task; None if it can no longer be read."""
    with suppress(ProtocolError):
        return await tasks.view(row, incoming)
    return None


async def _named_task(incoming: Incoming) -> TaskRow:
    required(incoming.exchange.params, "taskId", str, "params")
    return await tasks.find_task(incoming)


async def _ended(row: TaskRow, incoming: Incoming) -> Mapping[str, Any]:
    view = await tasks.view(row, incoming)
    if view.error is not None:
        raise ProtocolError(view.error["code"], view.error["message"], view.error.get("data"))
    if view.result is None:
        raise ProtocolError(INTERNAL_ERROR, view.message or CANCELLED)
    revision = REVISIONS[incoming.exchange.revision]
    return written.related(convert_result(revision, "tools/call", view.result), view.id)


async def _take_answers(row: TaskRow, owned_call: OwnedCall) -> None:
    """Store the answers that came on the stream."""
    for response in owned_call.resumed.responses:
        if response.answer.failure == TIMED_OUT:  # or a later request has taken the question
            continue
        question = UUID(hex=response.answer.question)
        try:
            await stored_tasks.store_answer(
                row, question, response.answer.result, response.answer.failure
            )
        except (RecordLostError, RecordRefusedError, SealError, VaultError) as error:
            raise tasks.not_stored(error) from None


async def _ask(incoming: Incoming, owned_call: OwnedCall, row: TaskRow) -> None:
    """End this round of the request with the task's questions."""
    requests = {question.key: await _request(row, question) for question in row.open}
    state = _state(incoming, owned_call, row)
    try:
        token = await sealing.seal(
            Purpose.ROW,
            row.tenant,
            request_state.write(state),
            context=state_context(owned_call.call),
        )
    except (SealError, VaultError) as error:
        raise tasks.not_stored(error) from None
    input_requests = tuple(
        InputRequest(key, request["method"], request["params"]) for key, request in requests.items()
    )
    delivered = Delivered(
        InputRequired(input_requests, EMPTY),
        Asking(requests, token),
        SealedState(state, key_id(token)),
    )
    watch = partial(_Watch, row, owned_call.call)
    await owned_call.conclude(delivered, RoundEnding((), after_commit=watch))


async def _can_ask(row: TaskRow, session: ClientSession) -> bool:
    """Whether the client of this session can answer all open questions of the task."""
    for question in row.open:
        request = await stored_tasks.read_request(row.tenant, question)
        if not session.client.can(needed(request["method"], request["params"])):
            return False
    return True


async def _carries(row: TaskRow, call: UUID, session: ClientSession, *, late: bool) -> bool:
    """Whether this request sends the task's questions: the latest that can, unless it is over, or
    `late`: a request of a process that has died may have left no trace.

    So that of a client that has disconnected sends none, and however many wait, one of them polls.
    Nor does it send questions that have expired, which the task is about to notice.
    """
    if not row.open or min(question.expires_at for question in row.open) <= timezone.now():
        return False
    can, before = await _can_ask(row, session), row.carrier
    if before == call:
        if not can:
            await in_database(services.carry_instead, row.id, None, call)
            waiters.notify((row.tenant, row.id.hex))
        return can
    if not can:
        return False
    if not (late or before is None or await in_database(session_calls.is_over, before)):
        return False
    return await in_database(services.carry_instead, row.id, call, before)


async def _takes(row: TaskRow, call: UUID, *, late: bool) -> bool:
    """Take the task's open questions, from the request that has sent them, if any.

    What was sent expires before it is sent again: so a question is on one stream at a time. A sender
    that has sent none is about to, unless it is over, or it is `late` for that: its process has died.
    """
    for question in row.open:
        if question.sender not in (None, call):
            sent = await in_database(questions.expire_digests, row.tenant, [question.id.hex])
            if not (sent or late or await in_database(session_calls.is_over, question.sender)):
                return False
    return await in_database(services.send, row.open, call)


async def _request(row: TaskRow, question: QuestionRow) -> Mapping[str, Any]:
    request = await stored_tasks.read_request(row.tenant, question)
    return {**request, "params": written.related(request["params"], row.id.hex)}


def _state(incoming: Incoming, owned_call: OwnedCall, row: TaskRow) -> RequestState:
    """The state of this request while it waits for the answers to all open questions."""
    exchange, now = incoming.exchange, time.time()
    number = 1 if owned_call.resumed.state is None else owned_call.resumed.state.round + 1
    arguments = digest({"taskId": row.id.hex})
    return RequestState(
        bound=request_state.StateBinding(
            principal_key(incoming.principal), exchange.method, row.id.hex, arguments
        ),
        call=owned_call.call,
        round=number,
        requests_made=0,
        shed=False,
        issued_at=now,
        expires_at=min(question.expires_at for question in row.open).timestamp(),
        version="",
        input_requests={
            question.key: AskedQuestion(question.method, question.id.hex) for question in row.open
        },
        journal=EMPTY,
        claim=number + 1,
    )


class _Watch(Waiter):
    """Ends the wait of a `tasks/result` for answers that its task needs no more.

    The request rests, as every call of a session that waits for answers. Its questions expire, so
    that it goes on and finds what became of the task. Begins when the questions are stored, and looks
    at once: the task may have changed since `row` was read.
    """

    __slots__ = ("_call", "_key", "_questions")

    def __init__(self, row: TaskRow, call: UUID) -> None:
        super().__init__()
        self._questions = {question.id for question in row.open}
        self._call = call
        self._key = (row.tenant, row.id.hex)
        waiters.add(self._key, self)
        self.notify()

    def _wake(self) -> None:
        background.start(self._expire_closed())

    async def _expire_closed(self) -> None:
        tenant, task = self._key
        row = await in_database(selectors.find, UUID(hex=task), tenant)
        open_questions = set() if row is None else {question.id for question in row.open}
        closed_questions = self._questions - open_questions
        if closed_questions:
            await in_database(
                questions.expire_digests, tenant, [question.hex for question in closed_questions]
            )
        if closed_questions or not await in_database(questions.any_of_call, self._call):
            waiters.discard(self._key, self)
