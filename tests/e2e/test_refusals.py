"""What is refused, on the wire of each server we support."""

import json

import pytest

from tests.e2e import raw
from tests.e2e.processes import Server

ECHO = raw.call("echo", {"text": "hello"})
# Well formed, with a checksum that cannot be right.
FORGED = "mcph_aaaaaaaaaaaa_bbbbbbbbbbbb_cccccc"


@pytest.mark.requirement("auth.challenge")
@pytest.mark.parametrize("token", [None, "", "wrong", FORGED])
def test_without_a_good_token_it_is_401_with_a_challenge(
    any_server: Server, token: str | None
) -> None:
    reply = raw.post(any_server, ECHO, token)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert "scope=" in reply.headers["www-authenticate"]
    assert "error" in reply.json


def test_a_token_is_good_for_its_own_tenant_only(any_server: Server) -> None:
    elsewhere = raw.post(any_server, ECHO, any_server.token, tenant="somebody-else")
    nobody = raw.post(any_server, ECHO, None)
    assert elsewhere.status == 401
    assert elsewhere.json["error"]["code"] == nobody.json["error"]["code"]


@pytest.mark.requirement("auth.not-in-query")
def test_a_token_in_the_query_string_is_no_credential(any_server: Server) -> None:
    path = f"/t/demo/mcp?access_token={any_server.token}"
    fields = raw.headers(ECHO, None)
    reply = raw.exchange(any_server, "POST", path, json.dumps(ECHO).encode(), fields)
    assert reply.status == 401


@pytest.mark.parametrize("token", [None, "wrong"])
def test_no_session_is_opened_without_a_good_token(any_server: Server, token: str | None) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        },
    }
    fields = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    body = json.dumps(message).encode()
    reply = raw.exchange(any_server, "POST", "/t/demo/mcp", body, fields)
    assert reply.status == 401
    assert "mcp-session-id" not in reply.headers


@pytest.mark.requirement("http.one-endpoint")
def test_only_post_is_answered_there(any_server: Server) -> None:
    reply = raw.send(any_server, "GET", "/t/demo/mcp", Accept="text/event-stream")
    assert reply.status == 405
    assert "POST" in reply.headers["allow"]


@pytest.mark.requirement("http.host")
def test_a_foreign_host_is_refused(any_server: Server) -> None:
    fields = {**raw.headers(ECHO, any_server.token), "Host": "evil.example.com"}
    reply = raw.exchange(any_server, "POST", "/t/demo/mcp", json.dumps(ECHO).encode(), fields)
    assert reply.status == 403


def test_what_is_not_json_is_said_to_be_so(any_server: Server) -> None:
    fields = raw.headers(ECHO, any_server.token)
    reply = raw.exchange(any_server, "POST", "/t/demo/mcp", b'{"jsonrpc":', fields)
    assert reply.status == 400
    assert reply.json["error"]["code"] == -32700
    assert "id" not in reply.json
