"""MCP clients of the demo: what they call, and what their users answer."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
SECONDS = 120
THOUGHT = 4.0
CLAUDE_CODE = "claude-code"

Answer = Mapping[str, Any]


def accept(**content: Any) -> Answer:
    return {"action": "accept", "content": content}


@dataclass(frozen=True)
class Talk:
    """A call, and the answer to each question, by its key. A question without an answer stays open."""

    tool: str
    arguments: Mapping[str, Any]
    answers: Mapping[str, Answer] = field(default_factory=dict)


RESOLVE: Mapping[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DEPLOY: Mapping[str, Any] = {"service": "checkout", "version": "v2.4.1"}
DECLINED: Answer = {"action": "decline"}
CANCELLED: Answer = {"action": "cancel"}
DUPLICATE = {
    "resolution": accept(resolution="Duplicate"),
    "duplicate_of": accept(duplicateOfId=4301),
}
PATTERNS: Mapping[str, Talk] = {
    "plain": Talk("weather", {"city": "Oslo"}),
    "wrong": Talk("echo", {"text": 7}),
    "failed": Talk("update_work_item", {"workItemId": 7, "fields": {"System.State": "New"}}),
    "one answer": Talk("deploy", DEPLOY, {"confirm": accept(deploy=True)}),
    "two answers": Talk("update_work_item", RESOLVE, DUPLICATE),
    "declined": Talk("update_work_item", RESOLVE, {"resolution": DECLINED}),
    "cancelled": Talk("deploy", DEPLOY, {"confirm": CANCELLED}),
    "open": Talk("deploy", DEPLOY),
}
"""One call of each course, by name."""


def talk(
    url: str,
    token: str,
    about: Talk,
    client: str = CLAUDE_CODE,
    pause: Callable[[float], object] = lambda seconds: None,
) -> dict[str, Any]:
    """Make a call, answer what it asks as far as there are answers; the last result."""
    result = _leg(url, token, about, client, {})
    while result.get("resultType") == "input_required":
        asked: Sequence[str] = list(result["inputRequests"])
        if not set(asked) <= about.answers.keys():
            return result
        pause(THOUGHT)
        answers = {key: about.answers[key] for key in asked}
        more = {"requestState": result["requestState"], "inputResponses": answers}
        result = _leg(url, token, about, client, more)
    return result


def _leg(url: str, token: str, about: Talk, client: str, more: Mapping[str, Any]) -> dict[str, Any]:
    meta = {
        f"{PREFIX}protocolVersion": REVISION,
        f"{PREFIX}clientInfo": {"name": client, "version": "2.1"},
        f"{PREFIX}clientCapabilities": CAPABILITIES,
    }
    params = {"name": about.tool, "arguments": about.arguments, "_meta": meta, **more}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": about.tool,
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            body = response.read()
    except urllib.error.HTTPError as refusal:
        body = refusal.read()
    events = [line for line in body.splitlines() if line.startswith(b"data:")]
    said = json.loads(events[-1].removeprefix(b"data:") if events else body)
    result: dict[str, Any] = said.get("result", {})
    return result
