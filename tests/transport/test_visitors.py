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


@pytest.mark.parametrize("name", ["acme", "commons", "nowhere", "a%20b"])
async def test_a_browser_gets_the_same_page_for_any_name(served: Cast, name: str) -> None:
    reply = await get(f"/t/{name}/mcp")
    assert (reply.status, reply.raw) == (200, PAGE)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in reply.headers["content-security-policy"]
    assert name.encode() not in PAGE


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "*/*"}, 405),
        ({"accept": "text/event-stream"}, 405),
        ({"accept": "application/json"}, 405),
        ({"accept": "text/html" + "," * 5000}, 405),
        ({"mcp-protocol-version": "2026-07-28"}, 405),
        ({"host": "evil.example.com"}, 403),
    ],
)
async def test_what_no_browser_sends_is_answered_as_before(
    served: Cast, headers: dict[str, str], status: int
) -> None:
    reply = await get("/t/acme/mcp", **headers)
    assert reply.status == status
    assert reply.raw != PAGE


async def test_a_session_of_a_client_that_also_takes_html_gets_no_page(served: Cast) -> None:
    reply = await get("/t/acme/mcp", **{"mcp-session-id": "made-up"})
    assert reply.raw != PAGE
