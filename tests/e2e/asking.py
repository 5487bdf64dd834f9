"""Calls that ask, made by hand, against two nodes that serve the tools of the demo and the interpreter
of `tests/probes`, whose effects all processes write into one file."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from tests.e2e import nodes, raw
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import ROOT, Server

CAPABLE = {f"{raw.PREFIX}clientCapabilities": {"elicitation": {"form": {}}}}
PROBE = ROOT / "tests" / "probes" / "interpreter.py"
PUBLISH = """
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.tenants.models import Tenant
kinds.discover()
probes = [name for name, _ in kinds.functions() if name.startswith("interpreter.")]
publish_functions(Tenant.objects.get(slug="demo").id, probes, Actor.system("a test"))
"""

MOST_LEGS = 8
PATIENCE = 60

Answerer = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""What is answered to a question, by its key and its parameters."""

_ids = count(1)


@contextmanager
def service(folder: Path, **settings: str) -> Iterator[Service]:
    """Two nodes. Their code is in `folder / "tools"`."""
    tools = folder / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    ways = {"MCPHOST_TOOLS_PATH": str(tools), "EFFECTS": str(folder / "effects.jsonl")}
    with nodes.service(folder, **ways, **settings) as two:
        two.manage("shell", "-c", PUBLISH)
        yield two


def effects(service: Service) -> list[list[Any]]:
    """What steps of the interpreter did, in order: name, argument, what was before, idempotency key."""
    path = Path(service.settings["EFFECTS"])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def beside_effects(service: Service, suffix: str) -> Path:
    """A file by which the interpreter is told to kill itself or to pause, or says that it has paused."""
    return Path(service.settings["EFFECTS"]).with_suffix(suffix)


def wait_until(it_is_so: Callable[[], bool]) -> None:
    """Wait, bounded, for what another process does."""
    look = threading.Event()
    for _ in range(PATIENCE * 20):
        if it_is_so():
            return
        look.wait(0.05)  # between looks: nothing it does could wake us
    raise AssertionError("it was never so")


def at(service: Service, node: Node) -> Server:
    """The service as somebody sees it whom the balancer always sends to this node."""
    return replace(service.server, port=node.port)


def accept(**content: Any) -> dict[str, Any]:
    """The answer to a form."""
    return {"action": "accept", "content": content}


@dataclass(frozen=True)
class Asker:
    """Somebody who calls a tool, one leg after the other; each is a request with an id of its own."""

    tool: str
    arguments: Mapping[str, Any]

    def message(
        self, state: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """A first leg or, with a state, a retry."""
        message = {**raw.call(self.tool, self.arguments, **CAPABLE), "id": next(_ids)}
        if state is not None:
            message["params"] |= {"requestState": state, "inputResponses": answers or {}}
        return message

    def leg(
        self, server: Server, state: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The result of one leg. It must have one, and it must be about this leg."""
        message = self.message(state, answers)
        reply = raw.post(server, message, server.token)
        assert (reply.status, reply.message["id"]) == (200, message["id"]), reply.body
        result: dict[str, Any] = reply.message["result"]
        return result

    def finish(
        self, server: Server, answer: Answerer, result: Mapping[str, Any] | None = None
    ) -> str:
        """Go on to the end from a result, or from the beginning. The text of the end, which is no
        error. A call that is moved off its process goes on without an answer."""
        reached = self.leg(server) if result is None else result
        for _ in range(MOST_LEGS):
            if reached["resultType"] == "complete":
                assert not reached.get("isError"), reached
                text: str = reached["content"][0]["text"]
                return text
            questions = reached.get("inputRequests", {}).items()
            answers = {key: answer(key, question["params"]) for key, question in questions}
            reached = self.leg(server, reached["requestState"], answers)
        raise AssertionError(f"it does not come to an end: {reached}")


@dataclass(frozen=True)
class Numbered:
    """A call that asks for numbers, does something after each, and ends with all it was told."""

    number: int
    keys: Sequence[str] = ("q0", "q1")

    @property
    def asker(self) -> Asker:
        program = [[["ask", key], ["step", key, self.number]] for key in self.keys]
        return Asker("interpret", {"program": [*chain.from_iterable(program)]})

    def answer(self, key: str, _: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return accept(number=self._told(key))

    def _told(self, key: str) -> int:
        return len(self.keys) * self.number + self.keys.index(key)

    def is_told_by(self, text: str) -> bool:
        """Whether this is the end of this call and of no other."""
        values = json.loads(text)
        asked = [["accept", self._told(key)] for key in self.keys]
        did = [[key, self.number] for key in self.keys]
        return values[::2] == asked and [value[:2] for value in values[1::2]] == did
