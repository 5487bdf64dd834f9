"""Characters that a database refuses: NUL and lone surrogates, in every text that a caller can send.

What they stand in is refused in words, or taken as it is; it is never the server that fails.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import raw
from tests.e2e.processes import Server
from tests.e2e.raw_sessions import begin

INTERNAL = -32603
ODD = ("a\0b", "\ud800")
LEGACY = "2025-11-25"

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": "p"}},
    "tools/list": {"cursor": "c"},
    "prompts/get": {"name": "review", "arguments": {"code": "x"}},
    "resources/read": {"uri": "demo://none"},
    "resources/subscribe": {"uri": "demo://none"},
    "resources/unsubscribe": {"uri": "demo://none"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "code", "value": "x"},
        "context": {"arguments": {"a": "b"}},
    },
    "logging/setLevel": {"level": "info"},
    "initialize": {
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {"form": {}}, "experimental": {"x": {"y": "z"}}},
        "clientInfo": {
            "name": "n",
            "version": "1",
            "title": "t",
            "websiteUrl": "https://a.example",
        },
    },
}
ENVELOPE = {
    f"{raw.PREFIX}clientInfo": {"name": "n", "version": "1", "title": "t"},
    f"{raw.PREFIX}clientCapabilities": {"elicitation": {"form": {}}, "experimental": {"x": {}}},
    "progressToken": "p",
    "traceparent": "t",
}
STATEFUL = {
    "requestState": "s",
    "inputResponses": {"key": {"action": "accept", "content": {"a": "b"}}},
}


@pytest.fixture
def attacked(postgresql_server: Server) -> Server:
    return postgresql_server


def spoiled(value: Any, odd: str) -> Iterator[Any]:
    match value:
        case str():
            yield value + odd
        case dict():
            for key, item in value.items():
                rest = {name: other for name, other in value.items() if name != key}
                yield {**rest, key + odd: item}
                for changed in spoiled(item, odd):
                    yield {**rest, key: changed}


def unharmed(server: Server, reply: raw.Reply, sent: Any) -> None:
    assert reply.status < 500, (sent, reply)
    if reply.body and "json" in reply.headers.get("content-type", ""):
        assert reply.json.get("error", {}).get("code") != INTERNAL, (sent, reply)
    assert b"Traceback" not in _logged(server), sent


_read: dict[Path, int] = {}


def _logged(server: Server) -> bytes:
    with server.log.open("rb") as log:
        log.seek(_read.get(server.log, 0))
        new = log.read()
        _read[server.log] = log.tell()
    return new


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("method", REQUESTS)
def test_requests_of_a_session_with_nul_or_surrogates_cause_no_server_error(
    attacked: Server, method: str, odd: str
) -> None:
    session = begin(attacked, LEGACY)
    for params in spoiled(REQUESTS[method], odd):
        message = {"jsonrpc": "2.0", "id": f"id{odd}", "method": method, "params": params}
        unharmed(attacked, session.send(message), message)


@pytest.mark.parametrize("odd", ODD)
def test_responses_and_notifications_with_nul_or_surrogates_cause_no_server_error(
    attacked: Server, odd: str
) -> None:
    session = begin(attacked, LEGACY)
    for message in (
        {"jsonrpc": "2.0", "id": f"x{odd}", "result": {"action": "accept"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": odd}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": odd}},
        {"jsonrpc": "2.0", "method": f"notifications/{odd}"},
    ):
        unharmed(attacked, session.send(message), message)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("method", [name for name in REQUESTS if name != "initialize"])
def test_stateless_requests_with_nul_or_surrogates_cause_no_server_error(
    attacked: Server, method: str, odd: str
) -> None:
    params = {**REQUESTS[method], **(STATEFUL if method == "tools/call" else {})}
    params["_meta"] = {f"{raw.PREFIX}protocolVersion": raw.REVISION, **ENVELOPE}
    named = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    fields = raw.headers(named, attacked.token)
    for changed in spoiled(params, odd):
        body = json.dumps({**named, "params": changed}).encode()
        unharmed(attacked, raw.exchange(attacked, "POST", "/t/demo/mcp", body, fields), changed)


PATHS = (
    "/t/%00/mcp",
    "/t/%ED%A0%80/mcp",
    "/t/demo/done/a%00b",
    "/t/demo/callback/%00",
    "/admin/t/%00/",
)


@pytest.mark.parametrize("path", PATHS)
def test_urls_with_nul_or_surrogates_cause_no_server_error(attacked: Server, path: str) -> None:
    message = raw.request("tools/list", {})
    body, fields = json.dumps(message).encode(), raw.headers(message, attacked.token)
    for method in ("GET", "POST"):
        reply = raw.exchange(attacked, method, path, body if method == "POST" else b"", fields)
        unharmed(attacked, reply, path)


@pytest.mark.parametrize("odd", ["%00", "%ED%A0%80"])
def test_sign_in_fields_with_nul_or_surrogates_cause_no_server_error(
    attacked: Server, odd: str
) -> None:
    page = raw.send(attacked, "GET", "/admin/login/")
    cookie = page.headers["set-cookie"].partition(";")[0]
    token = cookie.partition("=")[2]
    for name in ("username", "password", "csrfmiddlewaretoken", "next"):
        form = {"username": "admin", "password": "wrong", "csrfmiddlewaretoken": token, "next": "/"}
        body = "&".join(f"{key}={value}{odd if key == name else ''}" for key, value in form.items())
        fields = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        reply = raw.exchange(attacked, "POST", "/admin/login/", body.encode(), fields)
        unharmed(attacked, reply, body)
