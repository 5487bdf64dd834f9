"""Calls of sessions that send input requests: on their own request's stream, with long waits."""

import asyncio
from typing import Any

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_REFUSED
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import CallState, QuestionState
from mcphost.protocol.legacy.opening import LegacyResponse
from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.serving.execution.deliveries import MOST_QUESTIONS
from mcphost.serving.limits import REFUSALS_PER_MINUTE
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept

pytestmark = pytest.mark.django_db(transaction=True)


def _text(shown: Shown) -> str:
    text: str = shown.messages[-1]["result"]["content"][0]["text"]
    return text


async def _entries(action: str) -> list[Entry]:
    return await in_database(lambda: list(Entry.objects.filter(action=action).order_by("id")))


async def _questions() -> list[OpenQuestion]:
    return await in_database(lambda: list(OpenQuestion.objects.all()))


async def test_a_question_is_put_on_the_stream_of_its_call_and_the_answer_goes_to_it(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Which colour for a wall?"
    await caller.answer(question, accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    assert [one.facts["key"] for one in await _entries("question.asked")] == ["colour"]
    (answer,) = await _entries("answer.received")
    assert (answer.outcome, answer.round) == ("accept", 2)
    assert [one.outcome for one in await _entries("round.finished")] == [
        "input_required",
        "complete",
    ]
    assert [one.round for one in await _entries("round.started")] == [1, 2]


async def test_what_waits_is_a_row_that_says_nothing(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    call = await in_database(StreamedCall.objects.get)
    assert call.state == CallState.WAITING
    (row,) = await _questions()
    assert row.state == QuestionState.OPEN
    for kept in (call.request, call.journal, row.message):
        assert kept.startswith("mcps1.")
    await caller.answer(question, accept(colour="red"))
    await shown.whole()
    over = await in_database(StreamedCall.objects.get)
    assert (over.state, over.request, over.journal) == (CallState.FINISHED, "", "")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"action": "accept", "content": {"colour": "green"}}, "green"),
        ({"action": "decline"}, "declined"),
        ({"action": "cancel"}, "cancelled"),
    ],
)
async def test_what_somebody_chose_reaches_the_tool_as_that(
    asking: Cast, said: dict[str, Any], told: str
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("catches")
    (question,) = await shown.asked()
    await caller.answer(question, said)
    await shown.whole()
    assert _text(shown) == told


async def test_an_error_reaches_the_tool_as_an_error(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("catches_all")
    (question,) = await shown.asked()
    error = {"code": -32603, "message": "no screen"}
    await caller.respond(LegacyResponse(question["id"], None, error))
    await shown.whole()
    assert _text(shown) == "failed: no screen"
    (answer,) = await _entries("answer.received")
    assert answer.outcome == "failed"


async def test_that_nobody_answered_reaches_the_tool_too(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("impatient")
    await shown.asked()
    await shown.whole()
    assert _text(shown) == "timed out"
    (answer,) = await _entries("answer.received")
    assert (answer.outcome, answer.facts["evidence"]) == ("expired", "observed")


async def test_questions_of_one_round_leave_together_and_it_waits_for_all(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("both")
    colour, size = await shown.asked(2)
    await caller.answer(size, accept(size=3))
    await caller.answer(colour, accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "red 3"
    assert len(shown.requests) == 2


async def test_an_answer_that_does_not_fit_is_asked_for_again_under_another_id(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (first,) = await shown.asked()
    await caller.answer(first, accept(colour="grey"))
    _, second = await shown.asked(2)
    assert second["id"] != first["id"]
    assert second["params"] == first["params"]
    await caller.answer(second, accept(colour="blue"))
    await shown.whole()
    assert _text(shown) == "a wall is blue"


@pytest.mark.parametrize("action", [{"a": 1}, ["accept"], 1, None])
async def test_an_answer_whose_action_is_no_text_is_asked_for_again(
    asking: Cast, action: Any
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (first,) = await shown.asked()
    await caller.answer(first, {"action": action, "content": {"colour": "red"}})
    _, second = await shown.asked(2)
    await caller.answer(second, accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"


async def test_a_question_that_is_shown_again_keeps_its_id(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    follower, following = caller.following(shown.ids[0])
    assert await follower.asked() == [question]
    await caller.answer(question, accept(colour="red"))
    assert await follower.whole() == shown.messages[1:]
    await following


async def test_other_answers_are_recorded_and_go_nowhere(asking: Cast) -> None:
    caller, other = await Caller.at(asking), await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    await other.answer(question, accept(colour="green"))
    await caller.answer({"id": "nonsense"}, accept(colour="green"))
    await caller.answer({"id": 7}, accept(colour="green"))
    await caller.answer(question, accept(colour="red"))
    await caller.answer(question, accept(colour="green"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    refused = await _entries(ANSWER_REFUSED)
    assert [one.reason for one in refused] == ["foreign", "not-asked", "not-asked", "answered"]
    call = await in_database(StreamedCall.objects.get)
    assert [one.call for one in refused] == [None, None, None, call.id]


async def test_a_call_asks_so_often_and_no_more(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("in_turn", count=MOST_QUESTIONS + 1)
    for number in range(1, MOST_QUESTIONS + 1):
        question = (await shown.asked(number))[-1]
        await caller.answer(question, accept(size=1))
    await shown.whole()
    assert shown.messages[-1]["result"]["isError"]
    assert "made more than 32 input requests" in _text(shown)


async def test_what_the_revision_cannot_carry_is_a_missing_capability(asking: Cast) -> None:
    caller = await Caller.at(asking, revision="2025-06-18")
    answer = await caller.call("consent").settled()
    assert answer is not None
    assert b"elicitation.url" in answer.body
    old = await Caller.at(asking, revision="2025-03-26")
    shown = await old.streamed("folders")
    (question,) = await shown.asked()
    await old.answer(question, {"roots": [{"uri": "file:///a"}]})
    await shown.whole()
    assert _text(shown) == "file:///a"


async def test_who_cannot_be_asked_is_told_what_was_missing(asking: Cast) -> None:
    caller = await Caller.at(asking, capabilities={"roots": {}})
    answer = await caller.call("paint", what="a wall").settled()
    assert answer is not None
    assert b"elicitation" in answer.body
    assert b'"isError":true' in answer.body


async def test_prompts_and_resources_ask_too(asking: Cast) -> None:
    caller = await Caller.at(asking)
    for method, params, told in (
        ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}, "Dear Ada, I like red."),
        ("resources/read", {"uri": "asking://page"}, "The page is red."),
        ("resources/read", {"uri": "asking://days/Monday"}, "Monday is red."),
    ):
        shown = await caller.shown(method, params)
        (question,) = await shown.asked()
        await caller.answer(question, accept(colour="red"))
        assert told in str((await shown.whole())[-1]["result"])


async def test_what_is_said_between_questions_comes_between_them(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("logs_and_asks", "t")
    (question,) = await shown.asked()
    await caller.answer(question, accept(colour="red"))
    said = [one.get("method", "result") for one in await shown.whole()]
    log, progress = "notifications/message", "notifications/progress"
    assert said == ["result", log, progress, log, "elicitation/create", progress, log, "result"]


async def test_many_calls_get_their_own_answers(asking: Cast) -> None:
    caller = await Caller.at(asking)
    every = await asyncio.gather(*(caller.streamed("paint", what=f"w{n}") for n in range(30)))
    for shown in every:
        await shown.asked()
    colours = ["red", "green", "blue"]
    for number, shown in reversed(list(enumerate(every))):
        await caller.answer(shown.requests[0], accept(colour=colours[number % 3]))
    for number, shown in enumerate(every):
        await shown.whole()
        assert _text(shown) == f"w{number} is {colours[number % 3]}"


async def test_who_answers_nothing_all_the_time_does_not_fill_the_record(asking: Cast) -> None:
    caller, other = await Caller.at(asking), await Caller.at(asking)
    for _ in range(REFUSALS_PER_MINUTE + 5):
        await caller.answer({"id": "nonsense"}, accept())
    await other.answer({"id": "nonsense"}, accept())
    assert len(await _entries(ANSWER_REFUSED)) == REFUSALS_PER_MINUTE + 1


async def test_nor_does_one_that_does_so_in_many_sessions(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REFUSALS_PER_MINUTE", 2)
    monkeypatch.setattr(limits, "CALLER_TIMES", 3)
    for _ in range(6):
        caller = await Caller.at(asking)
        for _ in range(3):
            await caller.answer({"id": "nonsense"}, accept())
    assert len(await _entries(ANSWER_REFUSED)) == 2 * 3
