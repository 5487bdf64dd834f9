"""Input requests of tools, prompts and resources through the whole server (spec:
basic/patterns/mrtr)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.client_steps import (
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
    state_of,
)
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}}
ROOTS = {"roots": [{"uri": "file:///a"}, {"uri": "file:///b", "name": "B"}]}
PAGE = {"mode": "url", "url": "https://example.com/sign-in"}
LETTER = {"name": "letter", "arguments": {"to": "Ada"}}
FORM = "elicitation/create"


class Asks(NamedTuple):
    """A tool, what it asks, and how it ends after an answer. `params` are some that it asks with."""

    tool: str
    key: str
    method: str
    params: Mapping[str, Any]
    answer: Mapping[str, Any]
    end: str


TOOLS = (
    Asks("blocking", "colour", FORM, {}, RED["colour"], "red in a thread"),
    Asks("survey", "colour", FORM, {}, RED["colour"], '["accept", {"colour": "red"}]'),
    Asks("survey", "colour", FORM, {}, DECLINE, '["decline", null]'),
    Asks("survey", "colour", FORM, {}, CANCEL, '["cancel", null]'),
    Asks("catches", "colour", FORM, {}, RED["colour"], "red"),
    Asks("catches", "colour", FORM, {}, DECLINE, "declined"),
    Asks("catches", "colour", FORM, {}, CANCEL, "cancelled"),
    *(
        Asks("consent", "page", FORM, PAGE, {"action": action}, action)
        for action in ("accept", "decline", "cancel")
    ),
    Asks("summarise", "summary", "sampling/createMessage", {"maxTokens": 50}, SHORT, "short"),
    Asks("folders", "roots", "roots/list", {}, ROOTS, "file:///a file:///b"),
)


async def _through(asker: Asker, *answers: dict[str, object]) -> Reply:
    """A first leg, and a retry for each of the answers."""
    reply = await asker.leg()
    for given in answers:
        reply = await asker.leg(state_of(reply), given)
    return reply


@pytest.mark.requirement("mrtr.input-required", "mrtr.retry")
async def test_a_tool_requests_input_and_continues_with_the_response_to_its_own_call(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="the shed")
    first, other = await asker.leg(), await asker.leg()
    question = asked(first)["colour"]
    assert question["method"] == FORM
    assert question["params"]["mode"] == "form"
    assert question["params"]["message"] == "Which colour for the shed?"
    assert question["params"]["requestedSchema"]["required"] == ["colour"]
    assert state_of(first) != state_of(other)
    assert module("asking").did == []
    assert done(await asker.leg(state_of(other), BLUE)) == "the shed is blue"
    assert done(await asker.leg(state_of(first), RED)) == "the shed is red"
    assert module("asking").did == ["the shed blue", "the shed red"]


@pytest.mark.requirement("elicitation.actions")
async def test_each_type_of_input_request_is_sent_and_its_response_reaches_the_tool(
    asking: Cast,
) -> None:
    for asks in TOOLS:
        asker = calling(asking.owner.mcp_token, asks.tool)
        first = await asker.leg()
        question = asked(first)[asks.key]
        assert question["method"] == asks.method, asks
        assert asks.params.items() <= question.get("params", {}).items(), asks
        assert done(await asker.leg(state_of(first), {asks.key: asks.answer})) == asks.end, asks


@pytest.mark.requirement("mrtr.requests")
async def test_prompts_resources_and_templates_request_input_like_tools(asking: Cast) -> None:
    for method, params, field in (
        ("prompts/get", LETTER, "messages"),
        ("resources/read", {"uri": "asking://page"}, "contents"),
        ("resources/read", {"uri": "asking://days/monday"}, "contents"),
    ):
        asker = Asker(asking.owner.mcp_token, params, method=method)
        reply = await _through(asker, BLUE)
        assert reply.result["resultType"] == "complete"
        assert "blue" in str(reply.result[field])
        declined = await _through(asker, {"colour": DECLINE})
        assert declined.error["code"] in (-32602, -32603)
        assert b"Traceback" not in declined.raw


@pytest.mark.requirement("mrtr.undeclared")
async def test_a_client_gets_no_input_requests_for_capabilities_it_did_not_declare(
    asking: Cast,
) -> None:
    form, url = {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}
    for how, declared, required in (
        ("form", {}, form),
        ("form", url, form),
        ("url", FORMS, url),
        ("url", {"elicitation": {}}, url),
        ("sampling", FORMS, {"sampling": {}}),
        ("roots", FORMS, {"roots": {}}),
    ):
        asker = calling(asking.owner.mcp_token, "asks_the_undeclared", how=how)
        reply = await asker.but(capabilities=declared).leg()
        assert (reply.status, reply.error["code"]) == (400, -32021), (how, declared)
        assert reply.error["data"] == {"requiredCapabilities": required}
    silent = calling(asking.owner.mcp_token, "paint", what="it").but(
        capabilities={"elicitation": {}}
    )
    assert "colour" in asked(await silent.leg()), "who says nothing of modes is asked forms"


async def test_times_uuids_and_random_numbers_are_those_of_the_first_round(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "stamps")
    last = done(await _through(asker, {"size": accept(size=1)}))
    assert module("asking").did == [last, last]


async def test_a_state_reveals_neither_its_content_nor_its_length(asking: Cast) -> None:
    short, longer = (
        calling(asking.owner.mcp_token, "paint", what=what) for what in ("a", "a longer thing")
    )
    states = [state_of(await asker.leg()) for asker in (short, longer)]
    assert len(states[0]) == len(states[1])
    assert all("paint" not in state and "colour" not in state for state in states)
