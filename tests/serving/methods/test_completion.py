"""`completion/complete` (spec: server/utilities/completion)."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.mcp import Reply, ask
from tests.served import entries
from tests.serving.memory_primitives import GUARD, WORDS, token_with

pytestmark = pytest.mark.django_db(transaction=True)

REVIEW = {"type": "ref/prompt", "name": "review"}
NOTES = {"type": "ref/resource", "uri": "users://{name}/notes{?of}"}


async def _complete(
    offered: Cast, ref: Any, name: str, value: Any = "", token: str = "", **more: Any
) -> Reply:
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    return await ask("acme", "completion/complete", params, token or offered.owner.mcp_token)


@pytest.mark.requirement("completion.prompt")
@pytest.mark.requirement("completion.template")
@pytest.mark.parametrize(("ref", "name"), [(REVIEW, "style"), (NOTES, "of")])
async def test_values_that_begin_with_the_typed_text_are_suggested(
    offered: Cast, ref: Any, name: str
) -> None:
    reply = await _complete(offered, ref, name, "word00")
    assert reply.result["completion"] == {"values": list(WORDS[:10]), "total": 10}
    assert await entries("review", "completion/complete") == []


@pytest.mark.requirement("completion.at-most-100")
async def test_only_the_first_hundred_of_many_values_are_suggested(offered: Cast) -> None:
    completion = (await _complete(offered, REVIEW, "code")).result["completion"]
    assert completion == {"values": list(WORDS[:100]), "total": 150, "hasMore": True}


@pytest.mark.requirement("completion.context")
async def test_arguments_already_filled_in_are_passed_to_the_completer(offered: Cast) -> None:
    context = {"arguments": {"code": "!", "unheard-of": "?"}}
    reply = await _complete(offered, REVIEW, "style", "word001", context=context)
    assert reply.result["completion"]["values"] == ["word001!"]


@pytest.mark.requirement("completion.unknown")
@pytest.mark.parametrize(
    ("ref", "name", "problem"),
    [
        ({"type": "ref/prompt", "name": "nothing"}, "code", "Unknown prompt"),
        ({"type": "ref/resource", "uri": "docs:{page}"}, "page", "Unknown resource template"),
        ({"type": "ref/resource", "uri": "no uri"}, "page", "Unknown resource template"),
        ({"type": "ref/resource", "uri": "docs:handbook"}, "page", "not one of them (none)"),
        (REVIEW, "colour", "not one of them (code, style)"),
        (NOTES, "path", "not one of them (name, of)"),
        ({"type": "ref/tool", "name": "review"}, "code", "params.ref"),
        ({"type": "ref/prompt"}, "code", "params.ref"),
        ("review", "code", "params.ref"),
    ],
)
async def test_unknown_references_and_arguments_are_errors_that_name_them(
    offered: Cast, ref: Any, name: str, problem: str
) -> None:
    reply = await _complete(offered, ref, name)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert problem in reply.error["message"]


@pytest.mark.requirement("completion.access")
@pytest.mark.parametrize(
    ("guarded", "other", "name"),
    [
        (
            {"type": "ref/prompt", "name": "guarded"},
            {"type": "ref/prompt", "name": "other"},
            "code",
        ),
        (
            {"type": "ref/resource", "uri": "vault:{key}"},
            {"type": "ref/resource", "uri": "other:{key}"},
            "key",
        ),
        (
            {"type": "ref/resource", "uri": "docs:guarded"},
            {"type": "ref/resource", "uri": "docs:other"},
            "key",
        ),
    ],
)
async def test_hidden_primitives_are_completed_like_unknown_ones(
    offered: Cast, guarded: dict[str, str], other: dict[str, str], name: str
) -> None:
    hidden, unknown = await _complete(offered, guarded, name), await _complete(offered, other, name)
    said = hidden.raw
    for key in ("name", "uri"):
        said = said.replace(guarded.get(key, "-").encode(), other.get(key, "-").encode())
    assert said == unknown.raw
    allowed = await token_with(offered, "mcp:call", GUARD)
    seen = await _complete(offered, guarded, name, token=allowed)
    assert "result" in seen.last or "(none)" in seen.error["message"]


@pytest.mark.requirement("completion.rate")
async def test_completions_count_as_calls_and_need_the_call_scope(offered: Cast) -> None:
    token = await token_with(offered, "mcp:call", calls_per_minute=1)
    assert (await _complete(offered, REVIEW, "code", token=token)).status == 200
    assert (await _complete(offered, REVIEW, "code", token=token)).error["code"] == -31429
    lists = await token_with(offered, "mcp:list")
    assert (await _complete(offered, REVIEW, "code", token=lists)).status == 403
