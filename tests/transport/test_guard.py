"""Requests that are refused before authentication, and the error texts."""

import orjson
import pytest
from pytest_django import Settings

from tests.cast import Cast
from tests.legacy import Session, begin, initializing, message
from tests.mcp import Exchange, Reply, headers_for, request, send
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)


async def _plain(path: str, headers: dict[str, str], method: str = "POST") -> Reply:
    exchange = Exchange(path, {"host": "localhost", **headers}, method)
    exchange.write(b"{}")
    return await exchange.done()


HEADS: tuple[tuple[dict[str, str], int], ...] = (
    ({"host": "evil.example.com"}, 403),
    ({"host": ""}, 403),
    ({"host": "localhost:8000"}, 200),
    ({"host": "[::1]:8000"}, 200),
    ({"accept": "application/json"}, 406),
    ({"accept": "text/event-stream"}, 406),
    ({"accept": "application/json, text/event-stream;q=0"}, 406),
    ({"accept": "text/html"}, 406),
    ({"accept": ",".join(["*/*"] * 2000)}, 406),
    ({"accept": ""}, 200),
    ({"accept": "*/*"}, 200),
    ({"accept": "application/*;q=0.5, text/*"}, 200),
    ({"content-type": "text/plain"}, 415),
    ({"content-type": "application/json; charset=latin-1"}, 415),
    ({"content-type": ""}, 415),
    ({"content-type": 'Application/JSON; charset="UTF-8"'}, 200),
    ({"content-encoding": "gzip"}, 415),
    ({"content-encoding": "br, gzip"}, 415),
    ({"content-encoding": "identity"}, 200),
    ({"content-length": "99999999999"}, 413),
)
PATHS = (
    "/t/",
    "/t/acme",
    "/t/acme/mcp//",
    "/t/acme/other",
    "/t//mcp",
    "/.well-known/x",
    "/.well-known/openid-configuration",
    "/t",
    "/mcp",
    "/mcp/",
    "/sse",
    "/registered",
    "/tokens",
    "/administration",
)


@pytest.mark.requirement("http.host", "http.accept")
async def test_requests_with_invalid_http_headers_are_refused(served: Cast) -> None:
    for headers, status in HEADS:
        reply = await send("acme", request("tools/list"), served.owner.mcp_token, headers)
        assert reply.status == status, headers
        if status not in (200, 406):
            assert reply.check().last["id"] is None


@pytest.mark.requirement("http.one-endpoint")
async def test_other_methods_get_405_and_other_paths_404(served: Cast) -> None:
    for method in ("GET", "PUT", "HEAD"):
        reply = await _plain("/t/acme/mcp", headers_for({}, served.owner.mcp_token), method)
        assert reply.status == 405
        assert "POST" in reply.headers["allow"]
    for path in PATHS:
        for method, headers in (
            ("POST", {}),
            ("POST", {"accept": "application/json"}),
            ("GET", {"accept": "application/json, */*"}),
        ):
            reply = await _plain(path, headers, method)
            assert reply.status == 404, path
            assert reply.last["error"] == "not_found"
            assert "/t/<tenant>/mcp" in reply.last["error_description"]
            assert "Connect" in reply.last["error_description"]


async def test_authentication_is_checked_before_the_method(served: Cast) -> None:
    for method in ("GET", "DELETE", "PUT", "HEAD"):
        for token in (None, "wrong"):
            for version in ("2026-07-28", "2025-11-25"):
                headers = headers_for({}, token) | {"mcp-protocol-version": version}
                assert (await _plain("/t/acme/mcp", headers, method)).status == 401
    reply = await _plain("/t/acme/mcp", headers_for({}, served.owner.mcp_token), "PUT")
    assert (reply.status, "PUT" in reply.error["message"]) == (405, True)


async def test_only_requests_need_a_matching_accept_header(served: Cast) -> None:
    json = {"accept": "application/json"}
    token = served.owner.mcp_token
    refused = await send("acme", request("tools/list"), token, json)
    assert (refused.status, refused.last["id"]) == (406, 1)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await send("acme", note, token, json)).status == 202
    for revision in SESSION_BASED:
        session = await begin("acme", token, revision)
        for body in (note, {"jsonrpc": "2.0", "id": "unknown", "result": {"action": "cancel"}}):
            for _ in range(2):
                assert (await session.send(body, accept="application/json")).status == 202
        for method in ("ping", "tools/list"):
            reply = await session.send(message(method, id=1), accept="application/json")
            assert (reply.status, reply.last["id"]) == (406, 1)


