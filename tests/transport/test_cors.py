"""Which web pages may send requests to a tenant."""

import pytest

from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from mcphost.transport.cors import is_allowed
from tests.cast import ACTOR, Cast
from tests.mcp import Exchange, Reply, request, send

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "https://app.example.com"


async def _preflight(slug: str, asked: str = "authorization, mcp-param-region") -> Reply:
    headers = {
        "host": "localhost",
        "origin": "https://anywhere.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": asked,
    }
    exchange = Exchange(f"/t/{slug}/mcp", headers, "OPTIONS")
    exchange.write(b"")
    return await exchange.done()


async def test_a_preflight_gets_the_same_response_for_every_slug(served: Cast) -> None:
    replies = [await _preflight(slug) for slug in ("acme", "commons", "no-such-tenant")]
    assert len({str(reply) for reply in replies}) == 1
    reply = replies[0]
    assert reply.status == 204
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in reply.headers
    allowed = reply.headers["access-control-allow-headers"]
    for name in (
        "authorization",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "last-event-id",
        "mcp-param-region",
        "mcp-session-id",
    ):
        assert name in allowed


async def test_a_preflight_allows_only_known_headers(served: Cast) -> None:
    reply = await _preflight("acme", "x-forwarded-for, cookie, mcp-é")
    allowed = reply.headers["access-control-allow-headers"]
    assert "cookie" not in allowed
    assert "x-forwarded-for" not in allowed
    assert "é" not in allowed


async def test_an_authentication_error_is_readable_by_any_page(served: Cast) -> None:
    reply = await send("acme", request("tools/list"), headers={"origin": PAGE})
    assert reply.status == 401
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "WWW-Authenticate" in reply.headers["access-control-expose-headers"]


@pytest.mark.requirement("http.origin")
async def test_after_authentication_the_tenants_allowed_origins_decide(served: Cast) -> None:
    token = served.owner.mcp_token
    refused = await send("acme", request("tools/list"), token, {"origin": PAGE})
    assert refused.status == 403
    assert "access-control-allow-origin" not in refused.headers
    fields = TenantFields(title="Acme", allowed_origins=(PAGE,))
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    reply = await send("acme", request("tools/list"), token, {"origin": PAGE})
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == PAGE
    assert reply.headers["vary"] == "Origin"
    for name in ("Mcp-Session-Id", "WWW-Authenticate", "Retry-After"):
        assert name in reply.headers["access-control-expose-headers"]
    for origin in ("null", "https://app.example.com:444", "http://app.example.com", f"{PAGE}."):
        reply = await send("acme", request("tools/list"), token, {"origin": origin})
        assert reply.status == 403


async def test_loopback_origins_of_any_port_can_be_allowed() -> None:
    allowed = ("http://localhost:*", "http://[::1]:*")
    for origin in ("http://localhost:8000", "http://localhost", "http://[::1]:1234"):
        assert is_allowed(origin, allowed)
    for origin in (
        "https://localhost:8000",
        "http://localhost.evil:80",
        "http://localhost:x",
        "http://[::1",
        "null",
        "",
    ):
        assert not is_allowed(origin, allowed)
