"""Send input requests to the client of a session, and wait for the input responses.

A waiting call occupies no task, no thread, and no place among the concurrent calls. The responses
that this process receives are passed to the call in memory. Those that another process stores, and
those to a call that was taken over, are read from rows; a notification of a response is only a hint
to read them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID

import orjson

from mcphost.audit.records import new_id
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import cancelled, questions, session_calls
from mcphost.calls.questions import QuestionStatus, RoundQuestions, StoredQuestion
from mcphost.calls.session_calls import WaitingCall
from mcphost.calls.states import QuestionState
from mcphost.calls.streams import StreamRow
from mcphost.protocol import messages
from mcphost.protocol.legacy.questions import question_params_for
from mcphost.protocol.revisions import Revision
from mcphost.runtime.journal import FAILED, TIMED_OUT, Answer
from mcphost.runtime.ports import SystemClock
from mcphost.sealing.tokens import Purpose, key_id
from mcphost.serving import request_state, sealing
from mcphost.serving.context import Resumed, TakenAnswer
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.events import Waiter, waiters
from mcphost.serving.execution.cancelled_calls import CallCancelledError
from mcphost.serving.execution.deliveries import state_context
from mcphost.serving.legacy import storage
from mcphost.serving.replies import Asking, SealedState
from mcphost.serving.request_state import RequestState

POLL_SECONDS: Final = 1.0
"""The poll interval once input requests have expired, but not yet by the database's clock."""
TICK_SECONDS: Final = 15.0
CANCELLED_REASON: Final = "the client cancelled the request"
MAX_ERROR: Final = 500
"""How much of a client's error message is kept."""

_OVER: Final = "The call that sent this request has ended"
_WITHDRAWN: Final[Mapping[QuestionState, str]] = MappingProxyType(
    {
        QuestionState.OPEN: _OVER,
        QuestionState.CANCELLED: _OVER,
        QuestionState.EXPIRED: "A response to this request is no longer accepted",
    }
)
"""The reason of the notification that cancels an input request, by its state when it is sent."""

_CLOCK = SystemClock()
"""The context of all timers here: each with its own would hold that of its round."""

log = logging.getLogger(__name__)


class AskingCancelledError(Exception):
    """A call was cancelled while it waited for input responses: by its client, or by a user."""


class IncomingResponse:
    """An input response that this process received for a call of its own.

    It is sealed only once. So a repeated commit recognizes its own row. `stored` is resolved when
    the response is committed, with whether it was accepted.
    """

    __slots__ = ("_sealed", "_tenant", "encoded", "question", "stored")

    def __init__(self, tenant: UUID, question: UUID, encoded: bytes) -> None:
        self.question: UUID = question
        self.encoded = encoded
        self.stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._tenant = tenant
        self._sealed = ""

    def sealed(self) -> str:
        """The response, sealed for its row. In a thread that may read the database.

        Raises SealError, VaultError.
        """
        if not self._sealed:
            context = answer_context(self.question)
            self._sealed = storage.seal(self._tenant, context, self.encoded)
        return self._sealed

    def settle(self, outcome: bool | Exception) -> None:
        """Report to the request that brought the response, unless it has been told."""
        if self.stored.done():
            return
        if isinstance(outcome, Exception):
            self.stored.set_exception(outcome)
            self.stored.exception()  # it is handled, even if the request was cancelled
        else:
            self.stored.set_result(outcome)


