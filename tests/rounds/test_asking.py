"""What asks, is answered and goes on (spec: basic/patterns/mrtr), through the whole server."""

import pytest

from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.conftest import module
from tests.rounds.legs import (
    BLUE,
    CANCEL,
    DECLINE,
    FORMS,
    RED,
    Asker,
    accept,
    asked,
    calling,
    done,
    failed,
    state_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


async def _through(asker: Asker, *answers: dict[str, object]) -> Reply:
    """A first leg, and a retry for each of the answers."""
    reply = await asker.leg()
    for given in answers:
        reply = await asker.leg(state_of(reply), given)
    return reply


@pytest.mark.requirement("mrtr.input-required")
@pytest.mark.requirement("mrtr.retry")
async def test_a_tool_asks_and_goes_on_with_the_answer(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="the shed")
    first = await asker.leg()
    question = asked(first)["colour"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["mode"] == "form"
    assert question["params"]["message"] == "Which colour for the shed?"
    assert question["params"]["requestedSchema"]["required"] == ["colour"]
    assert module("asking").did == []
    assert done(await asker.leg(state_of(first), RED)) == "the shed is red"
    assert module("asking").did == ["the shed red"]


@pytest.mark.requirement("mrtr.requests")
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}, "messages"),
        ("resources/read", {"uri": "asking://page"}, "contents"),
        ("resources/read", {"uri": "asking://days/monday"}, "contents"),
    ],
)
async def test_prompts_resources_and_templates_ask_like_tools(
    asking: Cast, method: str, params: dict[str, object], field: str
) -> None:
    asker = Asker(asking.owner.mcp_token, params, method=method)
    reply = await _through(asker, BLUE)
    assert reply.result["resultType"] == "complete"
    assert "blue" in str(reply.result[field])


@pytest.mark.requirement("elicitation.actions")
@pytest.mark.parametrize(
    ("answer", "seen", "told"),
    [
        (accept(colour="red"), '["accept", {"colour": "red"}]', "red"),
        (DECLINE, '["decline", null]', "declined"),
        (CANCEL, '["cancel", null]', "cancelled"),
    ],
)
async def test_accepting_declining_and_cancelling_are_three_things(
    asking: Cast, answer: dict[str, object], seen: str, told: str
) -> None:
    token = asking.owner.mcp_token
    given = {"colour": answer}
    assert done(await _through(calling(token, "survey"), given)) == seen
    assert done(await _through(calling(token, "catches"), given)) == told


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
async def test_a_tool_that_does_not_expect_a_refusal_ends_with_a_plain_error(
    asking: Cast, answer: dict[str, object]
) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it")
    assert failed(await _through(asker, {"colour": answer}))
    assert module("asking").did == []


@pytest.mark.parametrize("name", ["letter", "page"])
async def test_a_refusal_that_a_prompt_or_a_resource_does_not_expect_is_its_failure(
    asking: Cast, name: str
) -> None:
    prompt = {"name": name, "arguments": {"to": "Ada"}}
    what = (
        ("prompts/get", prompt)
        if name == "letter"
        else ("resources/read", {"uri": "asking://page"})
    )
    asker = Asker(asking.owner.mcp_token, what[1], method=what[0])
    reply = await _through(asker, {"colour": DECLINE})
    assert reply.error["code"] in (-32602, -32603)
    assert b"Traceback" not in reply.raw


async def test_questions_side_by_side_leave_together_and_may_be_answered_one_by_one(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "both")
    first = await asker.leg()
    assert list(asked(first)) == ["colour", "size"]
    second = await asker.leg(state_of(first), {"size": accept(size=3)})
    assert list(asked(second)) == ["colour"]
    assert done(await asker.leg(state_of(second), RED)) == "red 3"
    assert done(await asker.leg(state_of(first), {**RED, "size": accept(size=4)})) == "red 4"


async def test_a_plain_function_asks_from_its_thread(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "blocking")
    assert done(await _through(asker, RED)) == "red in a thread"


async def test_a_page_is_consented_to(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "consent")
    first = await asker.leg()
    params = asked(first)["page"]["params"]
    assert (params["mode"], params["url"]) == ("url", "https://example.com/sign-in")
    for action in ("accept", "decline", "cancel"):
        answer = {"page": {"action": action}}
        assert done(await asker.leg(state_of(first), answer)) == action


async def test_a_model_is_asked(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "summarise")
    first = await asker.leg()
    question = asked(first)["summary"]
    assert question["method"] == "sampling/createMessage"
    assert question["params"]["maxTokens"] == 50
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}}
    assert done(await asker.leg(state_of(first), {"summary": said})) == "short"


async def test_roots_are_asked_for(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "folders")
    first = await asker.leg()
    assert asked(first)["roots"]["method"] == "roots/list"
    roots = {"roots": {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}}
    assert done(await asker.leg(state_of(first), roots)) == "file:///a file:///b"


@pytest.mark.requirement("mrtr.undeclared")
@pytest.mark.parametrize(
    ("how", "declared", "required"),
    [
        ("form", {}, {"elicitation": {"form": {}}}),
        ("form", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("url", FORMS, {"elicitation": {"url": {}}}),
        ("url", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("sampling", FORMS, {"sampling": {}}),
        ("roots", FORMS, {"roots": {}}),
    ],
)
async def test_what_a_client_did_not_declare_it_is_not_asked_for(
    asking: Cast, how: str, declared: dict[str, object], required: dict[str, object]
) -> None:
    asker = calling(asking.owner.mcp_token, "asks_the_undeclared", how=how)
    reply = await asker.but(capabilities=declared).leg()
    assert (reply.status, reply.error["code"]) == (400, -32021)
    assert reply.error["data"] == {"requiredCapabilities": required}


async def test_a_client_that_says_nothing_of_modes_is_asked_forms(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it").but(
        capabilities={"elicitation": {}}
    )
    assert "colour" in asked(await asker.leg())


async def test_time_names_and_numbers_stay_what_they_were_in_the_first_round(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "stamps")
    last = done(await _through(asker, {"size": accept(size=1)}))
    assert module("asking").did == [last, last]


async def test_eight_legs_are_the_most_and_the_ninth_is_not_asked_for(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "in_turn", count=8)
    legs = [{f"size{n}": accept(size=1 + n)} for n in range(8)]
    reply = await asker.leg()
    for given in legs:
        if reply.result["resultType"] == "complete":
            break
        reply = await asker.leg(state_of(reply), given)
    assert reply.result["resultType"] == "complete"
    few = await _through(calling(asking.owner.mcp_token, "in_turn", count=7), *legs[:7])
    assert done(few) == "1 2 3 4 5 6 7"


async def test_the_same_call_asked_twice_are_two_calls(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it")
    first, second = await asker.leg(), await asker.leg()
    assert state_of(first) != state_of(second)
    assert done(await asker.leg(state_of(second), BLUE)) == "it is blue"
    assert done(await asker.leg(state_of(first), RED)) == "it is red"
    assert module("asking").did == ["it blue", "it red"]


async def test_a_state_says_nothing_to_who_reads_it(asking: Cast) -> None:
    short = calling(asking.owner.mcp_token, "paint", what="a")
    longer = calling(asking.owner.mcp_token, "paint", what="a rather longer thing")
    states = [state_of(await asker.leg()) for asker in (short, longer)]
    assert len(states[0]) == len(states[1])
    assert all("paint" not in state and "colour" not in state for state in states)
