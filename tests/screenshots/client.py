"""MCP clients of the demo: what they call, and what their users answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e import raw
from tests.e2e.handmade_calls import accept
from tests.e2e.processes import Server

CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
THOUGHT = 4.0
CLAUDE_CODE = "claude-code"

Answer = Mapping[str, Any]


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
    server: Server,
    token: str,
    about: Talk,
    tenant: str = "demo",
    client: str = CLAUDE_CODE,
    pause: Callable[[float], object] = lambda seconds: None,
) -> dict[str, Any]:
    """Make a call, answer what it asks as far as there are answers; the last result."""
    meta = {
        f"{raw.PREFIX}clientInfo": {"name": client, "version": "2.1"},
        f"{raw.PREFIX}clientCapabilities": CAPABILITIES,
    }
    message = raw.call(about.tool, about.arguments, **meta)
    while True:
        reply = raw.post(server, message, token, tenant).message
        result: dict[str, Any] = reply.get("result", {})
        asked: Sequence[str] = list(result.get("inputRequests", ()))
        if not asked or not set(asked) <= about.answers.keys():
            return result
        pause(THOUGHT)
        answers = {key: about.answers[key] for key in asked}
        message["params"] |= {"requestState": result["requestState"], "inputResponses": answers}
