"""FastMCP's client with its package of tasks, on 2026-07-28: it drives calls that become tasks."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.asking import accept, wait_until
from tests.e2e.callers import command
from tests.e2e.processes import ROOT, Server, copy_initialized, free_port, manage, serving
from tests.e2e.talking import Talk, conversing

CLIENT = "fastmcp-tasks"
PROBE = ROOT / "tests" / "probes" / "tasks.py"
PUBLISH = """
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.tenants.models import Tenant
kinds.discover()
probes = [name for name, _ in kinds.functions() if name.startswith("tasks.")]
publish_functions(Tenant.objects.get(slug="demo").id, probes, Actor.system("a test"))
"""


@dataclass(frozen=True)
class Place:
    """A data folder whose tenant `demo` serves tools that become tasks."""

    home: Path
    tools: Path
    effects: Path
    port: int

    @contextmanager
    def life(self, ending: signal.Signals = signal.SIGTERM) -> Iterator[Server]:
        """A server over the folder, on the same port in each of its lives."""
        with serving("uvicorn", self.home, ending, self.port, **self.settings) as server:
            yield server

    @property
    def settings(self) -> dict[str, str]:
        return {"MCPHOST_TOOLS_PATH": str(self.tools), "EFFECTS": str(self.effects)}

    def said(self) -> list[str]:
        """What the tools have written down."""
        return self.effects.read_text().split() if self.effects.exists() else []


@pytest.fixture
def place(tmp_path: Path, home: Path) -> Place:
    tools = tmp_path / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    made = Place(home, tools, tmp_path / "effects", free_port())
    copy_initialized(home)
    published = manage(home, "shell", "-c", PUBLISH, env=made.settings)
    assert published.returncode == 0, published.stderr
    return made


@contextmanager
def client(server: Server, folder: Path, name: str = "client") -> Iterator[Talk]:
    """A client that has found out which revision the server speaks."""
    own = folder / name
    own.mkdir()
    with conversing(command(CLIENT), own, url=server.url, token=server.token) as talk:
        assert talk.hear("met")["revision"] == "2026-07-28"
        yield talk


def _answers(talk: Talk, colour: str) -> None:
    assert "Which colour" in talk.hear("asked")["message"]
    talk.say(accept(colour=colour))


def test_it_drives_a_task_with_questions_to_its_end(place: Place, tmp_path: Path) -> None:
    with place.life() as server, client(server, tmp_path) as talk:
        talk.say({"call": "paint_sized", "arguments": {"what": "the door"}})
        _answers(talk, "red")
        assert talk.hear("asked")["message"] == "How large?"
        talk.say(accept(size=3))
        assert talk.hear("done") == "the door is red, size 3"
        talk.say({"call": "required", "arguments": {"text": "hello"}})
        assert talk.hear("done") == "hello"
        talk.say({"call": "never", "arguments": {"text": "hello"}})
        assert talk.hear("done") == "hello"
        talk.say({"call": "refuses", "arguments": {}})
        assert "out of paper" in talk.hear("raised")
        talk.say({"call": "needs_sampling", "arguments": {}})
        assert talk.hear("raised").startswith("ToolError")


def test_it_is_asked_in_its_request_and_then_follows_the_task(place: Place, tmp_path: Path) -> None:
    with place.life() as server, client(server, tmp_path) as talk:
        talk.say({"call": "defers", "arguments": {}})
        _answers(talk, "blue")
        assert talk.hear("done") == "blue"


def test_it_cancels_a_task(place: Place, tmp_path: Path) -> None:
    with place.life() as server, client(server, tmp_path) as talk:
        talk.say({"begin": "hangs_in_a_process", "arguments": {}})
        id = talk.hear("begun")
        wait_until(lambda: place.said() == ["began"])
        talk.say({"cancel": id})
        assert talk.hear("seen")["status"] == "cancelled"
        wait_until(lambda: place.said() == ["began", "cancelled"])
        talk.say({"finish": id, "tool": "hangs_in_a_process"})
        assert "cancelled" in talk.hear("raised")


def test_it_comes_back_to_its_task_after_the_server_was_killed(
    place: Place, tmp_path: Path
) -> None:
    with place.life(signal.SIGKILL) as server, client(server, tmp_path, "first") as talk:
        talk.say({"begin": "paint_sized", "arguments": {"what": "it"}})
        id = talk.hear("begun")
        _waits(talk, id, "colour")
    with place.life(signal.SIGKILL) as server, client(server, tmp_path, "second") as talk:
        _waits(talk, id, "colour")
        talk.say({"finish": id, "tool": "paint_sized"})
        _answers(talk, "green")
        assert talk.hear("asked")["message"] == "How large?"
    with place.life() as server, client(server, tmp_path, "third") as talk:
        _waits(talk, id, "size")
        talk.say({"finish": id, "tool": "paint_sized"})
        assert talk.hear("asked")["message"] == "How large?"
        talk.say(accept(size=4))
        assert talk.hear("done") == "it is green, size 4"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_that_worked_when_its_server_ended_goes_on_in_the_next(
    place: Place, tmp_path: Path, ending: signal.Signals
) -> None:
    pause = place.effects.with_suffix(".pause")
    pause.touch()
    with place.life(ending) as server, client(server, tmp_path, "first") as talk:
        talk.say({"begin": "works_in_a_process", "arguments": {}})
        id = talk.hear("begun")
        wait_until(lambda: place.said() == ["one"])
    with place.life() as server, client(server, tmp_path, "second") as talk:
        talk.say({"look": id})
        assert talk.hear("seen")["status"] == "working"
        pause.unlink()
        talk.say({"finish": id, "tool": "works_in_a_process"})
        assert talk.hear("done") == "worked"
    assert place.said() == ["one", "two"]


def _waits(talk: Talk, id: str, key: str) -> None:
    """Wait until the task shows its question."""

    def is_asked() -> bool:
        talk.say({"look": id})
        seen = talk.hear("seen")
        assert seen["status"] in ("working", "input_required"), seen
        return list(seen.get("inputRequests", ())) == [key]

    wait_until(is_asked)