class OpenRound(Waiter):
    """The input requests of one round that a call of this process waits for, until `close`.

    `round_questions` are the requests, `progress` is what the call had reported before. `sealed` is None if
    another process sent the requests: then this one reads the rows. `store` commits a
    response apart from the start of the next round. `merges`: that start commits the response to
    the last request, `last`. Only for the event loop's thread, except `notify`.
    """

    __slots__ = (
        "_elsewhere",
        "_expired",
        "_merges",
        "_open",
        "_responses",
        "_rests_for",
        "_sealed",
        "_store",
        "_storing",
        "_tick",
        "_timer",
        "last",
        "progress",
        "round_questions",
    )

    def __init__(
        self,
        round_questions: RoundQuestions,
        progress: float | None,
        store: Callable[[IncomingResponse], Awaitable[bool]],
        sealed: SealedState | None = None,
        *,
        merges: bool = False,
    ) -> None:
        super().__init__()
        self.round_questions = round_questions
        self.progress = progress or 0.0
        self.last: IncomingResponse | None = None
        self._sealed = sealed
        self._store = store
        self._merges = merges
        self._open = {question.id for question in round_questions.questions}
        self._responses: dict[UUID, bytes] = {}
        self._storing = 0
        self._elsewhere = sealed is None
        self._expired = False
        self._rests_for: Callable[[], None] | None = None
        self._tick: Callable[[], object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        for question in round_questions.questions:
            _open_rounds[question.id] = self
        waiters.add(self._key, self)

    @property
    def _key(self) -> tuple[UUID, str]:
        return self.round_questions.tenant, self.round_questions.call.hex

    def close(self) -> None:
        """Accept no more responses here. A last one that was not committed is stored as a row."""
        self._rests_for = None
        self._stop_timer()
        waiters.remove(self._key, self)
        for question in self.round_questions.questions:
            _open_rounds.pop(question.id, None)
        if self.last is not None:  # interrupted before it was committed
            self.last.settle(outcome=False)

    def notify(self) -> None:
        """Read the rows: another process may have stored a response. From any thread."""
        self._elsewhere = True
        super().notify()

    async def take(self, response: IncomingResponse) -> bool:
        """Accept the first response to one of the requests; return once it is stored.

        False if it was not accepted. Raises RecordLostError, RecordRefusedError.
        """
        if response.question not in self._open:
            return False
        self._open.discard(response.question)
        self._responses[response.question] = response.encoded
        if self._merges and not (self._open or self._storing or self._elsewhere):
            self.last = response
            self._wake()
            return await asyncio.shield(response.stored)
        self._storing += 1
        stored = False
        try:
            stored = await self._store(response)
        finally:
            self._storing -= 1
            self._elsewhere = self._elsewhere or not stored
            self._wake()
        return stored

    async def read_responses(self) -> Resumed | None:
        """Return what the next round resumes from; None while an input request is open.

        Rows are read only once another process may have changed them, and after the expiry. Raises
        SealError and VaultError for rows that can no longer be read.
        """
        self._notified = False
        if self.last is not None:
            return self._resumed()  # if the rows have changed elsewhere, its commit will tell
        if self._storing:
            return None
        round_questions = self.round_questions
        if self._expired:
            self._expired, self._elsewhere = False, True
            await in_database_unbounded(
                questions.expire, round_questions.call, round_questions.round
            )
        if not self._elsewhere:
            return None if self._open else self._resumed()
        if await in_database_unbounded(
            questions.any_open, round_questions.call, round_questions.round
        ):
            return None
        return await take_in(round_questions.tenant, round_questions.call)

    def rest(self, wake: Callable[[], None], tick: Callable[[], object] | None) -> bool:
        """Call `wake` when `read_responses` may have another result, and until then `tick` every 15 seconds.

        Returns False if that is so already.
        """
        if self._notified:
            return False
        self._rests_for, self._tick = wake, tick
        self._set_timer()
        return True

    def _set_timer(self) -> None:
        seconds = (self.round_questions.expires_at - _CLOCK.now()).total_seconds()
        if seconds <= 0:  # by the database's clock they are still open
            seconds = POLL_SECONDS
        elif self._tick is not None:
            seconds = min(seconds, TICK_SECONDS)
        self._timer = self._loop.call_later(seconds, self._time, context=Context())

    def _time(self) -> None:
        if _CLOCK.now() >= self.round_questions.expires_at:
            self._expired = True
            self._wake()
            return
        if self._tick is not None:
            self._tick()
        self._set_timer()

    def _wake(self) -> None:
        self._notified = True
        if self._rests_for is not None:
            wake, self._rests_for = self._rests_for, None
            self._stop_timer()
            wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def store_last(self) -> None:
        """Store the last response if the next round has ended before it started."""
        last = self.last
        if last is None:
            return
        if not last.stored.done():
            try:
                last.settle(await self._store(last))
            except (RecordLostError, RecordRefusedError) as error:
                last.settle(error)
        self.last = None

    def again(self) -> "OpenRound":
        """Wait on: the last response was not accepted, so the rows have changed elsewhere."""
        self._elsewhere = True
        return self

    def _resumed(self) -> Resumed:
        assert self._sealed is not None
        state = self._sealed.state
        journal = state.journal
        responses = []
        for question in self.round_questions.questions:
            answer = _answer(self._responses[question.id], question.digest, state.version)
            responses.append(TakenAnswer(question.key, question.method, answer))
            journal = journal.with_answer(question.key, answer)
        return Resumed(state, journal, tuple(responses), self._sealed.key_id)


_open_rounds: Final[dict[UUID, OpenRound]] = {}
"""By input request. Only for the event loop's thread."""


def open_round(question: UUID, session: UUID) -> OpenRound | None:
    """The round of a call of this process that waits for this input request of the session."""
    waiting_round = _open_rounds.get(question)
    return (
        None
        if waiting_round is None or waiting_round.round_questions.session != session
        else waiting_round
    )


async def prepare(
    stream: StreamRow, revision: Revision, asking: Asking, sealed: SealedState
) -> tuple[list[bytes], WaitingCall]:
    """Encode the input requests of a round for the session's revision; return them with what is to
    be stored. Raises SealError, VaultError.
    """
    state = sealed.state
    requests: list[bytes] = []
    rows: list[StoredQuestion] = []
    for key, input_request in asking.requests.items():
        identifier = new_id()
        payload = identifier.bytes + stream.session.bytes
        token = await sealing.seal(Purpose.REQUEST_ID, stream.tenant, payload)
        method, params = (
            input_request["method"],
            question_params_for(revision, input_request["method"], input_request["params"]),
        )
        request = {"jsonrpc": "2.0", "id": token, "method": method, "params": params}
        requests.append(orjson.dumps(request))
        rows.append(
            StoredQuestion(identifier, key, state.input_requests[key].question, method, token)
        )
    until = datetime.fromtimestamp(state.expires_at, UTC)
    round_questions = RoundQuestions(
        stream.tenant, stream.session, state.call, state.round, rows, until
    )
    return requests, WaitingCall(asking.state, round_questions)


async def take_in(tenant: UUID, call: UUID) -> Resumed:
    """Return what the next round resumes from, with the input responses to the last round.

    Raises SealError and VaultError as `answered`. Raises `cancellation_of` the call if it was
    cancelled in the database: the round would take the cancelled input requests for expired ones.
    """
    try:
        return await in_database_unbounded(_resumed, tenant, call)
    except AskingCancelledError:
        raise await cancellation_of(call, tenant) from None


async def cancellation_of(call: UUID, tenant: UUID) -> CallCancelledError | asyncio.CancelledError:
    """What ends a call whose row is cancelled: CallCancelledError if a user of the server cancelled it, else
    CancelledError, because the client did."""
    reason = await in_database_unbounded(cancelled.reason_of, call, tenant)
    return (
        asyncio.CancelledError(CANCELLED_REASON) if reason is None else CallCancelledError(reason)
    )


def waiting_of(stream: StreamRow, call: UUID, journal: str) -> tuple[RoundQuestions, float | None]:
    """Restore what a call waits for that another process began, and its progress."""
    state = _state(stream.tenant, call, journal)
    until = datetime.fromtimestamp(state.expires_at, UTC)
    round_questions = RoundQuestions(stream.tenant, stream.session, call, state.round, (), until)
    return round_questions, state.journal.progress


def without_messages(round_questions: RoundQuestions) -> RoundQuestions:
    """The same, without the ids of the requests sent, which are not needed while a call waits."""
    slim = tuple(question._replace(message="") for question in round_questions.questions)
    return round_questions._replace(questions=slim)


def withdrawals(call: UUID, number: int) -> list[bytes]:
    """Notifications that cancel the input requests of this round that were not answered
    (spec: basic/utilities/cancellation)."""
    return [
        messages.notification(
            "notifications/cancelled",
            {"requestId": status.message, "reason": _WITHDRAWN[status.state]},
        )
        for status in questions.statuses(call, number)
        if status.state in _WITHDRAWN
    ]


def _resumed(tenant: UUID, call: UUID) -> Resumed:
    journal = session_calls.journal(call)
    if not journal:
        raise AskingCancelledError
    state = _state(tenant, call, journal)
    statuses = questions.statuses(call, state.round)
    if any(status.state is QuestionState.CANCELLED for status in statuses):
        raise AskingCancelledError
    responses = tuple(_answer_to(tenant, state, status) for status in statuses)
    answered_journal = state.journal
    for response in responses:
        answered_journal = answered_journal.with_answer(response.key, response.answer)
    return Resumed(state, answered_journal, responses, key_id(journal))


def _answer_to(tenant: UUID, state: RequestState, status: QuestionStatus) -> TakenAnswer:
    if status.state is not QuestionState.ANSWERED:
        answer = Answer(status.digest, state.version, {}, TIMED_OUT)
    else:
        encoded = storage.unseal(tenant, answer_context(status.id), status.answer)
        answer = _answer(encoded, status.digest, state.version)
    return TakenAnswer(status.key, status.method, answer)


def _answer(encoded: bytes, digest: str, version: str) -> Answer:
    response = orjson.loads(encoded)
    if "result" in response:
        return Answer(digest, version, response["result"])
    error = {"message": str(response["error"].get("message", ""))[:MAX_ERROR]}
    return Answer(digest, version, error, FAILED)


def answer_context(question: UUID) -> bytes:
    """The context to which a sealed input response is bound."""
    return question.bytes + b"answer"


def _state(tenant: UUID, call: UUID, kept: str) -> RequestState:
    return request_state.read(storage.unseal(tenant, state_context(call), kept))
