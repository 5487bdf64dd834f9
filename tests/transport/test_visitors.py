"""The page that a browser gets at a tenant's URL."""

from typing import Any

import pytest

from mcphost.routing import ForBrowsers
from mcphost.transport.response import Send, send_empty
from mcphost.transport.visitors import PAGE
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = pytest.mark.django_db(transaction=True)

BROWSER = {"host": "localhost", "accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def get(path: str, **headers: str) -> Reply:
    exchange = Exchange(path, {**BROWSER, **headers}, "GET")
    return await exchange.done()


async def test_a_browser_gets_the_same_page_for_any_slug(served: Cast) -> None:
    for name in ("acme", "commons", "nowhere", "a%20b"):
        reply = await get(f"/t/{name}/mcp")
        assert (reply.status, reply.raw) == (200, PAGE)
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src" not in reply.headers["content-security-policy"]
        assert name.encode() not in PAGE


async def test_only_a_browser_gets_the_page_for_an_unknown_url() -> None:
    async def pages(scope: Any, receive: Any, send: Send) -> None:
        await send_empty(send, 410)

    async def status_for(accept: bytes) -> int:
        events: list[dict[str, Any]] = []

        async def send(event: dict[str, Any]) -> None:
            events.append(event)

        scope = {"type": "http", "path": "/register", "headers": [(b"accept", accept)]}
        await ForBrowsers(pages)(scope, None, send)
        return int(events[0]["status"])

    assert await status_for(BROWSER["accept"].encode()) == 410
    for accept in (b"", b"*/*", b"application/json", b"application/json, text/event-stream"):
        assert await status_for(accept) == 404


async def test_a_browser_may_use_a_trailing_slash(served: Cast) -> None:
    assert (await get("/t/acme/mcp/")).raw == PAGE


async def test_requests_that_no_browser_sends_get_the_protocol_response(served: Cast) -> None:
    for headers, status in (
        ({"accept": "*/*"}, 401),
        ({"accept": "text/event-stream"}, 401),
        ({"accept": "application/json"}, 401),
        ({"accept": "text/html" + "," * 5000}, 401),
        ({"mcp-protocol-version": "2026-07-28"}, 401),
        ({"host": "evil.example.com"}, 403),
    ):
        reply = await get("/t/acme/mcp", **headers)
        assert reply.status == status, headers
        assert reply.raw != PAGE
    assert (await get("/t/acme/mcp", **{"mcp-session-id": "made-up"})).raw != PAGE
