"""This process and another one of the same service, by their heartbeats: either may lack functions."""

from collections.abc import Iterator, Mapping

import pytest
from django.db import IntegrityError

from mcphost.catalogue import remote_functions, selectors
from mcphost.feed.nodes import Heartbeat, heartbeat
from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.kind import python_kind
from tests.feed.manual_heartbeats import outlast_a_restart
from tests.feed.test_loop import HandClock


class Processes:
    """Its methods run in a database thread. The clock by which this process judges the other one stands
    still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._clock = HandClock()
        self._functions = dict(python_kind.functions())
        self._other = Heartbeat()
        self._other.functions = remote_functions.declared
        monkeypatch.setattr(heartbeat, "_clock", self._clock)

    def only_the_other_has(self, *functions: str) -> None:
        """Both serve; this process lacks the functions."""
        self._load(self._functions)
        self._other.beat()
        self._lack(functions)

    def the_other_dies(self) -> None:
        """The other process has left so long ago that no other comes in its place."""
        self._other.unregister()
        self.time_passes()

    def time_passes(self) -> None:
        """No process comes any more that was awaited."""
        outlast_a_restart(heartbeat, self._clock)

    def becomes_the_other(self) -> None:
        """From now on this process is the one that has all functions."""
        self._load(self._functions)

    def _lack(self, functions: tuple[str, ...]) -> None:
        assert self._functions.keys() >= set(functions)
        self._load({name: one for name, one in self._functions.items() if name not in functions})
        beat_at_once()

    def _load(self, functions: Mapping[str, Compiled]) -> None:
        self._patch.setattr(python_kind, "_compiled", dict(functions))
        selectors.forget_all()


@pytest.fixture
def processes(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """This process and another one. Request it after the fixture that publishes functions."""
    heartbeat._begin()
    yield Processes(monkeypatch)
    heartbeat._begin()
    monkeypatch.undo()
    selectors.forget_all()


def beat_at_once() -> None:
    """Write this process's heartbeat, also while the change log's thread writes its first one."""
    try:
        heartbeat.beat()
    except IntegrityError:
        heartbeat.beat()
