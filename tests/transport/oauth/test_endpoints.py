"""`/token`, `/revoke`, `/register` and `/authorize` as programs meet them: they answer JSON, always."""

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest

from mcphost.identity.oauth.registration import PER_ADDRESS
from mcphost.observability.availability import Source, availability
from mcphost.transport.django_requests import slots
from mcphost.transport.oauth.programs import (
    FORM,
    FORM_BYTES,
    REGISTRATION_BYTES,
    ForPrograms,
)
from tests.mcp import Exchange, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("stopped")]

JSON = "application/json"
BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
ENDPOINTS = {
    "/token": (FORM, FORM_BYTES),
    "/revoke": (FORM, FORM_BYTES),
    "/register": (JSON, REGISTRATION_BYTES),
}
DISCOVERY = (
    "/authorize",
    "/authorize/",
    "/token/",
    "/token\n",
    "/register/",
    "/t/acme/mcp/token",
    "/t/acme/token",
    "/t/acme/authorize",
    "/t/acme/register",
    "/t/no-such-tenant/register",
    "/mcp/register",
    "/oauth/token",
    "/introspect",
    "/userinfo",
    "/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """End the threads of Django's requests."""
    yield
    slots.cache_clear()
    gc.collect()


async def ask(
    path: str, body: bytes | Sequence[bytes] = b"", method: str = "POST", **headers: str
) -> Reply:
    sent = {"host": "localhost", **{name.replace("_", "-"): headers[name] for name in headers}}
    query = sent.pop("query", "")
    exchange = Exchange(path, {k: v for k, v in sent.items() if v}, method, query)
    for piece in [body] if isinstance(body, bytes) else body:
        exchange.write(piece, more=True)
    exchange.write(b"")
    return await exchange.done()


def check(reply: Reply, *, stored: bool = False) -> Reply:
    """Check that a program and a web page can read the response."""
    assert reply.headers["access-control-allow-origin"] == "*"
    if reply.status != 204:
        assert reply.headers["content-type"] == JSON
        assert stored or reply.headers["cache-control"] == "no-store"
        assert reply.status < 400 or not reply.raw or set(reply.last) >= {"error"}
    return reply


def refused(reply: Reply, status: int, error: str = "invalid_request") -> Reply:
    assert (check(reply).status, reply.last["error"]) == (status, error)
    assert reply.last["error_description"].endswith(".")
    return reply


@pytest.mark.parametrize("accept", ["", "*/*", JSON, "application/json, text/event-stream"])
async def test_programs_never_get_html_whatever_they_try(accept: str) -> None:
    for path in (*ENDPOINTS, *DISCOVERY):
        for method in METHODS:
            for media_type in ("", FORM, JSON, "text/plain"):
                reply = await ask(path, b"x=1", method, accept=accept, content_type=media_type)
                assert not reply.raw.lstrip().startswith(b"<"), (path, method)
                if reply.status != 204:
                    assert reply.headers["content-type"] == JSON, (path, method)
                check(reply, stored=True)


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_endpoints_of_programs_answer_browsers_in_json_too(path: str) -> None:
    for method in METHODS:
        check(await ask(path, b"x=1", method, accept=BROWSER, content_type=ENDPOINTS[path][0]))


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_any_page_may_send_requests_to_them(path: str) -> None:
    asked = {"access_control_request_headers": "content-type, mcp-protocol-version"}
    origin = "https://anywhere.example"
    reply = check(await ask(path, b"", "OPTIONS", origin=origin, **asked))
    assert (reply.status, reply.raw) == (204, b"")
    assert "POST" in reply.headers["access-control-allow-methods"]
    for name in ("content-type", "authorization", "mcp-protocol-version"):
        assert name in reply.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in reply.headers
    check(await ask(path, b"", origin=origin, content_type=ENDPOINTS[path][0]))


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_what_is_not_a_post_of_the_right_type_is_refused(path: str) -> None:
    right, _ = ENDPOINTS[path]
    wrong = FORM if right == JSON else JSON
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        reply = refused(await ask(path, b"", method, content_type=right), 405)
        assert reply.headers["allow"] == "POST, OPTIONS"
    for media_type in ("", "text/plain", wrong, "multipart/form-data; boundary=x", f"{right}x"):
        reply = refused(await ask(path, b"", content_type=media_type), 415)
        assert right in reply.last["error_description"]
    refused(await ask(path, b"", content_type=right, content_encoding="gzip"), 415)
    refused(await ask(path, b"", content_type=right, host="evil.example.com"), 403)
    for accepted in (f"{right}; charset=UTF-8", right.upper()):
        assert check(await ask(path, b"x", content_type=accepted)).status not in (403, 405, 415)


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_a_body_may_have_so_many_bytes_and_no_more(path: str) -> None:
    media_type, limit = ENDPOINTS[path]
    for length in (str(limit + 1), "9" * 5000):
        reply = refused(await ask(path, b"", content_type=media_type, content_length=length), 413)
        assert str(limit) in reply.last["error_description"]
    halves = [b"x" * (limit // 2), b"x" * (limit // 2)]
    refused(await ask(path, [*halves, b"x"], content_type=media_type), 413)
    refused(await ask(path, [*halves, b"x", b"x" * limit], content_type=media_type), 413)
    assert check(await ask(path, halves, content_type=media_type)).status == 400


async def test_the_token_endpoint_hands_the_form_to_the_grants() -> None:
    for body in (b"", b"grant_type=password", b"grant_type=device_code"):
        reply = refused_by_grants(await ask("/token", body, content_type=FORM))
        assert reply.last["error"] in {"unsupported_grant_type", "invalid_request"}


@pytest.mark.parametrize("path", ["/token", "/revoke"])
async def test_a_body_that_is_no_form_is_refused(path: str) -> None:
    refused(await ask(path, "token=é".encode(), content_type=FORM), 400)
    refused_by_grants(await ask(path, b"%zz=%", content_type=FORM))


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_parameters_in_the_address_are_refused_and_not_logged(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = {"content_type": ENDPOINTS[path][0], "query": "token=canary"}
    reply = refused(await ask(path, b"x=1", **sent), 400)
    assert "address" in reply.last["error_description"]
    assert "canary" not in caplog.text + reply.raw.decode()


def refused_by_grants(reply: Reply) -> Reply:
    assert check(reply).status == 400
    return reply


async def test_a_client_registers_and_a_bad_registration_is_400() -> None:
    fields = {"client_name": "Probe", "redirect_uris": ["http://127.0.0.1:4000/callback"]}
    reply = check(await ask("/register", orjson.dumps(fields), content_type=JSON))
    assert (reply.status, reply.last["client_name"]) == (201, "Probe")
    assert reply.last["token_endpoint_auth_method"] == "none"
    refused(await ask("/register", b"{}", content_type=JSON), 400, "invalid_redirect_uri")
    refused(await ask("/register", b"[", content_type=JSON), 400, "invalid_client_metadata")


async def test_too_many_registrations_of_one_network_are_429() -> None:
    fields = orjson.dumps({"redirect_uris": ["http://127.0.0.1/callback"]})
    replies = [await ask("/register", fields, content_type=JSON) for _ in range(PER_ADDRESS + 1)]
    assert [reply.status for reply in replies[:-1]] == [201] * PER_ADDRESS
    refused(replies[-1], 429, "temporarily_unavailable")


async def test_programs_are_told_that_authorize_is_a_page() -> None:
    for accept in ("", "*/*", JSON):
        for method in ("GET", "POST"):
            reply = refused(await ask("/authorize", b"", method, accept=accept), 400)
            assert "browser" in reply.last["error_description"]


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_an_unavailable_database_is_503_in_json(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "probe", None)  # it would find the database at once
    await ask("/authorize")  # the process starts with the database
    availability.lost(Source.CONNECTION, "a test")
    try:
        reply = await ask(path, b"x=1", content_type=ENDPOINTS[path][0])
    finally:
        availability.reached(Source.CONNECTION)
    refused(reply, 503, "temporarily_unavailable")
    assert reply.headers["retry-after"].isdecimal()


async def test_a_failure_is_500_in_json_and_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("hidden")

    monkeypatch.setattr("mcphost.identity.oauth.grants.TokenEndpoint", fail)
    reply = await ask("/token", b"grant_type=refresh_token", content_type=FORM)
    refused(reply, 500, "server_error")
    assert b"hidden" not in reply.raw
    caplog.clear()  # the traceback keeps the thread


OTHER_ANSWERS = (
    (503, [(b"content-type", b"text/plain"), (b"retry-after", b"2")], "temporarily_unavailable"),
    (413, [(b"content-type", b"text/plain; charset=utf-8")], "invalid_request"),
    (400, [(b"Content-Type", b"text/html")], "invalid_request"),
    (404, [(b"Content-Type", b"text/html; charset=utf-8")], "invalid_request"),
    (500, [], "server_error"),
    (302, [(b"location", b"/admin/login/")], "server_error"),
    (200, [(b"content-type", b"text/html")], "server_error"),
)


@pytest.mark.parametrize(("status", "headers", "error"), OTHER_ANSWERS)
async def test_whatever_is_answered_below_becomes_an_error_of_oauth(
    status: int, headers: list[tuple[bytes, bytes]], error: str
) -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"<html>", "more_body": True})
        await send({"type": "http.response.body", "body": b"</html>"})

    events: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    sent = [(b"host", b"localhost"), (b"content-type", FORM.encode())]
    await ForPrograms(page, FORM, 10)({"method": "POST", "headers": sent}, None, send)
    start, body = events
    assert start["status"] == (status if status >= 400 else 500)
    answered = dict(start["headers"])
    assert answered[b"content-type"] == JSON.encode()
    assert answered.get(b"retry-after") == dict(headers).get(b"retry-after")
    assert b"location" not in answered
    assert orjson.loads(body["body"])["error"] == error
