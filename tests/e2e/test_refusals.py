"""What is refused, on the wire of each server we support."""

import json

import pytest

from tests.e2e import raw
from tests.e2e.processes import Server
from tests.e2e.raw import Reply

PATH = "/t/demo/mcp"
ECHO = raw.call("echo", {"text": "hello"})
# Well formed, with a checksum that cannot be right.
FORGED = "mcph_aaaaaaaaaaaa_bbbbbbbbbbbb_cccccc"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    },
}


def _opening(token: str | None) -> dict[str, str]:
    known = raw.headers(ECHO, token)
    return {
        name: known[name] for name in ("Content-Type", "Accept", "Authorization") if name in known
    }


def _echo(server: Server, path: str = PATH, token: str | None = None, **fields: str) -> Reply:
    sent = {**raw.headers(ECHO, token), **fields}
    return raw.exchange(server, "POST", path, json.dumps(ECHO).encode(), sent)


@pytest.mark.requirement("auth.challenge", "auth.not-in-query")
def test_requests_without_a_valid_token_get_401_with_a_challenge(any_server: Server) -> None:
    nobody = _echo(any_server)
    for token in (None, "", "wrong", FORGED):
        reply = _echo(any_server, token=token)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert "scope=" in reply.headers["www-authenticate"]
        begun = raw.exchange(
            any_server, "POST", PATH, json.dumps(INITIALIZE).encode(), _opening(token)
        )
        assert begun.status == 401
        assert "mcp-session-id" not in begun.headers
    elsewhere = _echo(any_server, "/t/somebody-else/mcp", any_server.token)
    assert elsewhere.status == 401
    assert elsewhere.json["error"]["code"] == nobody.json["error"]["code"]
    assert _echo(any_server, f"{PATH}?access_token={any_server.token}").status == 401


@pytest.mark.requirement("http.one-endpoint", "http.host")
def test_only_posted_json_for_an_allowed_host_is_served(any_server: Server) -> None:
    token = any_server.token
    assert _echo(any_server, token=token).status == 200
    stream = {"Accept": "text/event-stream"}
    assert raw.send(any_server, "GET", PATH, **stream).status == 401, "the caller comes first"
    got = raw.send(any_server, "GET", PATH, Authorization=f"Bearer {token}", **stream)
    assert got.status == 405
    assert "POST" in got.headers["allow"]
    assert _echo(any_server, token=token, Host="evil.example.com").status == 403
    reply = raw.exchange(any_server, "POST", PATH, b'{"jsonrpc":', raw.headers(ECHO, token))
    assert reply.status == 400
    assert reply.json["error"]["code"] == -32700
    assert reply.json["id"] is None
