"""Rounds that may process input responses only once: one runs, and repetitions get its reply."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.writer.writer import writer
from mcphost.protocol.errors import INVALID_PARAMS, ProtocolError
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, Answer
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.serving.context import Resumed, TakenAnswer, Turn
from mcphost.serving.database import in_database
from mcphost.serving.execution import rounds
from mcphost.serving.limits import REFUSALS_PER_MINUTE
from mcphost.serving.replies import Answered, Reply
from mcphost.serving.request_state import AskedQuestion, RequestState
from tests.audit.ciphers import XorCipher
from tests.kinds.rounds import TENANT, ports
from tests.serving.defined_rounds import turn

pytestmark = pytest.mark.django_db(transaction=True)

YES = {"action": "accept", "content": {"sure": True}}
NO = {"action": "decline"}


@pytest.fixture(autouse=True)
def _writing(transactional_db: None) -> Iterator[None]:
    """A running writer, with a cipher that needs no keys."""
    before = payload_cipher()
    set_payload_cipher(XorCipher())
    writer.start()
    yield
    set_payload_cipher(before)
    assert writer.stop(20)


class Counting:
    """A program that returns how often it ran."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self) -> Outcome:
        self.ran += 1
        return Complete({"content": [{"type": "text", "text": f"run {self.ran}"}]})


Does = Callable[[], Awaitable[Outcome]]


def _back(what: Does, call: UUID, answer: object = YES, *, asked: bool = True) -> Turn:
    """The second request of a call to a tool that is not read-only, with an input response."""
    plain = turn(what, read_only=False)
    now = time.time()
    questions = {"sure": AskedQuestion("elicitation/create", "q")} if asked else {}
    state = RequestState(plain.bound, call, 1, 1, False, now, now + 60, "1", questions, EMPTY, 2)
    taken = (TakenAnswer("sure", "elicitation/create", Answer("q", "1", answer)),) if asked else ()
    return plain._replace(
        call=plain.call._replace(id=call, round=2),
        primitive=replace(plain.primitive, claims=True),
        resumed=Resumed(state, EMPTY, taken, "00000000"),
    )


def _text(reply: Reply) -> str:
    assert isinstance(reply, Answered)
    text: str = reply.result["content"][0]["text"]
    return text


async def _refused(what: Turn) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        await rounds.run(what, ports())
    return refused.value


async def _recorded(call: UUID) -> list[tuple[str, str]]:
    rows = Entry.objects.filter(call=call).order_by("id").values_list("action", "outcome")
    return await in_database(lambda: list(rows))


async def test_equal_responses_get_the_same_reply_without_running_again() -> None:
    counting, call = Counting(), uuid4()
    for _ in range(2):
        assert _text(await rounds.run(_back(counting, call), ports())) == "run 1"
    assert counting.ran == 1
    assert await _recorded(call) == [
        ("answer.received", "accept"),
        ("round.started", ""),
        ("round.finished", "complete"),
        ("answer.repeated", "repeated"),
    ]


async def test_different_responses_are_refused_like_an_invalid_state() -> None:
    counting, call = Counting(), uuid4()
    await rounds.run(_back(counting, call), ports())
    error = await _refused(_back(counting, call, NO))
    assert (error.code, error.data) == (INVALID_PARAMS, {"reason": "invalid_request_state"})
    assert counting.ran == 1
    rows = Entry.objects.filter(action="state.refused").values_list("call", "reason")
    assert await in_database(lambda: list(rows)) == [(call, "other-answers")]


async def test_a_disconnect_leaves_the_round_to_a_retry_with_the_same_responses() -> None:
    begun, call = asyncio.Event(), uuid4()

    async def waits() -> Outcome:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    running = asyncio.create_task(rounds.run(_back(waits, call), ports()))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    counting = Counting()
    assert _text(await rounds.run(_back(counting, call), ports())) == "run 1"
    assert (await _refused(_back(counting, call, NO))).code == INVALID_PARAMS


def test_rounds_of_anonymous_callers_are_always_claimed() -> None:
    nobody = Principal(PrincipalKind.ANONYMOUS, TENANT)
    back = _back(Counting(), uuid4())
    harmless = back._replace(primitive=replace(back.primitive, claims=False))
    assert not harmless.is_claimed
    assert harmless._replace(call=harmless.call._replace(principal=nobody)).is_claimed
    assert not turn(Counting()).is_claimed


def test_a_round_without_responses_keeps_its_claim_number_and_its_time() -> None:
    back = _back(Counting(), uuid4())
    empty = back._replace(resumed=back.resumed._replace(responses=()))
    shed = _back(Counting(), uuid4(), asked=False)
    state = back.resumed.state
    assert state is not None
    assert [each.resumed.claim for each in (turn(Counting()), back, empty, shed)] == [1, 2, 2, 2]
    assert [each.next_claim for each in (turn(Counting()), back, empty, shed)] == [2, 3, 2, 3]
    assert empty.answer_by(1800, 5.0) == state.expires_at
    assert [each.answer_by(1800, 5.0) for each in (turn(Counting()), back, shed)] == [1805.0] * 3


async def test_an_answered_input_request_is_not_sent_again() -> None:
    counting, call = Counting(), uuid4()
    await rounds.run(_back(counting, call), ports())
    back = _back(counting, call)
    error = await _refused(back._replace(resumed=back.resumed._replace(responses=())))
    assert (error.code, error.data) == (INVALID_PARAMS, {"reason": "invalid_request_state"})
    assert counting.ran == 1
    rows = Entry.objects.filter(action="state.refused").values_list("call", "reason")
    assert await in_database(lambda: list(rows)) == [(call, "answered")]


async def test_an_unanswered_input_request_is_sent_again_every_time() -> None:
    counting, call = Counting(), uuid4()
    for _ in range(3):
        back = _back(counting, call)
        await rounds.run(back._replace(resumed=back.resumed._replace(responses=())), ports())
    assert counting.ran == 3
    await rounds.run(_back(counting, call), ports())
    assert counting.ran == 4


async def test_the_number_of_recorded_repetitions_per_minute_is_limited() -> None:
    counting, call = Counting(), uuid4()
    for _ in range(REFUSALS_PER_MINUTE + 5):
        await rounds.run(_back(counting, call), ports())
    actions = [action for action, _ in await _recorded(call)]
    assert (counting.ran, actions.count("answer.repeated")) == (1, REFUSALS_PER_MINUTE)
