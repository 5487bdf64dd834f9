"""Does a server really answer the call that is about to be measured?"""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from bench.load import Target

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "echo",
}
TEXT = "hello 1"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "echo",
        "arguments": {"text": TEXT},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


class WrongAnswerError(Exception):
    """A server answered something else than the echo."""


def verify(target: Target) -> None:
    """Make the call once and look at every part of the answer. Raises WrongAnswerError."""
    status, body = _post(target)
    try:
        answer = json.loads(body)
        good = status == 200 and _is_echo(answer)
    except (ValueError, LookupError, TypeError):
        good = False
    if not good:
        raise WrongAnswerError(f"{target.url} answered HTTP {status}: {body[:500]!r}")


def _post(target: Target) -> tuple[int, bytes]:
    parts = urlsplit(target.url)
    authorization = {"Authorization": f"Bearer {target.token}"} if target.token else {}
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("POST", parts.path, json.dumps(CALL), {**HEADERS, **authorization})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _is_echo(answer: dict[str, Any]) -> bool:
    result = answer["result"]
    return (
        answer["jsonrpc"] == "2.0"
        and answer["id"] == CALL["id"]
        and result["resultType"] == "complete"
        and not result.get("isError", False)
        and result["content"][0] == {"type": "text", "text": TEXT}
    )
