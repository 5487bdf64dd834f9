"""Tests of what a person sees who opens a tenant's URL in a browser."""

import pytest

from mcphost.transport.visitors import PAGE
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)

BROWSER = {"host": "localhost", "accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def get(path: str, **headers: str) -> Reply:
    exchange = Exchange(path, {**BROWSER, **headers}, "GET")
    return await exchange.done()


async def test_a_browser_gets_the_same_page_for_any_name(served: Cast) -> None:
    for name in ("acme", "commons", "nowhere", "a%20b"):
        reply = await get(f"/t/{name}/mcp")
        assert (reply.status, reply.raw) == (200, PAGE)
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src" not in reply.headers["content-security-policy"]
        assert name.encode() not in PAGE


async def test_what_no_browser_sends_is_answered_as_before(served: Cast) -> None:
    for headers, status in (
        ({"accept": "*/*"}, 405),
        ({"accept": "text/event-stream"}, 405),
        ({"accept": "application/json"}, 405),
        ({"accept": "text/html" + "," * 5000}, 405),
        ({"mcp-protocol-version": "2026-07-28"}, 405),
        ({"host": "evil.example.com"}, 403),
    ):
        reply = await get("/t/acme/mcp", **headers)
        assert reply.status == status, headers
        assert reply.raw != PAGE
    assert (await get("/t/acme/mcp", **{"mcp-session-id": "made-up"})).raw != PAGE
