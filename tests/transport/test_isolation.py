"""The stranger walks every method with everything that belongs to another tenant."""

import pytest
from pytest_django import Settings

from mcphost.serving.dispatch import HANDLERS
from tests.cast import Cast
from tests.mcp import ask, request, send

pytestmark = pytest.mark.django_db(transaction=True)

UNKNOWN = ("subscriptions/listen", "tasks/get", "x")


def _params(method: str, cursor: str) -> list[dict[str, object]]:
    """What a method can be asked with, of `acme`'s."""
    name = {"name": "echo", "arguments": {"text": "canary-of-acme"}}
    return {
        "tools/call": [name, {"name": "write", "arguments": {"text": "a"}}],
        "tools/list": [{}, {"cursor": cursor}],
    }.get(method, [{}])


@pytest.mark.parametrize("method", [*HANDLERS, *UNKNOWN])
async def test_a_stranger_at_another_tenants_url_meets_a_wall(
    served: Cast, settings: Settings, method: str
) -> None:
    settings.MCPHOST_PAGE_SIZE = 2
    listed = await ask("acme", "tools/list", token=served.owner.mcp_token)
    walls = set()
    for params in _params(method, listed.result["nextCursor"]):
        for slug in ("acme", "no-such-tenant"):
            for token in (served.stranger.mcp_token, None):
                reply = await send(slug, request(method, params), token)
                assert reply.status == 401
                walls.add((token is None, reply.raw, str(reply.headers)))
    assert len(walls) == 2


@pytest.mark.parametrize("method", sorted(HANDLERS))
async def test_at_home_a_stranger_sees_nothing_of_another_tenant(
    served: Cast, settings: Settings, method: str
) -> None:
    settings.MCPHOST_PAGE_SIZE = 2
    listed = await ask("acme", "tools/list", token=served.owner.mcp_token)
    for params in _params(method, listed.result["nextCursor"]):
        reply = await send("globex", request(method, params), served.stranger.mcp_token)
        assert b"acme" not in reply.raw.lower()
        assert b"echo" not in reply.raw or b"Unknown tool" in reply.raw
