"""A stranger tries every method with every object of another tenant."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.serving.methods.dispatch import HANDLERS, LONG_LIVED
from tests.cast import Cast
from tests.mcp import ask, request, send
from tests.serving.memory_primitives import GUARD, token_with

pytestmark = pytest.mark.django_db(transaction=True)

Params = Mapping[str, Any]

METHODS = (*HANDLERS, *LONG_LIVED)
UNKNOWN = ("tasks/list", "x")
LISTS = tuple(method for method in METHODS if method.endswith("/list"))
URIS = ("docs:handbook", "docs:guarded", "users://Ada/notes?of=May", "file:///a/b", "vault:key")
OTHER = str.maketrans("eo", "qx")
REFS: Sequence[tuple[Params, str]] = (
    ({"type": "ref/prompt", "name": "review"}, "code"),
    ({"type": "ref/prompt", "name": "guarded"}, "code"),
    ({"type": "ref/resource", "uri": "docs:handbook"}, "code"),
    ({"type": "ref/resource", "uri": "users://{name}/notes{?of}"}, "name"),
    ({"type": "ref/resource", "uri": "vault:{key}"}, "key"),
)


def _things(method: str) -> list[Params]:
    """Parameters of a method that name primitives of `acme`."""
    arguments = {"text": "a", "code": "a"}
    return {
        "tools/call": [{"name": name, "arguments": arguments} for name in ("echo", "write")],
        "prompts/get": [{"name": name, "arguments": arguments} for name in ("review", "guarded")],
        "resources/read": [{"uri": uri} for uri in URIS],
        "completion/complete": [
            {"ref": ref, "argument": {"name": name, "value": ""}} for ref, name in REFS
        ],
        "subscriptions/listen": [{"notifications": {"resourceSubscriptions": list(URIS)}}],
    }.get(method, [{}])


async def _cursors(offered: Cast) -> dict[str, str]:
    """A cursor of every list of `acme`, of a caller that may see everything there."""
    token = await token_with(offered, "mcp:list", "mcp:call", GUARD)
    pages = {method: await ask("acme", method, token=token) for method in LISTS}
    return {method: page.result["nextCursor"] for method, page in pages.items()}


async def test_a_stranger_gets_the_same_refusal_for_every_method_at_another_tenants_url(
    offered: Cast, settings: Settings
) -> None:
    settings.MCPHOST_PAGE_SIZE = 1
    cursors = [{"cursor": cursor} for cursor in (await _cursors(offered)).values()]
    walls = set()
    for method in (*METHODS, *UNKNOWN):
        for params in [*_things(method), *cursors]:
            for slug in ("acme", "no-such-tenant"):
                for token in (offered.stranger.mcp_token, None):
                    reply = await send(slug, request(method, params), token)
                    assert reply.status == 401, method
                    headers = str(reply.headers).replace(f"/t/{slug}/mcp", "/t/<slug>/mcp")
                    walls.add((token is None, reply.raw, headers))
    assert len(walls) == 2


def _renamed(value: Any) -> Any:
    """The same parameters with names, URIs and templates of the same length that do not exist."""
    if isinstance(value, dict):
        kept = ("arguments", "argument", "type")
        return {key: part if key in kept else _renamed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_renamed(part) for part in value]
    assert value.translate(OTHER) != value
    return value.translate(OTHER)


async def test_primitives_of_other_tenants_are_answered_like_unknown_ones(offered: Cast) -> None:
    """Equal responses, except for the requested name."""
    token = offered.stranger.mcp_token
    for method, params in [(name, each) for name in METHODS for each in _things(name)]:
        theirs = await send("globex", request(method, params), token)
        nobodys = await send("globex", request(method, _renamed(params)), token)
        assert (theirs.status, theirs.headers) == (nobodys.status, nobodys.headers), params
        assert len(theirs.raw) == len(nobodys.raw)
        assert theirs.last.get("result") == nobodys.last.get("result")
        assert theirs.last.get("error", {}).get("code") == nobodys.last.get("error", {}).get("code")
        assert b"acme" not in theirs.raw.lower()


@pytest.mark.requirement("pages.invalid-cursor")
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_is_valid_only_for_its_list_tenant_and_scopes(
    offered: Cast, settings: Settings, method: str
) -> None:
    settings.MCPHOST_PAGE_SIZE = 1
    allowed = await token_with(offered, "mcp:list", "mcp:call", GUARD)
    cursors = await _cursors(offered)
    own = cursors.pop(method)
    assert (await ask("acme", method, {"cursor": own}, allowed)).status == 200
    attempts = [
        *(("acme", cursor, allowed) for cursor in cursors.values()),
        ("acme", own, offered.owner.mcp_token),
        ("acme", own[:-1], allowed),
        ("acme", own + "A", allowed),
        ("acme", "", allowed),
        ("globex", own, offered.stranger.mcp_token),
    ]
    refused = {
        (await ask(slug, method, {"cursor": cursor}, token)).raw for slug, cursor, token in attempts
    }
    nonsense = await ask("globex", method, {"cursor": "x"}, offered.stranger.mcp_token)
    assert refused == {nonsense.raw}
    assert (nonsense.status, nonsense.error["code"]) == (400, -32602)
