"""A process that lacks functions which another living process has."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from mcphost.catalogue import selectors
from mcphost.feed.nodes import Heartbeat, heartbeat
from mcphost.kinds import declarations
from mcphost.kinds.python.kind import python_kind
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.released_rounds import released_rounds
from tests.feed.manual_heartbeats import outlast_a_restart
from tests.feed.test_loop import HandClock

BOUND = 20.0


async def becomes(test: Callable[[], bool], what: str) -> None:
    """Wait, at most BOUND seconds, until the database says so."""
    ends = time.monotonic() + BOUND
    while not await in_database(test):
        assert time.monotonic() < ends, f"waited in vain: {what}"
        await asyncio.sleep(0.01)  # between looks at the database


@dataclass
class Lacking:
    """This process, without `functions`; `other` is a process that has them, as far as its rows say."""

    functions: tuple[str, ...]
    other: Heartbeat
    monkeypatch: pytest.MonkeyPatch

    async def begin(self) -> None:
        """From now on this process lacks the functions, and knows that the other one has them."""
        compiled = python_kind.functions()
        self.other.functions = lambda: {
            name: declarations.write(compiled[name]) for name in self.functions
        }
        await self.know()
        without = {name: one for name, one in compiled.items() if name not in self.functions}
        self.monkeypatch.setattr(python_kind, "_compiled", without)
        selectors.forget_all()

    async def know(self) -> None:
        """Write and read the heartbeats of both."""
        await in_database(self.other.beat)
        await in_database(heartbeat.beat)

    async def none_lives(self) -> None:
        """The other process has ended, for longer than a restart takes."""
        await in_database(self.other.unregister)
        clock = HandClock()
        clock.now = time.monotonic()
        self.monkeypatch.setattr(heartbeat, "_clock", clock)
        await in_database(outlast_a_restart, heartbeat, clock)

    def end(self) -> None:
        """From now on this process has the functions again, and looks for what waits for them."""
        self.monkeypatch.undo()
        selectors.forget_all()
        released_rounds.find_rounds()
        process.runner.on_gap()


@asynccontextmanager
async def lacking(*functions: str) -> AsyncIterator[Lacking]:
    """Let this process lack functions, until the context ends or `end` is called."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        here = Lacking(functions, Heartbeat(), monkeypatch)
        await here.begin()
        try:
            yield here
        finally:
            await in_database(here.other.unregister)
            await in_database(heartbeat.unregister)
    selectors.forget_all()
