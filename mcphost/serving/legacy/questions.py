"""Send input requests to the client of a session, and wait for the input responses.

A waiting call occupies only its own task: no thread, and no place among the concurrent calls. The
requests are rows; a notification of a response is only a hint to read them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from mcphost.audit.records import new_id
from mcphost.calls import questions
from mcphost.calls.questions import QuestionStatus, RoundQuestions, StoredQuestion
from mcphost.calls.session_calls import WaitingCall
from mcphost.calls.states import QuestionState
from mcphost.calls.streams import StreamRow
from mcphost.protocol import messages
from mcphost.protocol.legacy.questions import params_of
from mcphost.protocol.results import INPUT_REQUIRED
from mcphost.protocol.revisions import Revision
from mcphost.runtime.journal import FAILED, TIMED_OUT, Answer
from mcphost.runtime.ports import SystemClock
from mcphost.sealing.tokens import Purpose, key_id
from mcphost.serving import request_state
from mcphost.serving.context import Resumed, TakenAnswer
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.events import Waiter, waiters
from mcphost.serving.execution.deliveries import state_context
from mcphost.serving.legacy import storage
from mcphost.serving.request_state import RequestState
from mcphost.vault import sealer

LOOK_SECONDS: Final = 1.0
"""The poll interval once input requests have expired, but not yet by the database's clock."""
TICK_SECONDS: Final = 15.0
CANCELLED_REASON: Final = "the client cancelled the request"
LONGEST_ERROR: Final = 500
"""How much of a client's error message is kept."""

_CLOCK = SystemClock()

log = logging.getLogger(__name__)


class CalledOffError(Exception):
    """The client has cancelled a request while its call waited for input responses."""


class WantedAnswers(NamedTuple):
    """The input requests of a round, by the author's keys; `kept` is the sealed request state."""

    requests: Mapping[str, Mapping[str, Any]]
    kept: str


def wanted_in(result: Mapping[str, Any]) -> WantedAnswers | None:
    """The input requests in a method's result; None if it is a final result."""
    if result.get("resultType") != INPUT_REQUIRED:
        return None
    return WantedAnswers(result.get("inputRequests", {}), result["requestState"])


class Waiting(NamedTuple):
    """A waiting call, and the progress that it had reported when it began to wait."""

    call: WaitingCall
    progress: float


class PreparedRequests(NamedTuple):
    """Input requests ready to be sent: the encoded messages, and what is to be stored."""

    requests: list[bytes]
    waiting: Waiting


def put(
    stream: StreamRow, call: UUID, revision: Revision, wanted: WantedAnswers
) -> PreparedRequests:
    """Encode the input requests of a round for the session's revision.

    Raises SealError, VaultError.
    """
    state = _state(stream.tenant, call, wanted.kept)
    requests: list[bytes] = []
    rows: list[StoredQuestion] = []
    for key, one in wanted.requests.items():
        identifier = new_id()
        message = _request(stream, revision, identifier, one)
        kept = storage.seal(stream.tenant, message_context(identifier), message)
        rows.append(StoredQuestion(identifier, key, state.asked[key].question, one["method"], kept))
        requests.append(message)
    until = datetime.fromtimestamp(state.expires_at, UTC)
    asked = RoundQuestions(stream.tenant, stream.session, call, state.round, rows, until)
    return PreparedRequests(requests, _waiting(state, WaitingCall(wanted.kept, asked)))


def _waiting(state: RequestState, call: WaitingCall) -> Waiting:
    return Waiting(call, state.journal.progress or 0.0)


def _request(
    stream: StreamRow, revision: Revision, question: UUID, one: Mapping[str, Any]
) -> bytes:
    token = sealer.seal(Purpose.REQUEST_ID, stream.tenant, question.bytes + stream.session.bytes)
    method, params = one["method"], one["params"]
    said = params_of(revision, method, params)
    return orjson.dumps({"jsonrpc": "2.0", "id": token, "method": method, "params": said})