async def test_a_compressed_body_is_refused_with_415(served: Cast) -> None:
    token = served.owner.mcp_token
    assert (await send("acme", request("tools/list"), token)).status == 200
    reply = await send("acme", request("tools/list"), token, {"content-encoding": "gzip"})
    assert (reply.status, "Content-Encoding" in reply.error["message"]) == (415, True)


async def test_a_trailing_slash_in_the_url_changes_nothing(served: Cast) -> None:
    token = served.owner.mcp_token
    for tool in ("echo", "unknown"):
        body = request("tools/call", {"name": tool, "arguments": {"text": "a"}})
        replies = []
        for path in ("/t/acme/mcp", "/t/acme/mcp/"):
            exchange = Exchange(path, headers_for(body, token))
            exchange.write(orjson.dumps(body))
            replies.append(await exchange.done())
        plain, slashed = replies
        assert (slashed.status, slashed.last) == (plain.status, plain.last)
    for revision in SESSION_BASED:
        headers = Session("acme", token, revision).headers(mcp_protocol_version="")
        exchange = Exchange("/t/acme/mcp/", headers)
        exchange.write(orjson.dumps(initializing(revision)))
        session = await exchange.done()
        headers = headers | {"mcp-session-id": session.headers["mcp-session-id"]}
        ended = Exchange("/t/acme/mcp/", headers, "DELETE")
        ended.write(b"")
        assert (await ended.done()).status == 204


async def test_a_body_of_exactly_the_limit_is_accepted_and_a_larger_one_refused(
    served: Cast, settings: Settings
) -> None:
    body = orjson.dumps(request("tools/list"))
    headers = headers_for(request("tools/list"), served.owner.mcp_token)
    for limit, status in ((len(body), 200), (len(body) - 1, 413)):
        settings.MCPHOST_BODY_LIMIT = limit
        for length in ({}, {"content-length": str(len(body))}):
            exchange = Exchange("/t/acme/mcp", {**headers, **length})
            exchange.write(body)
            assert (await exchange.done()).status == status
    settings.MCPHOST_BODY_LIMIT = 100
    exchange = Exchange("/t/acme/mcp", headers)
    exchange.write(b"x" * 60, more=True)
    exchange.write(b"x" * 60, more=True)
    assert (await exchange.done()).status == 413, "while it comes"


async def test_a_body_that_does_not_arrive_in_time_is_abandoned(
    served: Cast, settings: Settings
) -> None:
    headers = headers_for({}, served.owner.mcp_token)
    exchange = Exchange("/t/acme/mcp", headers)
    exchange.write(b"{", more=True)
    exchange.hang_up()
    assert (await exchange.done()).status == 0, "its client has left"
    settings.MCPHOST_BODY_SECONDS = 0.01
    exchange = Exchange("/t/acme/mcp", headers)
    exchange.write(b"{", more=True)
    assert (await exchange.done()).status == 408


NO_MESSAGES = (
    (b"", -32700),
    (b"{", -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b"null", -32600),
    (b'"text"', -32600),
    (b'{"jsonrpc":"2.0"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    (b"[" * 5000, -32700),
    (b"\xff\xfe", -32700),
)


@pytest.mark.requirement("http.no-client-responses", "http.single-message", "http.parse-error")
async def test_a_body_that_is_not_a_message_gets_400(served: Cast) -> None:
    for body, code in NO_MESSAGES:
        reply = await send("acme", body, served.owner.mcp_token)
        assert (reply.status, reply.error["code"]) == (400, code), body[:50]


@pytest.mark.requirement("base.notification-unanswered", "http.notification-accepted")
async def test_a_notification_gets_202_without_a_body(served: Cast) -> None:
    body = {**request("notifications/cancelled", {"requestId": 1}), "id": 1}
    del body["id"]
    reply = await send("acme", body, served.owner.mcp_token)
    assert (reply.status, reply.raw) == (202, b"")
