"""Calls for the pictures of all pages, on the running server: tasks, refusals, a connected app, links to pages."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.e2e import raw
from tests.e2e.desktops import admin_of
from tests.e2e.handmade_calls import wait_until
from tests.e2e.processes import Server
from tests.screenshots.client import CAPABILITIES

TASKS: Mapping[str, Any] = {
    **CAPABILITIES,
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
CLIENT = {f"{raw.PREFIX}clientInfo": {"name": "claude-code", "version": "2.1"}}
YEARS = (2024, 2025, 2026, 2030)
"""The years that are exported: two wait for an answer, one is at work, one fails."""
ANSWERED_YEAR = 2024
TENANT = "support"
VERIFIER = "a-verifier-of-at-least-forty-three-characters"
REDIRECT = "http://127.0.0.1:41234/callback"


def make_calls(server: Server) -> dict[str, str]:
    """Make the calls; return addresses that exist only now, by name."""
    token = (server.home / "token-support-admin").read_text().strip()
    for year in YEARS:
        _export(server, token, year)
    _be_refused(server, token)
    return {
        "authorize": _connect(server, "Claude Code"),
        "authorize:refused": f"/authorize?{urlencode({'client_id': 'unknown'})}",
        "done": _page_to_confirm(server),
    }


def _send(
    server: Server, token: str, method: str, capabilities: Mapping[str, Any], **params: Any
) -> Any:
    meta = {**CLIENT, f"{raw.PREFIX}clientCapabilities": capabilities}
    return raw.post(server, raw.request(method, params, **meta), token, TENANT).message


def _export(server: Server, token: str, year: int) -> None:
    def look() -> Any:
        return _send(server, token, "tasks/get", TASKS, taskId=task)["result"]

    called = {"name": "export_orders", "arguments": {"year": year}}
    task = _send(server, token, "tools/call", TASKS, **called)["result"]["taskId"]
    if year < max(YEARS) - 4:
        wait_until(lambda: look()["status"] == "input_required")
    if year == ANSWERED_YEAR:
        responses = {"format": {"action": "accept", "content": {"format": "CSV"}}}
        _send(server, token, "tasks/update", TASKS, taskId=task, inputResponses=responses)
        wait_until(lambda: look()["status"] == "completed")


def _be_refused(server: Server, token: str) -> None:
    call = raw.call("refund_order", {"order": 4711}, **CLIENT)
    for wrong, credential in (
        (call, "mcp_a-token-that-is-unknown"),
        (raw.call("delete_order", {"order": 4711}, **CLIENT), token),
        (raw.request("tools/unknown", {}, **CLIENT), token),
        (call, token),
        (_with_state(raw.call("resolve_ticket", {"ticket": 4522}, **CLIENT)), token),
    ):
        raw.post(server, wrong, credential, TENANT)


def _with_state(message: dict[str, Any]) -> dict[str, Any]:
    """Let a call resume with a request state that this server has not sealed."""
    message["params"] |= {"requestState": "mcps1.unknown.state", "inputResponses": {}}
    return message


def _connect(server: Server, name: str) -> str:
    """Connect an app to the demo and make a call with it; return the address of its consent page."""
    registration = json.dumps({"client_name": name, "redirect_uris": [REDIRECT]}).encode()
    registered = raw.send(
        server, "POST", "/register", registration, Content_Type="application/json"
    )
    client = registered.json["client_id"]
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": REDIRECT,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "state": "a-state",
        "scope": "mcp:list mcp:call",
        "resource": server.url,
    }
    page = f"/authorize?{urlencode(query)}"
    admin = admin_of(server)
    admin.allow(page)
    (code,) = parse_qs(urlsplit(admin.location).query)["code"]
    redeemed = {
        "grant_type": "authorization_code",
        "client_id": client,
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    tokens = raw.send(server, "POST", "/token", urlencode(redeemed).encode(), **form).json
    called = raw.post(server, raw.call("echo", {"text": "Hello"}, **CLIENT), tokens["access_token"])
    assert called.status == 200, called.body
    return page


def _page_to_confirm(server: Server) -> str:
    capable: dict[str, Any] = {
        **CLIENT,
        f"{raw.PREFIX}clientCapabilities": {"elicitation": {"url": {}}},
    }
    reply = raw.post(server, raw.call("sign_off", {"release": "v7"}, **capable), server.token)
    message = json.loads(json.dumps(reply.message))
    url: str = message["result"]["inputRequests"]["page"]["params"]["url"]
    return urlsplit(url).path