async def answered(
    stream: StreamRow, call: UUID, waiting: WaitingCall, tick: Callable[[], object] | None
) -> Resumed:
    """Wait until no input request of the round is open; return what the next round resumes from.

    `tick` is called every 15 seconds. The database is queried only after a notification or at the
    expiry. Raises SealError and VaultError for rows that can no longer be read.
    """
    number, until = waiting.asked.round, waiting.asked.expires_at
    with waiters.expecting((stream.tenant, call.hex)) as waiter:
        while await in_database_unbounded(questions.any_open, call, number):
            if not await _hear(waiter, until, tick):
                await in_database_unbounded(questions.expire, call, number)
    return await take_in(stream.tenant, call, waiting.journal)


async def take_in(tenant: UUID, call: UUID, journal: str) -> Resumed:
    """Return what the next round resumes from, with the input responses to the last round.

    Raises SealError and VaultError as `answered`. Raises asyncio.CancelledError if the call was
    cancelled in the database before this process was notified: the round would take the cancelled
    input requests for expired ones.
    """
    try:
        return await in_database_unbounded(_resumed, tenant, call, journal)
    except CalledOffError:
        raise asyncio.CancelledError(CANCELLED_REASON) from None


async def _hear(waiter: Waiter, until: datetime, tick: Callable[[], object] | None) -> bool:
    """Wait for a notification, at most until `until`; return whether there was one."""
    if _CLOCK.now() >= until:
        await waiter.wait(LOOK_SECONDS)
    while (left := (until - _CLOCK.now()).total_seconds()) > 0:
        if await waiter.wait(left if tick is None else min(left, TICK_SECONDS)):
            return True
        if tick is not None:
            tick()
    return False


def waiting_of(stream: StreamRow, call: UUID, journal: str) -> Waiting:
    """Restore what a call waits for that another process began."""
    state = _state(stream.tenant, call, journal)
    until = datetime.fromtimestamp(state.expires_at, UTC)
    asked = RoundQuestions(stream.tenant, stream.session, call, state.round, (), until)
    return _waiting(state, WaitingCall(journal, asked))


def withdrawals(stream: StreamRow, call: UUID, number: int) -> list[bytes]:
    """Notifications that cancel the input requests of this round that were not answered
    (spec: basic/utilities/cancellation)."""
    given_up = (QuestionState.OPEN, QuestionState.CANCELLED)
    rows = [each for each in questions.statuses(call, number) if each.state in given_up]
    return [_withdrawal(stream.tenant, each) for each in rows]


def _withdrawal(tenant: UUID, question: QuestionStatus) -> bytes:
    context = message_context(question.id)
    request = orjson.loads(storage.unseal(tenant, context, question.message))
    params = {"requestId": request["id"], "reason": "The call that sent this request has ended"}
    return messages.notification("notifications/cancelled", params)


def _resumed(tenant: UUID, call: UUID, journal: str) -> Resumed:
    state = _state(tenant, call, journal)
    statuses = questions.statuses(call, state.round)
    if any(each.state is QuestionState.CANCELLED for each in statuses):
        raise CalledOffError
    taken = tuple(_taken(tenant, state, each) for each in statuses)
    known = state.journal
    for one in taken:
        known = known.with_answer(one.key, one.answer)
    return Resumed(state, known, taken, key_id(journal))


def _taken(tenant: UUID, state: RequestState, status: QuestionStatus) -> TakenAnswer:
    made = partial(Answer, status.digest, state.version)
    if status.state is not QuestionState.ANSWERED:
        return TakenAnswer(status.key, status.method, made({}, TIMED_OUT))
    said = orjson.loads(storage.unseal(tenant, answer_context(status.id), status.answer))
    if "result" in said:
        return TakenAnswer(status.key, status.method, made(said["result"]))
    error = {"message": str(said["error"].get("message", ""))[:LONGEST_ERROR]}
    return TakenAnswer(status.key, status.method, made(error, FAILED))


def message_context(question: UUID) -> bytes:
    """The context to which the sealed message of an input request is bound."""
    return question.bytes + b"message"


def answer_context(question: UUID) -> bytes:
    """The context to which a sealed input response is bound."""
    return question.bytes + b"answer"


def _state(tenant: UUID, call: UUID, kept: str) -> RequestState:
    return request_state.read(storage.unseal(tenant, state_context(call), kept))
