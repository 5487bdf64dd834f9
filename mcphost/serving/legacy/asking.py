"""Asking the client of a session what a round does not know, and waiting for what it says.

Nothing is held meanwhile but the call's own task: no thread, no place among the calls at once. What is
waited for lies in rows; news of an answer is a hint to look.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from mcphost.audit.records import new_id
from mcphost.calls import questions
from mcphost.calls.questions import Asked, Question, Standing
from mcphost.calls.states import QuestionState
from mcphost.calls.streamed import Waiting
from mcphost.calls.streams import StreamRow
from mcphost.protocol import messages
from mcphost.protocol.legacy.questions import params_of
from mcphost.protocol.results import INPUT_REQUIRED
from mcphost.protocol.revisions import Revision
from mcphost.runtime.journal import FAILED, TIMED_OUT, Answer
from mcphost.runtime.ports import SystemClock
from mcphost.sealing.tokens import Purpose, key_id
from mcphost.serving import states
from mcphost.serving.deliveries import legacy
from mcphost.serving.legacy import keeping
from mcphost.serving.patience import patiently
from mcphost.serving.resumed import Resumed, Taken
from mcphost.serving.states import State
from mcphost.serving.waiting import waiters
from mcphost.vault import sealer

LOOK_SECONDS: Final = 1.0
"""How long to wait on where the time is over, but not yet by the database's clock."""
TICK_SECONDS: Final = 15.0
LONGEST_ERROR: Final = 500
"""How much of a client's error message is kept."""

_CLOCK = SystemClock()

log = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """What a round asks for, by the author's keys, and what the next one goes on from, sealed."""

    requests: Mapping[str, Mapping[str, Any]]
    kept: str


def wanted_in(result: Mapping[str, Any]) -> Wanted | None:
    """What a result of a method asks for, if it is not the answer."""
    if result.get("resultType") != INPUT_REQUIRED:
        return None
    return Wanted(result["inputRequests"], result["requestState"])


class Pause(NamedTuple):
    """What a call waits for, and how far it said that it was when it began to."""

    waiting: Waiting
    told: float


class Put(NamedTuple):
    """Questions that are ready to be sent: the requests, and what is written of them."""

    requests: list[bytes]
    pause: Pause


def put(stream: StreamRow, call: UUID, revision: Revision, wanted: Wanted) -> Put:
    """Put what a round asks into the words of the revision. Raises SealError, VaultError."""
    state = _state(stream.tenant, call, wanted.kept)
    requests: list[bytes] = []
    rows: list[Question] = []
    for key, one in wanted.requests.items():
        identifier = new_id()
        message = _request(stream, revision, identifier, one)
        place = identifier.bytes + b"message"
        kept = keeping.seal(stream.tenant, place, message)
        rows.append(Question(identifier, key, state.asked[key].question, one["method"], kept))
        requests.append(message)
    until = datetime.fromtimestamp(state.expires_at, UTC)
    asked = Asked(stream.tenant, stream.session, call, state.round, rows, until)
    return Put(requests, _pause(state, Waiting(wanted.kept, asked)))


def _pause(state: State, waiting: Waiting) -> Pause:
    return Pause(waiting, state.journal.progress or 0.0)


def _request(
    stream: StreamRow, revision: Revision, question: UUID, one: Mapping[str, Any]
) -> bytes:
    token = sealer.seal(Purpose.REQUEST_ID, stream.tenant, question.bytes + stream.session.bytes)
    method, params = one["method"], one["params"]
    said = params_of(revision, method, params, question.hex)
    return orjson.dumps({"jsonrpc": "2.0", "id": token, "method": method, "params": said})


async def answered(
    stream: StreamRow, call: UUID, waiting: Waiting, tick: Callable[[], object] | None
) -> Resumed:
    """Wait until no question of the round is open; what the next one goes on from. `tick` is called
    every 15 seconds.

    The database is asked when there is news, not while there is none. Raises SealError and VaultError
    for what can no longer be read.
    """
    number, until = waiting.asked.round, waiting.asked.expires_at
    with waiters.expecting((stream.tenant, call.hex)) as news:
        while await patiently(questions.any_open, call, number):
            if not await _hear(news, until, tick):
                await patiently(questions.expire, call, number)
    return await patiently(resumed, stream.tenant, call, waiting.journal)


async def _hear(news: asyncio.Event, until: datetime, tick: Callable[[], object] | None) -> bool:
    """Wait for news, or until the time is over; whether there was any."""
    if _CLOCK.now() >= until:
        await _is_set(news, LOOK_SECONDS)
    while (left := (until - _CLOCK.now()).total_seconds()) > 0:
        if await _is_set(news, left if tick is None else min(left, TICK_SECONDS)):
            news.clear()
            return True
        if tick is not None:
            tick()
    news.clear()
    return False


async def _is_set(news: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
    return news.is_set()


def pause_of(stream: StreamRow, call: UUID, journal: str) -> Pause:
    """What a call waits for that was begun by another process."""
    state = _state(stream.tenant, call, journal)
    until = datetime.fromtimestamp(state.expires_at, UTC)
    asked = Asked(stream.tenant, stream.session, call, state.round, (), until)
    return _pause(state, Waiting(journal, asked))


def withdrawals(stream: StreamRow, call: UUID, number: int) -> list[bytes]:
    """What tells the client that nobody waits any more for what this round asked
    (spec: basic/utilities/cancellation)."""
    given_up = (QuestionState.OPEN, QuestionState.CANCELLED)
    rows = [each for each in questions.standing(call, number) if each.state in given_up]
    return [_withdrawal(stream.tenant, each) for each in rows]


def _withdrawal(tenant: UUID, question: Standing) -> bytes:
    place = question.id.bytes + b"message"
    request = orjson.loads(keeping.unseal(tenant, place, question.message))
    params = {"requestId": request["id"], "reason": "The call that asked this is over"}
    return messages.notification("notifications/cancelled", params)


def resumed(tenant: UUID, call: UUID, journal: str) -> Resumed:
    """What the next round goes on from, with the answers to what the last one asked."""
    state = _state(tenant, call, journal)
    standing = questions.standing(call, state.round)
    taken = tuple(_taken(tenant, state, each) for each in standing)
    known = state.journal
    for one in taken:
        known = known.with_answer(one.key, one.answer)
    return Resumed(state, known, taken, key_id(journal))


def _taken(tenant: UUID, state: State, standing: Standing) -> Taken:
    made = partial(Answer, standing.digest, state.version)
    if standing.state is not QuestionState.ANSWERED:
        return Taken(standing.key, standing.method, made({}, TIMED_OUT))
    said = orjson.loads(keeping.unseal(tenant, place_of(standing.id), standing.answer))
    if "result" in said:
        return Taken(standing.key, standing.method, made(said["result"]))
    error = {"message": str(said["error"].get("message", ""))[:LONGEST_ERROR]}
    return Taken(standing.key, standing.method, made(error, FAILED))


def place_of(question: UUID) -> bytes:
    """Where the answer to a question lies."""
    return question.bytes + b"answer"


def _state(tenant: UUID, call: UUID, kept: str) -> State:
    return states.read(keeping.unseal(tenant, legacy.place_of(call), kept))
