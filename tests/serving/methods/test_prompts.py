"""`prompts/list` and `prompts/get` (spec: server/prompts), and their records."""

from typing import Any

import pytest

from mcphost.audit.selectors import payload
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.mcp import Reply, ask
from tests.served import entries
from tests.serving.memory_primitives import CANARY, GALLERY, GUARD, publish, token_with

pytestmark = pytest.mark.django_db(transaction=True)


async def _get(offered: Cast, name: str, arguments: Any = None, token: str = "") -> Reply:
    params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
    return await ask("acme", "prompts/get", params, token or offered.owner.mcp_token)


@pytest.mark.requirement("prompts.list.served")
async def test_prompts_are_listed_with_their_arguments(offered: Cast) -> None:
    reply = await ask("acme", "prompts/list", token=offered.owner.mcp_token)
    assert reply.result["prompts"] == [
        {
            "name": "review",
            "description": "Made up.",
            "arguments": [{"name": "code", "required": True}, {"name": "style", "required": False}],
        }
    ]
    assert (reply.result["ttlMs"], reply.result["cacheScope"]) == (0, "private")


@pytest.mark.requirement("prompts.list.by-authorization")
async def test_a_prompt_with_a_scope_is_unknown_to_callers_without_it(offered: Cast) -> None:
    allowed = await token_with(offered, "mcp:list", "mcp:call", GUARD)
    listed = (await ask("acme", "prompts/list", token=allowed)).result["prompts"]
    assert [prompt["name"] for prompt in listed] == ["guarded", "review"]
    assert (await _get(offered, "guarded", {"code": "x"}, allowed)).status == 200
    hidden = await _get(offered, "guarded", {"code": "x"})
    unknown = await _get(offered, "nothing", {"code": "x"})
    assert hidden.status == unknown.status == 400
    assert hidden.raw.replace(b"guarded", b"nothing") == unknown.raw


@pytest.mark.requirement("prompts.get.served")
async def test_prompts_get_returns_messages_with_the_arguments(offered: Cast) -> None:
    reply = await _get(offered, "review", {"code": "x = 1"})
    assert reply.result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": '{"code":"x = 1"}'}}
    ]
    assert reply.result["description"] == "Made up."
    assert reply.result["resultType"] == "complete"
    assert "ttlMs" not in reply.result


@pytest.mark.requirement("prompts.get.content")
async def test_content_of_every_type_is_returned_unchanged(offered: Cast) -> None:
    await in_database(publish, offered.acme.id, PrimitiveType.PROMPT, "gallery", "gallery")
    messages = (await _get(offered, "gallery")).result["messages"]
    assert [message["content"] for message in messages] == list(GALLERY)


@pytest.mark.requirement("prompts.get.unknown")
async def test_an_unknown_prompt_is_an_error_that_names_it(offered: Cast) -> None:
    for name in ("no_such_prompt", "Review", "", "x" * 5000, "a\0b", "é"):
        reply = await _get(offered, name)
        assert (reply.status, reply.error["code"]) == (400, -32602)
        assert "Unknown prompt" in reply.error["message"]


@pytest.mark.requirement("prompts.get.missing-argument")
@pytest.mark.requirement("prompts.get.validated")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (None, "code"),
        ({}, "code"),
        ({"style": "short"}, "code"),
        ({"code": "x", "colour": "red"}, "'colour'"),
        ({"code": 5}, "params.arguments.code"),
        ({"code": None}, "code"),
        (["code"], "params.arguments"),
    ],
)
async def test_wrong_arguments_are_an_error_that_names_them(
    offered: Cast, arguments: Any, named: str
) -> None:
    reply = await _get(offered, "review", arguments)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert named in reply.error["message"]
    assert await entries("review", "prompts/get") == []


@pytest.mark.requirement("prompts.get.internal-error")
@pytest.mark.parametrize("does", ["crash", "fail", "oddity"])
async def test_a_failing_prompt_reveals_no_details(offered: Cast, does: str) -> None:
    await in_database(publish, offered.acme.id, PrimitiveType.PROMPT, "bad", does)
    reply = await _get(offered, "bad")
    assert (reply.status, reply.error["code"]) == (200, -32603)
    assert CANARY.encode() not in reply.raw


async def test_a_tool_error_of_a_prompt_has_the_authors_message(offered: Cast) -> None:
    await in_database(publish, offered.acme.id, PrimitiveType.PROMPT, "closed", "refuse")
    reply = await _get(offered, "closed")
    assert reply.error == {"code": -32602, "message": "Not on Sundays."}


async def test_prompts_get_writes_one_record_with_its_messages(offered: Cast) -> None:
    await _get(offered, "review", {"code": "x"})
    (entry,) = await entries("review", "prompts/get")
    assert (entry.action, entry.outcome, entry.round) == ("round.finished", "complete", 1)
    assert entry.target_version.startswith("1+")
    assert (entry.bytes_out or 0) > 0
    said = await in_database(payload, entry.id, offered.acme.id)
    assert said is not None
    assert said.content["arguments"] == {"code": "x"}
    assert said.content["result"]["messages"][0]["content"]["text"] == '{"code":"x"}'


async def test_a_secret_argument_and_text_derived_from_it_are_not_recorded(offered: Cast) -> None:
    await in_database(
        publish, offered.acme.id, PrimitiveType.PROMPT, "signed", takes=("password!", "code")
    )
    secret = "hunter2-of-the-owner"
    reply = await _get(offered, "signed", {"password": secret, "code": "x"})
    assert secret in reply.raw.decode()
    (entry,) = await entries("signed", "prompts/get")
    said = await in_database(payload, entry.id, offered.acme.id)
    assert said is not None
    assert said.content["arguments"]["code"] == "x"
    assert secret not in str(said.content)
