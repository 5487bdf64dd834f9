"""Tests of questions that a tool asks through its context: built, asked, read, refused."""

from pathlib import Path
from typing import Any

import pytest
from mcp_types import CreateMessageResult, CreateMessageResultWithTools

from mcphost.kinds.python.discovery import discover
from mcphost.runtime.outcomes import Failed, FailureKind, InputRequired
from mcphost.sdk import Context, Form, SyncContext, Tool
from tests.kinds.rounds import outcome
from tests.kinds.rounds_with_client import Driven, accept
from tests.wire import check_type

WEATHER = Tool(name="weather", input_schema={"type": "object"})
SAID = {"role": "assistant", "content": {"type": "text", "text": "Rain"}, "model": "m"}


class Place(Form):
    city: str


async def ask_all(ctx: Context) -> str:
    form = await ctx.ask_form("place", "Where?", Place)
    plain = await ctx.ask_form(
        "again", "Where?", {"type": "object", "properties": {"on": {"type": "boolean"}}}
    )
    page = await ctx.ask_url("page", "Please look", "https://example.com/look")
    said = await ctx.sample("said", "Weather?", max_tokens=9)
    used = await ctx.sample("used", "Weather?", max_tokens=9, tools=[WEATHER])
    roots = await ctx.list_roots("roots")
    assert form.content is not None
    assert isinstance(said, CreateMessageResult)
    assert isinstance(used, CreateMessageResultWithTools)
    return f"{form.content.city} {plain.content} {page.action} {said.model} {roots[0].uri}"


def ask_all_blocking(ctx: SyncContext) -> str:
    form = ctx.ask_form("place", "Where?", Place)
    plain = ctx.ask_form(
        "again", "Where?", {"type": "object", "properties": {"on": {"type": "boolean"}}}
    )
    page = ctx.ask_url("page", "Please look", "https://example.com/look")
    said = ctx.sample("said", "Weather?", max_tokens=9)
    ctx.sample("used", "Weather?", max_tokens=9, tools=[WEATHER])
    roots = ctx.list_roots("roots")
    assert form.content is not None
    return f"{form.content.city} {plain.content} {page.action} {said.model} {roots[0].uri}"


ANSWERS: dict[str, Any] = {
    "place": accept(city="Paris"),
    "again": {"action": "decline"},
    "page": {"action": "accept"},
    "said": SAID,
    "used": {**SAID, "content": [SAID["content"]]},
    "roots": {"roots": [{"uri": "file:///home"}]},
}


@pytest.mark.parametrize("function", [ask_all, ask_all_blocking])
async def test_every_type_of_input_request_is_sent_and_its_response_read(function: Any) -> None:
    driven = Driven(function)
    asked = await driven.advance()
    for key, answer in ANSWERS.items():
        assert isinstance(asked, InputRequired)
        (request,) = asked.requests
        assert request.key == key
        check_type("InputRequest", {"method": request.method, "params": request.params})
        asked = await driven.advance(**{key: answer})
    assert "Paris None accept m file:///home" in str(asked)


@pytest.mark.parametrize("key", [key for key in ANSWERS if key != "again"])
async def test_a_response_of_the_wrong_type_is_requested_again(key: str) -> None:
    driven = Driven(ask_all)
    await driven.advance()
    for before, answer in ANSWERS.items():
        if before == key:
            break
        await driven.advance(**{before: answer})
    wrong = SAID if key in ("place", "page", "roots") else {"action": "accept"}
    asked = await driven.advance(**{key: wrong})
    assert isinstance(asked, InputRequired)
    assert [request.key for request in asked.requests] == [key]
    assert asked.invalid[key]


@pytest.mark.parametrize(
    ("key", "message", "why"),
    [("two words", "Where?", "is not a key"), ("place", "Your password?", "asks for a secret")],
)
async def test_a_forbidden_input_request_is_an_error_of_the_author(
    key: str, message: str, why: str
) -> None:
    async def function(ctx: Context) -> str:
        return (await ctx.elicit(key, message, Place)).city

    def blocking(ctx: SyncContext) -> str:
        return ctx.elicit(key, message, Place).city

    for tool in (function, blocking):
        ended = await outcome(tool)
        assert isinstance(ended, Failed)
        assert ended.error.kind is FailureKind.CRASHED
        assert why in ended.error.detail
        assert why not in ended.error.message


BAD = """
from mcphost.sdk import Form


class Login(Form):
    user: str
    password: str
"""


def test_a_forbidden_form_breaks_the_file_that_defines_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "login.py").write_text(BAD)
    problem = discover(tmp_path).broken["login"]
    assert problem.path.endswith("login.py:5")
    assert (
        "Login is not a valid form: /properties/password: it asks for a secret" in problem.message
    )
