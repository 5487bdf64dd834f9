"""Calls that ask, made by hand, against two nodes that serve the tools of the demo and the interpreter
of `tests/probes`, whose effects all processes write into one file."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any

from tests.e2e import nodes, raw, versions
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import ROOT, Server, manage

CAPABLE: dict[str, Any] = {f"{raw.PREFIX}clientCapabilities": {"elicitation": {"form": {}}}}
PROBES = ROOT / "tests" / "probes"
OFFERED = (
    "interpreter.",
    "tasks.quick",
    "tasks.steps_in_a_process",
    "tasks.works_and_asks",
    "upgraded.",
)
_PUBLISH = """
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.tenants.models import Tenant
kinds.discover()
found = [name for name, _ in kinds.functions() if name.startswith({beginnings!r})]
publish_functions(Tenant.objects.get(slug="demo").id, found, Actor.system("a test"))
"""

METRICS_TOKEN = "a-token-for-monitoring"
PATIENT = {"MCPHOST_DATABASE_WAIT_SECONDS": "15", "MCPHOST_STREAM_AFTER_SECONDS": "5"}
"""How nodes wait for their database by default."""
MOST_LEGS = 11
PATIENCE = 60

Answerer = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""What is answered to a question, by its key and its parameters."""

_ids = count(1)


def publish(*beginnings: str) -> str:
    """A program that publishes the functions of the tools path whose names begin like this."""
    return _PUBLISH.format(beginnings=beginnings)


@contextmanager
def service(folder: Path, **settings: Any) -> Iterator[Service]:
    tools = folder / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    for probe in ("interpreter.py", "tasks.py"):
        shutil.copy(PROBES / probe, tools)
    (tools / versions.FILE).write_text(versions.OLD)
    settings |= {"MCPHOST_TOOLS_PATH": str(tools), "EFFECTS": str(folder / "effects.jsonl")}
    with nodes.service(folder, **settings) as two:
        two.manage("shell", "-c", publish(*OFFERED))
        yield two


def effects(service: Service) -> list[list[Any]]:
    """What steps of the interpreter did, in order: name, argument, what was before, idempotency key."""
    return [json.loads(line) for line in _written(service) if line.startswith("[")]


def done_in_tasks(service: Service) -> list[list[str]]:
    return [line.split() for line in _written(service) if not line.startswith("[")]


def _written(service: Service) -> list[str]:
    path = Path(service.settings["EFFECTS"])
    return path.read_text().splitlines() if path.exists() else []


def with_code(service: Service, source: str) -> dict[str, str]:
    tools = Path(service.settings["MCPHOST_TOOLS_PATH"])
    other = tools.with_name(f"tools-{sha256(source.encode()).hexdigest()[:8]}")
    shutil.copytree(tools, other, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    (other / versions.FILE).write_text(source)
    return {"MCPHOST_TOOLS_PATH": str(other)}


def offer(service: Service, settings: Mapping[str, str]) -> None:
    own = {**service.settings, **settings}
    done = manage(service.first.home, "shell", "-c", publish("upgraded."), env=own)
    assert done.returncode == 0, done.stderr


def settle(service: Service, ways: Mapping[str, str], *nodes: Node) -> None:
    for node in nodes:
        if not node.has(ways):
            node.stop()
            node.change(**ways)
    heal(service)


def heal(service: Service) -> None:
    """Undo what a test that failed has left: both nodes and Redis are there, and nothing is held up."""
    for suffix in (".kill", ".pause", ".paused"):
        beside_effects(service, suffix).unlink(missing_ok=True)
    service.redis.start()
    for node in (service.first, service.second):
        if not node.lives:
            node.start()
    service.proxy.wait_for(service.first.port, service.second.port)
    service.proxy.failures.clear()


def beside_effects(service: Service, suffix: str) -> Path:
    """A file by which the interpreter is told to kill itself or to pause, or says that it has paused."""
    return Path(service.settings["EFFECTS"]).with_suffix(suffix)


def wait_until(it_is_so: Callable[[], bool]) -> None:
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
    return {"action": "accept", "content": content}


@dataclass(frozen=True)
class Asker:
    """Somebody who calls a tool, one leg after the other; each is a request with an id of its own."""

    tool: str
    arguments: Mapping[str, Any]

    def message(
        self, state: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        message = {**raw.call(self.tool, self.arguments, **CAPABLE), "id": next(_ids)}
        if state is not None:
            message["params"] |= {"requestState": state, "inputResponses": answers or {}}
        return message

    def leg(
        self, server: Server, state: str | None = None, answers: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        message = self.message(state, answers)
        reply = raw.post(server, message, server.token)
        assert (reply.status, reply.message["id"]) == (200, message["id"]), reply.body
        result: dict[str, Any] = reply.message["result"]
        return result

    def finish(
        self, server: Server, answer: Answerer, result: Mapping[str, Any] | None = None
    ) -> str:
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
        values = json.loads(text)
        asked = [["accept", self._told(key)] for key in self.keys]
        did = [[key, self.number] for key in self.keys]
        return values[::2] == asked and [value[:2] for value in values[1::2]] == did
