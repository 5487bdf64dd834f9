"""Input responses that no correct client sends, and invalid request states."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.rounds.client_steps import (
    BLUE,
    CANCEL,
    RED,
    Asker,
    accept,
    asked,
    calling,
    done,
    frozen,
    state_of,
)
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

ASSISTANT = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "red"}}
UNFIT: tuple[dict[str, Any], ...] = (
    accept(colour="mauve"),
    accept(),
    accept(colour=7),
    accept(colour=None),
    {"action": "accept"},
    accept(colour=["red"]),
)
OF_NO_FORM: tuple[dict[str, Any], ...] = (
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
)
MALFORMED: tuple[Any, ...] = (
    *("red", 7, True, [RED]),
    *({"colour": "red"}, {"colour": None}, {"colour": [RED]}),
)


def _painting(cast: Cast) -> Asker:
    return calling(cast.owner.mcp_token, "paint", what="it")


@pytest.mark.requirement("mrtr.missing", "mrtr.extra")
async def test_missing_responses_are_requested_again_and_unrequested_ones_are_ignored(
    asking: Cast,
) -> None:
    asker = _painting(asking)
    first = again = await asker.leg()
    for given in (None, {}, {"other": accept(colour="red")}):
        again = await asker.leg(state_of(first), given)
        assert asked(again) == asked(first), given
    more = {**RED, "other": accept(a=1), "": CANCEL}
    assert done(await asker.leg(state_of(again), more)) == "it is red"


async def test_only_a_tool_that_opts_in_accepts_input_responses_without_a_state(
    asking: Cast,
) -> None:
    assert "colour" in asked(await _painting(asking).leg(answers=RED))
    assert module("asking").did == []
    asker = calling(asking.owner.mcp_token, "takes_anything")
    assert done(await asker.leg(answers=BLUE)) == "blue"


@pytest.mark.requirement("mrtr.invalid")
async def test_content_that_does_not_fit_the_schema_is_requested_again(asking: Cast) -> None:
    asker = _painting(asking)
    for answer in UNFIT:
        first = await asker.leg()
        again = await asker.leg(state_of(first), {"colour": answer})
        before, after = (asked(reply)["colour"]["params"] for reply in (first, again))
        assert after["requestedSchema"] == before["requestedSchema"], answer
        message, _, reason = after["message"].partition("\n\nThe last response was not accepted: ")
        assert message == before["message"]
        assert reason, answer
        assert module("asking").did == [], answer
        assert done(await asker.leg(state_of(again), RED)) == "it is red"
        module("asking").did.clear()


async def test_responses_of_the_wrong_type_are_refused_or_requested_again_without_effect(
    asking: Cast,
) -> None:
    summary, roots = (calling(asking.owner.mcp_token, tool) for tool in ("summarise", "folders"))
    rows = [(_painting(asking), "colour", answer) for answer in OF_NO_FORM]
    rows += [(summary, "summary", accept(colour="red")), (roots, "roots", accept(colour="red"))]
    for asker, key, answer in rows:
        first = await asker.leg()
        reply = await asker.leg(state_of(first), {key: answer})
        if "error" in reply.last:
            assert (reply.status, reply.error["code"]) == (400, -32602), answer
            assert "inputResponses" in reply.error["message"]
        else:
            assert asked(reply) == asked(first), answer
        assert module("asking").did == [], answer


@pytest.mark.requirement("mrtr.malformed")
async def test_malformed_responses_and_states_are_refused_with_the_problem(
    asking: Cast,
) -> None:
    asker = _painting(asking)
    state = state_of(await asker.leg())
    rows = [("inputResponses", responses, state) for responses in MALFORMED]
    rows += [("requestState", None, other) for other in (7, True, {}, [], ["x"], 1.5)]
    for named, responses, sent in rows:
        fields = {"inputResponses": RED if named == "requestState" else responses}
        reply = await asker.leg(requestState=sent, **fields)
        assert (reply.status, reply.error["code"]) == (400, -32602), (responses, sent)
        assert named in reply.error["message"]
        assert reply.error.get("data", {}).get("reason") != "invalid_request_state"
        assert module("asking").did == []
    assert done(await asker.leg(state, RED)) == "it is red"


@pytest.mark.requirement("mrtr.state-verified")
async def test_a_foreign_or_malformed_state_is_refused_like_a_forged_one(asking: Cast) -> None:
    asker = _painting(asking).but(id=1)
    forged = frozen(await asker.leg("forged", RED))
    for state in ("", "x", "mcps1.", "mcps1.k1.AAAA", "é" * 40, "x" * 200_000):
        assert frozen(await asker.leg(state, RED)) == forged, state[:20]
    assert module("asking").did == []


async def test_a_tool_that_never_asks_refuses_a_state_and_methods_that_cannot_ask_ignore_it(
    asking: Cast,
) -> None:
    token = asking.owner.mcp_token
    state = state_of(await _painting(asking).leg())
    never = calling(token, "asks_from", place="helper").but(id=1)
    assert frozen(await never.leg(state, RED)) == frozen(await never.leg("forged", RED))
    page = Asker(token, {"uri": "asking://page"}, method="resources/read")
    frozen(await page.leg(state, RED))
    for method in ("tools/list", "server/discover"):
        reply = await Asker(token, {}, method=method).leg("forged", RED)
        assert reply.status == 200 or reply.error["code"] == -32602
