"""A plain MCP client for journeys: what the very next request sees."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.mcp import check_response

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "browser-tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def ask(url: str, token: str, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
    """Status and answer of one request."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status, check_response(method, answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, check_response(method, refusal.read())


def tools(url: str, token: str) -> list[str]:
    """The names that `tools/list` gives, on its first page."""
    status, answer = ask(url, token, "tools/list")
    assert status == 200, answer
    return [tool["name"] for tool in answer["result"]["tools"]]
