"""What is recorded of a call that asks: each round, question and answer, and an answer before it is
acted on."""

import asyncio
from typing import Any

import pytest

from mcphost.sealing.tokens import key_id
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.rounds.legs import (
    CANCEL,
    DECLINE,
    RED,
    Asker,
    accept,
    asked,
    calling,
    done,
    failed,
    state_of,
)
from tests.served import entries

pytestmark = pytest.mark.django_db(transaction=True)


async def _told(tool: str) -> list[tuple[str, str]]:
    """What is recorded of calls to a tool: the action and the outcome, in order."""
    return [(entry.action, entry.outcome) for entry in await entries(tool)]


async def _facts(tool: str, action: str) -> list[dict[str, Any]]:
    return [entry.facts for entry in await entries(tool) if entry.action == action]


async def test_a_call_leaves_each_round_question_and_answer_under_one_id(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it")
    first = await asker.leg()
    assert done(await asker.leg(state_of(first), RED)) == "it is red"
    made = await entries("paint")
    assert len({entry.call for entry in made}) == 1
    assert [(entry.round, entry.action, entry.outcome) for entry in made] == [
        (1, "round.started", ""),
        (1, "round.finished", "input_required"),
        (1, "question.asked", ""),
        (2, "answer.received", "accept"),
        (2, "round.started", ""),
        (2, "round.finished", "complete"),
    ]
    [question], [answer] = (
        await _facts("paint", "question.asked"),
        await _facts("paint", "answer.received"),
    )
    assert (question["key"], question["method"], question["mode"]) == (
        "colour",
        "elicitation/create",
        "form",
    )
    assert answer["question"] == question["question"]
    assert answer["evidence"] == "client-asserted"
    assert answer["seconds"] >= 0
    assert answer["sealed_by"] == key_id(state_of(first))
    assert answer["unasked"] is False


async def test_an_answer_is_recorded_before_anything_is_done_with_it(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint_slowly", what="it")
    first = await asker.leg()
    acting = asyncio.create_task(asker.leg(state_of(first), RED))
    async with asyncio.timeout(10):
        await module("asking").running.wait()
    told = await _told("paint_slowly")
    module("asking").release.set()
    assert told[-2:] == [("answer.received", "accept"), ("round.started", "")]
    assert done(await acting) == "it is red"


@pytest.mark.parametrize(("answer", "word"), [(DECLINE, "decline"), (CANCEL, "cancel")])
async def test_a_refusal_is_recorded_as_what_it_is(
    asking: Cast, answer: dict[str, Any], word: str
) -> None:
    asker = calling(asking.owner.mcp_token, "survey")
    await asker.leg(state_of(await asker.leg()), {"colour": answer})
    assert ("answer.received", word) in await _told("survey")


async def test_what_a_model_says_and_roots_are_received(asking: Cast) -> None:
    for tool, key, answer in (
        ("folders", "roots", {"roots": []}),
        (
            "summarise",
            "summary",
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}},
        ),
    ):
        asker = calling(asking.owner.mcp_token, tool)
        await asker.leg(state_of(await asker.leg()), {key: answer})
        assert ("answer.received", "received") in await _told(tool)


async def test_an_answer_that_does_not_do_is_recorded_with_why(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "survey")
    first = await asker.leg()
    again = await asker.leg(state_of(first), {"colour": accept(colour="mauve")})
    assert asked(again) == asked(first)
    _, second = await _facts("survey", "round.finished")
    assert list(second["invalid"]) == ["colour"]


async def test_answers_that_nobody_asked_for_are_recorded_only_where_they_are_taken(
    asking: Cast,
) -> None:
    token = asking.owner.mcp_token
    await calling(token, "takes_anything").leg(answers=RED)
    [taken] = await _facts("takes_anything", "answer.received")
    assert taken["unasked"] is True
    await calling(token, "survey").leg(answers=RED)
    assert await _facts("survey", "answer.received") == []


async def test_the_same_answers_again_are_recorded_once(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it")
    state = state_of(await asker.leg())
    for _ in range(3):
        assert done(await asker.leg(state, RED)) == "it is red"
    told = await _told("paint")
    assert told.count(("answer.received", "accept")) == 1
    assert told.count(("round.finished", "complete")) == 1


async def test_a_failure_of_the_author_is_recorded_with_its_kind(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "asks_in_a_step")
    assert failed(await asker.leg())
    [(action, outcome)] = await _told("asks_in_a_step")
    assert action == "round.finished"
    assert outcome not in ("", "complete", "input_required")


async def test_prompts_and_resources_leave_the_same(asking: Cast) -> None:
    asker = Asker(asking.owner.mcp_token, {"uri": "asking://page"}, method="resources/read")
    await asker.leg(state_of(await asker.leg()), RED)
    made = await entries("asking://page", "resources/read")
    assert [(entry.action, entry.outcome) for entry in made] == [
        ("round.finished", "input_required"),
        ("question.asked", ""),
        ("answer.received", "accept"),
        ("round.finished", "complete"),
    ]
