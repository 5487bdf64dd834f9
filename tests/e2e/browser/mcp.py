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


def able(**capabilities: Any) -> dict[str, Any]:
    return {**META, "io.modelcontextprotocol/clientCapabilities": capabilities}


def ask(url: str, token: str | None, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
    headers = {
        "Authorization": f"Bearer {token}" if token else None,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
        "Mcp-Name": params.get("name") or params.get("taskId"),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
    wanted = {name: value for name, value in headers.items() if value}
    request = urllib.request.Request(url, json.dumps(message).encode(), wanted)
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:
            return answer.status, check_response(method, answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, check_response(method, refusal.read())


def tools(url: str, token: str) -> list[str]:
    status, answer = ask(url, token, "tools/list")
    assert status == 200, answer
    return [tool["name"] for tool in answer["result"]["tools"]]
