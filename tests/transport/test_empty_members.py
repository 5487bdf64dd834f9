"""`null`, and `[]` instead of an object, count as absent: some languages write absent members so."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.legacy import Session, begin, initializing, message
from tests.mcp import PREFIX, listening, request, send
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

REVIEW: dict[str, Any] = {
    "ref": {"type": "ref/prompt", "name": "review"},
    "argument": {"name": "code", "value": "word01"},
}
CASES: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("tools/list", {}, ({"cursor": None}, {"_meta": {"progressToken": None}})),
    ("prompts/list", {}, ({"cursor": None},)),
    ("resources/list", {}, ({"cursor": None},)),
    ("resources/templates/list", {}, ({"cursor": None},)),
    ("tools/call", {"name": "echo"}, ({"arguments": None}, {"arguments": []})),
    ("prompts/get", {"name": "review"}, ({"arguments": None}, {"arguments": []})),
    (
        "prompts/get",
        {"name": "review", "arguments": {"code": "x"}},
        ({"arguments": {"code": "x", "style": None}},),
    ),
    ("resources/read", {"uri": "docs:handbook"}, ({"_meta": {"progressToken": None}},)),
    (
        "completion/complete",
        REVIEW,
        ({"context": None}, {"context": []}, {"context": {"arguments": None}}),
    ),
    ("completion/complete", REVIEW, ({"context": {"arguments": []}},)),
)
"""A method, params, and members that say no more than those."""


@pytest.fixture(params=SESSION_BASED)
async def session(request: pytest.FixtureRequest, offered: Cast) -> Session:
    """A session of the owner at `acme`, of each revision."""
    return await begin("acme", offered.owner.mcp_token, request.param)


async def test_null_and_empty_array_members_count_as_absent_in_sessions(
    session: Session,
) -> None:
    for method, params, empties in CASES:
        plain = await session.ask(method, params)
        for empty in empties:
            reply = await session.ask(method, {**params, **empty})
            assert reply.last == plain.last, (method, empty)
    for params in (None, []):
        body = {**message("tools/list", id=1), "params": params}
        assert (await session.send(body)).result["tools"]
        note = {**message("notifications/initialized"), "params": params}
        assert (await session.send(note)).status == 202
    nothing = message("tools/list", {"_meta": None}, 1)
    assert (await session.send(nothing)).result["tools"]
    assert (await session.send({**message("notifications/initialized"), "id": None})).status == 202
    assert (await session.send({"jsonrpc": "2.0", "id": "x", "result": []})).status == 202


async def test_null_and_empty_array_members_count_as_absent_without_a_session(
    offered: Cast,
) -> None:
    token = offered.owner.mcp_token
    for method, params, empties in CASES:
        plain = await send("acme", request(method, params), token)
        for empty in empties:
            body = request(method, {**params, **empty})
            if "_meta" in empty:
                body["params"]["_meta"] = {**request(method)["params"]["_meta"], **empty["_meta"]}
            reply = await send("acme", body, token)
            assert reply.last == plain.last, (method, empty)
    body = request("tools/call", {"name": "echo", "arguments": {"text": "a"}})
    body["params"] |= {"inputResponses": None, "requestState": None}
    body["params"]["_meta"][f"{PREFIX}clientInfo"] = None
    body["params"]["_meta"][f"{PREFIX}logLevel"] = None
    several: tuple[Any, ...] = ([], {"elicitation": [], "roots": None, "sampling": {"tools": None}})
    for capabilities in several:
        body["params"]["_meta"][f"{PREFIX}clientCapabilities"] = capabilities
        assert (await send("acme", body, token)).text == "a"


async def test_a_null_subscription_filter_field_counts_as_absent(offered: Cast) -> None:
    token = offered.owner.mcp_token
    fields: dict[str, Any] = {
        "promptsListChanged": None,
        "resourceSubscriptions": None,
        "taskIds": None,
    }
    async with listening("acme", token, toolsListChanged=True, **fields) as subscription:
        assert subscription.honoured == {"toolsListChanged": True}


async def test_a_capability_given_as_an_empty_array_is_declared(asking: Cast) -> None:
    token = asking.owner.mcp_token
    for revision in ("2025-06-18", "2025-11-25"):
        session = Session("acme", token, revision)
        body = initializing(revision, elicitation=[], roots=None)
        session.id = (await session.send(body, mcp_protocol_version="")).headers["mcp-session-id"]
        await session.notify("notifications/initialized")
        async with session.begun(message("tools/call", {"name": "survey"}, 1)) as posted:
            assert (await posted.message())["method"] == "elicitation/create"
