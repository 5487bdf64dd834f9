"""The client's side of a call that asks: one leg after the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from tests.mcp import Reply, request, send

FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}
EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {"listChanged": False},
}
DECLINE: Mapping[str, Any] = {"action": "decline"}
CANCEL: Mapping[str, Any] = {"action": "cancel"}
REFUSED = "invalid_request_state"

_ids = count(1)


def accept(**content: Any) -> dict[str, Any]:
    """The answer to a form."""
    return {"action": "accept", "content": content}


RED = {"colour": accept(colour="red")}
BLUE = {"colour": accept(colour="blue")}


@dataclass(frozen=True)
class Asker:
    """Who calls what. Each leg is one request with an id of its own, unless `id` is set."""

    token: str | None
    params: Mapping[str, Any]
    tenant: str = "acme"
    method: str = "tools/call"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)
    id: int | None = None

    def but(self, **changed: Any) -> "Asker":
        """The same with something else."""
        return replace(self, **changed)

    def message(self, **more: Any) -> dict[str, Any]:
        """The request, with `requestState`, `inputResponses` or whatever else is given."""
        body = request(self.method, {**self.params, **more}, capabilities=dict(self.capabilities))
        return {**body, "id": next(_ids) if self.id is None else self.id}

    async def leg(
        self, state: str | None = None, answers: Mapping[str, Any] | None = None, **more: Any
    ) -> Reply:
        """One request: a first one, or a retry with a state and answers."""
        fields = dict(more)
        if state is not None:
            fields["requestState"] = state
        if answers is not None:
            fields["inputResponses"] = answers
        return await send(self.tenant, self.message(**fields), self.token)


def calling(token: str | None, tool: str, **arguments: Any) -> Asker:
    """Somebody who calls a tool."""
    return Asker(token, {"name": tool, "arguments": arguments})


def asked(reply: Reply) -> dict[str, Any]:
    """What is asked, by key, of a reply that must ask."""
    assert reply.status == 200, reply.raw
    assert reply.result["resultType"] == "input_required", reply.result
    questions: dict[str, Any] = reply.result["inputRequests"]
    return questions


def state_of(reply: Reply) -> str:
    """The state of a reply that must ask."""
    assert reply.result["resultType"] == "input_required", reply.result
    state: str = reply.result["requestState"]
    return state


def done(reply: Reply) -> str:
    """The text of a reply that must be the end, and no error."""
    assert reply.status == 200, reply.raw
    assert reply.result["resultType"] == "complete", reply.result
    assert not reply.result.get("isError"), reply.result
    return reply.text


def failed(reply: Reply) -> str:
    """The text of a tool's result that must be an error."""
    assert (reply.status, reply.result["resultType"]) == (200, "complete"), reply.raw
    assert reply.result["isError"] is True, reply.result
    return reply.text


def frozen(reply: Reply) -> bytes:
    """The one refusal of states, as it went over the wire."""
    assert reply.status == 400, reply.raw
    assert reply.error["code"] == -32602, reply.raw
    assert reply.error["data"] == {"reason": REFUSED}, reply.raw
    return reply.raw
