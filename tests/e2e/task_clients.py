"""The clients that follow tasks, each by its own words, and a server whose tools are tasks."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.callers import command
from tests.e2e.client_process import Talk, conversing
from tests.e2e.handmade_calls import PROBES, accept, publish, wait_until
from tests.e2e.nodes import Node
from tests.e2e.processes import ROOT, Server, copy_initialized, manage

MODERN, LEGACY = "2026-07-28", "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
TASKS: Mapping[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
OF_SESSIONS = ("mcp-tasks", "sdk-tasks")
"""Official clients with their experimental tasks, on 2025-11-25."""
CLIENTS = ("fastmcp-tasks", *OF_SESSIONS)
"""The first is FastMCP's with its package of tasks, on 2026-07-28."""


@dataclass(frozen=True)
class Place:
    """A server over SQLite, whose tenant `demo` serves tools that become tasks."""

    node: Node
    effects: Path

    def begun(self) -> None:
        for file in (self.effects, self.pause):
            file.unlink(missing_ok=True)
        if not self.node.lives:
            self.node.start()

    @property
    def server(self) -> Server:
        return self.node.server

    @property
    def pause(self) -> Path:
        return self.effects.with_suffix(".pause")

    def said(self) -> list[str]:
        return self.effects.read_text().split() if self.effects.exists() else []


@contextmanager
def placed(folder: Path) -> Iterator[Place]:
    tools, home, effects = folder / "tools", folder / "home", folder / "effects"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBES / "tasks.py", tools)
    settings = {"MCPHOST_TOOLS_PATH": str(tools), "EFFECTS": str(effects)}
    copy_initialized(home)
    published = manage(home, "shell", "-c", publish("tasks."), env=settings)
    assert published.returncode == 0, published.stderr
    node = Node(home, **settings)
    try:
        yield Place(node, effects)
    finally:
        node.stop()


@dataclass(frozen=True)
class TaskClient:
    """A client that is told what to do with tasks."""

    name: str
    talk: Talk

    def begin(self, tool: str, **arguments: Any) -> str:
        self.talk.say({"begin": tool, "arguments": arguments})
        id: str = self.talk.hear("begun")
        return id

    def look(self, id: str) -> dict[str, Any]:
        self.talk.say({"look": id})
        seen: dict[str, Any] = self.talk.hear("seen")
        return seen

    def waits(self, id: str, key: str = "") -> None:
        def is_asked() -> bool:
            seen = self.look(id)
            assert seen["status"] in ("working", "input_required"), seen
            if key and self.name not in OF_SESSIONS:
                return list(seen.get("inputRequests", ())) == [key]
            return bool(seen["status"] == "input_required")

        wait_until(is_asked)

    def finish(self, id: str, tool: str) -> None:
        self.talk.say({"finish": id, "tool": tool})

    def is_asked(self, message: str, task: str = "") -> str:
        asked = self.talk.hear("asked")
        assert message in asked["message"], asked
        of = str(asked.get("_meta", {}).get(RELATED, {}).get("taskId", ""))
        assert not (of and task) or of == task
        return of

    def answers(self, message: str, task: str = "", **content: Any) -> str:
        of = self.is_asked(message, task)
        self.talk.say(accept(**content))
        return of

    def text(self) -> str:
        done = self.talk.hear("done")
        if isinstance(done, str):
            return done
        assert not done.get("isError"), done
        text: str = done["content"][0]["text"]
        return text


@contextmanager
def client(name: str, server: Server, folder: Path) -> Iterator[TaskClient]:
    """One that has found out what the server speaks; those of sessions have read what the server and its tools
    can do with tasks."""
    folder.mkdir(parents=True)
    with conversing(command(name), folder, url=server.url, token=server.token) as talk:
        met = talk.hear("met")
        assert met["revision"] == (LEGACY if name in OF_SESSIONS else MODERN)
        if name in OF_SESSIONS:
            assert met["tasks"] == TASKS
            assert met["support"]["required"] == "required"
            assert met["support"]["paint"] == "optional"
            assert met["support"].get("never", "forbidden") == "forbidden"
        yield TaskClient(name, talk)
