"""Calls that wait without a task: what wakes them, what interrupts them, and what is left of them."""

import asyncio
from typing import Any

import pytest

from mcphost.audit.models import Entry
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.sealing.tokens import Purpose, Reason, SealError
from mcphost.serving import sealing
from mcphost.serving.database import in_database
from mcphost.serving.events import waiters
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import questions
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _only, _text, _waits

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_of_other_tests() -> None:
    """Forget the calls of other tests, whose event loops have ended."""
    for each in (questions._open_rounds, waiters._waiting, calls._calls, calls._bytes):
        each.clear()


async def _rests(caller: Caller, tool: str = "paint", **arguments: Any) -> Shown:
    shown = await _waits(caller, tool, **arguments)
    await true(lambda: all(each._task is None for each in calls.under_way))
    return shown


async def _nothing_is_left() -> None:
    await true(lambda: not calls.under_way)
    assert (questions._open_rounds, waiters._waiting) == ({}, {})
    assert (calls._calls.total(), calls._bytes.total()) == (0, 0)


async def _ends() -> list[str]:
    """The outcomes of the recorded ends of rounds, in their order."""
    finished = Entry.objects.filter(action="round.finished").order_by("id")
    return await in_database(lambda: [one.outcome for one in finished])


async def test_a_call_that_rests_has_no_task_and_leaves_nothing_behind(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _rests(caller)
    assert len(questions._open_rounds) == 1
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    await _nothing_is_left()


async def test_an_answer_to_a_call_that_is_interrupted_at_once_is_not_waited_for(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _rests(caller)
    call = _only()
    answering = asyncio.ensure_future(caller.answer(shown.requests[0], accept(colour="red")))
    while call._resting:  # the answer wakes the call  # noqa: ASYNC110
        await asyncio.sleep(0)
    call.revoke(ProtocolError(UNAUTHORIZED, "not any more"))
    await asyncio.wait_for(answering, PATIENCE)
    await shown.whole()
    assert shown.messages[-1]["error"]["message"] == "not any more"
    assert module("asking").did == []
    await _nothing_is_left()


async def test_two_answers_at_once_to_one_question_start_one_round(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _rests(caller)
    colours = ("red", "green", "blue")
    every = [caller.answer(shown.requests[0], accept(colour=colour)) for colour in colours]
    await asyncio.wait_for(asyncio.gather(*every), PATIENCE)
    await shown.whole()
    assert module("asking").did in [[f"a wall {colour}"] for colour in colours]
    answered = Entry.objects.filter(action="answer.received")
    assert await in_database(answered.count) == 1
    await _nothing_is_left()


async def test_answers_at_once_to_all_questions_of_a_round_start_it_once(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("both")
    requests = await shown.asked(2)
    given = {"colour": accept(colour="red"), "size": accept(size=3)}
    by_field = [given[next(iter(_fields(one)))] for one in requests]
    answers = [caller.answer(*each) for each in zip(requests, by_field, strict=True)]
    await asyncio.wait_for(asyncio.gather(*answers), PATIENCE)
    await shown.whole()
    assert _text(shown) == "red 3"
    assert await _ends() == ["input_required", "complete"]
    await _nothing_is_left()


def _fields(request: Any) -> Any:
    return request["params"]["requestedSchema"]["properties"]


async def test_a_round_whose_requests_cannot_be_sent_is_recorded_all_the_same(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sealing.seal

    async def seal(purpose: Purpose, *what: Any, **more: Any) -> str:
        if purpose is Purpose.REQUEST_ID:
            raise SealError(Reason.TOO_LARGE)
        return await real(purpose, *what, **more)

    caller = await Caller.at(asking)
    monkeypatch.setattr(sealing, "seal", seal)
    answer = await asyncio.wait_for(caller.call("paint", what="a wall").settled(), PATIENCE)
    assert answer is not None
    assert answer.error is not None
    assert await _ends() == ["input_required"]
    await _nothing_is_left()
