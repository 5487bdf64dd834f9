"""Runs scripts round by round, each round as in another process."""

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import orjson

from mcphost.egress.client import EgressLimits
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.kinds.script.program import Script, ScriptProgram
from mcphost.kinds.script.signature import signature_of
from mcphost.runtime.call import Call
from mcphost.runtime.journal import EMPTY, Answer, Journal, as_json, from_json
from mcphost.runtime.outcomes import Complete, Failed, Failure, InputRequired, Outcome
from mcphost.runtime.ports import FixedPorts, RoundLimits
from mcphost.runtime.threads import ToolThreads
from mcphost.sandbox.pool import Sandbox
from tests.kinds.rounds import Notes
from tests.kinds.rounds_with_client import asking_call


class Recorder:
    """Sends no request, but records each, and responds with its number."""

    def __init__(self) -> None:
        self.requests: list[OutgoingRequest] = []

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        self.requests.append(request)
        return responded(request, orjson.dumps({"number": len(self.requests)}))


def responded(request: OutgoingRequest, body: bytes = b"") -> ReceivedResponse:
    return ReceivedResponse(200, (("content-type", "application/json"),), body, request.url)


def compiled(source: str, sandbox: Sandbox) -> ScriptProgram:
    source = dedent(source)
    return ScriptProgram(Script(source, signature_of(source)), sandbox)


class DrivenScript:
    """One call of a script. Every journal is converted to JSON and back, as in production."""

    def __init__(
        self, source: str, sandbox: Sandbox, call: Call | None = None, **ports: Any
    ) -> None:
        self._source = source
        self.sandbox = sandbox
        self.call = call or asking_call()
        self.notes = Notes()
        self.http = Recorder()
        limits = RoundLimits(seconds=ports.pop("seconds", 20))
        given = {"http": self.http, "notifier": self.notes, "limits": limits, **ports}
        self.outside = FixedPorts(ToolThreads(2), **given)
        self.journal = EMPTY
        self.asked: dict[str, str] = {}

    def change(self, source: str, version: str) -> None:
        """Publish another version of the script, between two rounds."""
        self._source = source
        self.call = self.call._replace(version=version)

    def lose_the_paused_script(self) -> None:
        """Leave only what a replay has."""
        assert self.journal.paused is not None
        self.journal = Journal(self.journal.answers, self.journal.recorded, self.journal.progress)

    async def advance(self, **answers: Mapping[str, Any]) -> Outcome:
        for key, given in answers.items():
            answer = Answer(self.asked[key], self.call.version, given)
            self.journal = self.journal.with_answer(key, answer)
        program = compiled(self._source, self.sandbox)
        outcome = await program.advance(self.call, self.journal, self.outside)
        self.call = self.call._replace(round=self.call.round + 1)
        if not isinstance(outcome, Complete | Failed):
            self.journal = from_json(orjson.loads(orjson.dumps(as_json(outcome.journal))))
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
        if "structuredContent" in outcome.result:
            return outcome.result["structuredContent"]
        return "".join(block["text"] for block in outcome.result["content"])

    async def refuses(self, **answers: Mapping[str, Any]) -> str:
        """Return the text of a result that must be an error."""
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Complete) and outcome.is_error, outcome
        text: str = outcome.result["content"][0]["text"]
        return text

    async def fails(self, **answers: Mapping[str, Any]) -> Failure:
        outcome = await self.advance(**answers)
        assert isinstance(outcome, Failed), outcome
        return outcome.error
