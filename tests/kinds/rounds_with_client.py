"""Runs a tool that asks, round by round, with a client that answers."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from pydantic import BaseModel

from mcphost.kinds.functions.program import FunctionProgram
from mcphost.runtime.call import Call, Delivery
from mcphost.runtime.journal import EMPTY, Answer, Journal, as_json, from_json
from mcphost.runtime.outcomes import Complete, Deferred, InputRequired, Outcome
from mcphost.runtime.ports import Ports
from tests.kinds.rounds import a_call, ports, seen

CAPABLE: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
"""The capabilities of a client that supports every question."""


class Name(BaseModel):
    """The simplest form."""

    name: str


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


DECLINE: dict[str, Any] = {"action": "decline"}
CANCEL: dict[str, Any] = {"action": "cancel"}


def asking_call(
    arguments: Mapping[str, Any] | None = None, version: str = "1", **capabilities: Any
) -> Call:
    """Build a call whose client supports every question, unless other capabilities are given."""
    return a_call(arguments, **(capabilities or CAPABLE))._replace(version=version)


class Driven:
    """One call of a function, run one round at a time. Every outcome is converted to JSON and back,
    as in production."""

    def __init__(
        self, function: Callable[..., Any], call: Call | None = None, outside: Ports | None = None
    ) -> None:
        self._program = FunctionProgram(seen(function))
        self.call = call or asking_call()
        self.outside = outside or ports(seconds=10)
        self.journal = EMPTY
        self.asked: dict[str, str] = {}

    async def advance(self, **answers: Mapping[str, Any]) -> Outcome:
        """Run the next round, with these answers by the keys of their questions."""
        for key, given in answers.items():
            answer = Answer(self.asked[key], self.call.version, given)
            self.journal = self.journal.with_answer(key, answer)
        outcome = await self._program.advance(self.call, self.journal, self.outside)
        self.call = self.call._replace(round=self.call.round + 1)
        if not isinstance(outcome, Complete) and (left := getattr(outcome, "journal", None)):
            self.journal = travelled(left)
        if isinstance(outcome, Deferred):
            self.call = self.call._replace(delivery=Delivery.TASK)
        if isinstance(outcome, InputRequired):
            self.asked = {one.key: one.digest for one in outcome.requests}
        return outcome

    async def asks(self, **answers: Mapping[str, Any]) -> list[str]:
        """Return the keys that the next round asks."""
        outcome = await self.advance(**answers)
        assert isinstance(outcome, InputRequired), outcome
        return [one.key for one in outcome.requests]

    async def completes(self, **answers: Mapping[str, Any]) -> Any:
        """Return the result of the next round: the structured content, or the text."""
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Complete), outcome
        return said(outcome)

    async def defers(self, **answers: Mapping[str, Any]) -> None:
        """Assert that the next round makes the call a task."""
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Deferred), outcome

    async def completes_with_nothing(self) -> None:
        """Assert that the next round completes without content."""
        assert await self.advance() == Complete({"content": []})


def travelled(journal: Journal) -> Journal:
    """Return the journal as it is after the round trip to the client."""
    return from_json(orjson.loads(orjson.dumps(as_json(journal))))


def said(outcome: Complete) -> Any:
    if "structuredContent" in outcome.result:
        return outcome.result["structuredContent"]
    return outcome.result["content"][0]["text"]
