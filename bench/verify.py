"""Does a server really answer the call that is about to be measured, in the revision that it is made in?"""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from bench.load import Target

REVISION = "2026-07-28"
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": REVISION,
    "Mcp-Method": "tools/call",
}
TEXT = "hello 1"
STRUCTURED = {"result": TEXT}
MEMBERS = {"resultType", "content", "isError", "structuredContent", "_meta"}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}}


class WrongAnswerError(Exception):
    """A server answered something else than it should."""


def verify(target: Target) -> None:
    """Make the call once and look at every part of the answer. Raises WrongAnswerError."""
    more = _retry_params(target) if target.asks else {}
    if not _is_echo(_answered(target, **more)):
        raise WrongAnswerError(f"{target.url} did not say the same again")


def _retry_params(target: Target) -> dict[str, Any]:
    """The first leg of a call that asks; what the retry has to bring."""
    result = _answered(target)["result"]
    try:
        [(key, question)] = result["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        answer = {"action": "accept", "content": {"sure": True}}
        return {"requestState": result["requestState"], "inputResponses": {key: answer}}
    except (AssertionError, LookupError, ValueError):
        raise WrongAnswerError(f"{target.url} did not ask: {result}") from None


def _answered(target: Target, **more: Any) -> dict[str, Any]:
    status, body = _post(target, _call(target.asks or target.tool, more))
    try:
        answer: dict[str, Any] = json.loads(body)
    except ValueError:
        answer = {}
    if status != 200 or "result" not in answer:
        raise WrongAnswerError(f"{target.url} answered HTTP {status}: {body[:500]!r}")
    return answer


def _call(tool: str, more: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    params = {"name": tool, "arguments": {"text": TEXT}, "_meta": meta, **more}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _post(target: Target, call: dict[str, Any]) -> tuple[int, bytes]:
    parts = urlsplit(target.url)
    fields = {**HEADERS, "Mcp-Name": call["params"]["name"]}
    if target.token:
        fields["Authorization"] = f"Bearer {target.token}"
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("POST", parts.path, json.dumps(call), fields)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _is_echo(answer: dict[str, Any]) -> bool:
    """Only this text and nothing unknown; `resultType` is what no earlier revision has."""
    result = answer["result"]
    return (
        answer == {"jsonrpc": "2.0", "id": 1, "result": result}
        and result.keys() <= MEMBERS
        and result.get("resultType") == "complete"
        and result.get("content") == [{"type": "text", "text": TEXT}]
        and result.get("isError", False) is False
        and result.get("structuredContent", STRUCTURED) == STRUCTURED
    )
