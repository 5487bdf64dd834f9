"""Requests that are refused before authentication, and the error texts."""

import orjson
import pytest
from pytest_django import Settings

from tests.cast import Cast
from tests.mcp import Exchange, Reply, headers_for, request, send

pytestmark = pytest.mark.django_db(transaction=True)


async def _plain(path: str, headers: dict[str, str], method: str = "POST") -> Reply:
    exchange = Exchange(path, {"host": "localhost", **headers}, method)
    exchange.write(b"{}")
    return await exchange.done()


@pytest.mark.requirement("http.host")
@pytest.mark.requirement("http.accept")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example.com"}, 403),
        ({"host": ""}, 403),
        ({"host": "localhost:8000"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": "application/json, text/event-stream;q=0"}, 406),
        ({"accept": "text/html"}, 406),
        ({"accept": ""}, 200),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/*;q=0.5, text/*"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": ""}, 415),
        ({"content-type": 'Application/JSON; charset="UTF-8"'}, 200),
        ({"content-length": "99999999999"}, 413),
    ],
)
async def test_headers_that_cannot_be_an_mcp_message_are_refused(
    served: Cast, headers: dict[str, str], status: int
) -> None:
    reply = await send("acme", request("tools/list"), served.owner.mcp_token, headers)
    assert reply.status == status
    if status != 200:
        assert "id" not in reply.check().last


@pytest.mark.requirement("http.one-endpoint")
@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD"])
async def test_other_methods_are_not_allowed(served: Cast, method: str) -> None:
    reply = await _plain("/t/acme/mcp", headers_for({}, served.owner.mcp_token), method)
    assert reply.status == 405
    assert "POST" in reply.headers["allow"]


@pytest.mark.parametrize(
    "path",
    [
        "/t/",
        "/t/acme",
        "/t/acme/mcp/",
        "/t/acme/other",
        "/t//mcp",
        "/.well-known/x",
        "/.well-known/oauth-protected-resource/t/acme/mcp",
    ],
)
async def test_everything_else_there_is_a_plain_json_404(served: Cast, path: str) -> None:
    reply = await _plain(path, {})
    assert reply.status == 404
    assert reply.last == {"error": "not_found"}


async def test_a_body_that_is_too_large_is_refused_while_it_comes(
    served: Cast, settings: Settings
) -> None:
    settings.MCPHOST_BODY_LIMIT = 100
    exchange = Exchange("/t/acme/mcp", headers_for({}, served.owner.mcp_token))
    exchange.write(b"x" * 60, more=True)
    exchange.write(b"x" * 60, more=True)
    assert (await exchange.done()).status == 413


@pytest.mark.parametrize("more", [0, 1])
async def test_a_body_may_be_as_large_as_the_limit(
    served: Cast, settings: Settings, more: int
) -> None:
    body = orjson.dumps(request("tools/list"))
    settings.MCPHOST_BODY_LIMIT = len(body) - more
    headers = headers_for(request("tools/list"), served.owner.mcp_token)
    for length in ({}, {"content-length": str(len(body))}):
        exchange = Exchange("/t/acme/mcp", {**headers, **length})
        exchange.write(body)
        assert (await exchange.done()).status == (413 if more else 200)


async def test_a_body_that_does_not_come_is_given_up(served: Cast, settings: Settings) -> None:
    settings.MCPHOST_BODY_SECONDS = 0.01
    exchange = Exchange("/t/acme/mcp", headers_for({}, served.owner.mcp_token))
    exchange.write(b"{", more=True)
    assert (await exchange.done()).status == 408


async def test_a_client_that_leaves_before_its_body_is_whole_gets_nothing(served: Cast) -> None:
    exchange = Exchange("/t/acme/mcp", headers_for({}, served.owner.mcp_token))
    exchange.write(b"{", more=True)
    exchange.hang_up()
    assert (await exchange.done()).status == 0


@pytest.mark.requirement("http.no-client-responses")
@pytest.mark.requirement("http.single-message")
@pytest.mark.requirement("http.parse-error")
@pytest.mark.parametrize(
    ("body", "code"),
    [
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
    ],
)
async def test_a_body_that_is_no_message_is_a_400(served: Cast, body: bytes, code: int) -> None:
    reply = await send("acme", body, served.owner.mcp_token)
    assert (reply.status, reply.error["code"]) == (400, code)


@pytest.mark.requirement("base.notification-unanswered")
@pytest.mark.requirement("http.notification-accepted")
async def test_a_notification_is_accepted_with_nothing(served: Cast) -> None:
    body = {**request("notifications/cancelled", {"requestId": 1}), "id": 1}
    del body["id"]
    reply = await send("acme", body, served.owner.mcp_token)
    assert (reply.status, reply.raw) == (202, b"")


async def test_an_accept_header_that_is_too_long_to_read_is_refused(served: Cast) -> None:
    long = ",".join(["*/*"] * 2000)
    token = served.owner.mcp_token
    reply = await send("acme", request("tools/list"), token, {"accept": long})
    assert reply.status == 406


async def test_the_log_has_no_header_that_a_client_made_up(
    served: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    made_up = {"mcp-method": "made-up-canary"}
    reply = await send("acme", request("tools/list"), served.owner.mcp_token, made_up)
    assert "made-up-canary" in reply.error["message"]
    assert "refused: header_mismatch" in caplog.text
    assert "canary" not in caplog.text
