"""Answers as no good client would send them, and states that are none."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.rounds.conftest import module
from tests.rounds.legs import (
    BLUE,
    RED,
    Asker,
    accept,
    asked,
    calling,
    done,
    frozen,
    state_of,
)

pytestmark = pytest.mark.django_db(transaction=True)

ASSISTANT = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "red"}}


def _painting(cast: Cast) -> Asker:
    return calling(cast.owner.mcp_token, "paint", what="it")


@pytest.mark.requirement("mrtr.missing")
@pytest.mark.parametrize("given", [None, {}, {"other": accept(colour="red")}])
async def test_what_is_missing_is_asked_again(asking: Cast, given: dict[str, Any] | None) -> None:
    asker = _painting(asking)
    first = await asker.leg()
    again = await asker.leg(state_of(first), given)
    assert asked(again) == asked(first)
    assert done(await asker.leg(state_of(again), RED)) == "it is red"


@pytest.mark.requirement("mrtr.extra")
async def test_what_nobody_asked_for_is_ignored(asking: Cast) -> None:
    asker = _painting(asking)
    first = await asker.leg()
    more = {**RED, "other": {"action": "accept", "content": {"a": 1}}, "": {"action": "cancel"}}
    assert done(await asker.leg(state_of(first), more)) == "it is red"


async def test_an_answer_that_comes_before_its_question_is_ignored(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "in_turn", count=2)
    first = await asker.leg()
    early = {"size0": accept(size=1), "size1": accept(size=9)}
    second = await asker.leg(state_of(first), early)
    assert list(asked(second)) == ["size1"]
    assert done(await asker.leg(state_of(second), {"size1": accept(size=2)})) == "1 2"


async def test_an_answer_is_never_changed_by_a_later_one(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "in_turn", count=2)
    second = await asker.leg(state_of(await asker.leg()), {"size0": accept(size=1)})
    late = {"size0": accept(size=9), "size1": accept(size=2)}
    assert done(await asker.leg(state_of(second), late)) == "1 2"


async def test_answers_without_a_state_are_ignored_and_the_question_is_asked(asking: Cast) -> None:
    assert "colour" in asked(await _painting(asking).leg(answers=RED))
    assert module("asking").did == []


async def test_a_tool_that_says_so_takes_answers_that_nobody_asked_for(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "takes_anything")
    assert done(await asker.leg(answers=BLUE)) == "blue"


@pytest.mark.requirement("mrtr.invalid")
@pytest.mark.parametrize(
    "answer",
    [
        accept(colour="mauve"),
        accept(),
        accept(colour=7),
        accept(colour=None),
        {"action": "accept"},
        {"action": "accept", "content": {"colour": ["red"]}},
    ],
)
async def test_content_that_breaks_the_schema_is_asked_for_again(
    asking: Cast, answer: dict[str, Any]
) -> None:
    asker = _painting(asking)
    first = await asker.leg()
    again = await asker.leg(state_of(first), {"colour": answer})
    assert asked(again) == asked(first)
    assert module("asking").did == []
    assert done(await asker.leg(state_of(again), RED)) == "it is red"


@pytest.mark.parametrize(
    "answer",
    [
        ASSISTANT,
        {"roots": []},
        {"action": "maybe"},
        {"action": 1},
        {"action": ["accept"]},
        {"action": {}},
        {"action": "accept", "content": "red"},
        {"action": "accept", "content": [1]},
        {"content": {"colour": "red"}},
        {},
    ],
)
async def test_the_wrong_kind_of_answer_acts_on_nothing_and_says_so_or_asks_again(
    asking: Cast, answer: dict[str, Any]
) -> None:
    asker = _painting(asking)
    first = await asker.leg()
    reply = await asker.leg(state_of(first), {"colour": answer})
    if "error" in reply.last:
        assert (reply.status, reply.error["code"]) == (400, -32602)
        assert "inputResponses" in reply.error["message"]
    else:
        assert asked(reply) == asked(first)
    assert module("asking").did == []


async def test_a_form_does_not_do_for_a_model_or_for_roots(asking: Cast) -> None:
    for tool, key in (("summarise", "summary"), ("folders", "roots")):
        asker = calling(asking.owner.mcp_token, tool)
        first = await asker.leg()
        reply = await asker.leg(state_of(first), {key: accept(colour="red")})
        if "error" in reply.last:
            assert (reply.status, reply.error["code"]) == (400, -32602)
        else:
            assert asked(reply) == asked(first)


@pytest.mark.requirement("mrtr.malformed")
@pytest.mark.parametrize(
    "responses",
    ["red", 7, True, None, [], [RED], {"colour": "red"}, {"colour": None}, {"colour": [RED]}],
)
async def test_responses_that_are_none_are_refused_with_what_is_wrong(
    asking: Cast, responses: Any
) -> None:
    asker = _painting(asking)
    first = await asker.leg()
    message = {"requestState": state_of(first), "inputResponses": responses}
    reply = await asker.leg(**message)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "inputResponses" in reply.error["message"]
    assert reply.error.get("data", {}).get("reason") != "invalid_request_state"
    assert module("asking").did == []
    assert done(await asker.leg(state_of(first), RED)) == "it is red"


@pytest.mark.requirement("mrtr.state-verified")
@pytest.mark.parametrize("state", ["", "x", "mcps1.", "mcps1.k1.AAAA", "é" * 40, "x" * 200_000])
async def test_a_state_that_is_none_of_ours_is_refused_as_any_other(
    asking: Cast, state: str
) -> None:
    asker = _painting(asking).but(id=1)
    assert frozen(await asker.leg(state, RED)) == frozen(await asker.leg("forged", RED))
    assert module("asking").did == []


@pytest.mark.parametrize("state", [7, True, {}, [], ["x"], 1.5, None])
async def test_a_state_that_is_no_text_is_refused_with_what_is_wrong(
    asking: Cast, state: Any
) -> None:
    reply = await _painting(asking).leg(requestState=state, inputResponses=RED)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "requestState" in reply.error["message"]
    assert module("asking").did == []


async def test_a_state_echoed_to_what_never_asks_is_refused(asking: Cast) -> None:
    state = state_of(await _painting(asking).leg())
    never = calling(asking.owner.mcp_token, "asks_from", place="helper").but(id=1)
    assert frozen(await never.leg(state, RED)) == frozen(await never.leg("forged", RED))
    page = Asker(asking.owner.mcp_token, {"uri": "asking://page"}, method="resources/read")
    frozen(await page.leg(state, RED))


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_methods_that_cannot_ask_take_no_notice_of_a_state(asking: Cast, method: str) -> None:
    asker = Asker(asking.owner.mcp_token, {}, method=method)
    reply = await asker.leg("forged", RED)
    assert reply.status == 200 or reply.error["code"] == -32602


async def test_a_retry_with_other_arguments_is_refused(asking: Cast) -> None:
    asker = _painting(asking).but(id=1)
    state = state_of(await asker.leg())
    other = asker.but(params={"name": "paint", "arguments": {"what": "something else"}})
    assert frozen(await other.leg(state, RED)) == frozen(await asker.leg("forged", RED))
    assert module("asking").did == []
