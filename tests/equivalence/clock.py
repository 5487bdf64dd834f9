"""A clock that only scenarios move, and counted ids."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import pytest
from django.utils import timezone

from mcphost.audit import records
from mcphost.observability import trace

START = 4_102_444_800
"""2100-01-01T00:00:00Z, in seconds since 1970: later than the database's own clock, by which sessions
expire."""


class StoppedClock:
    """The time of day and the performance counter. Timers of the event loop go on."""

    def __init__(self) -> None:
        self._passed = 0.0

    def advance(self, seconds: float) -> None:
        self._passed += seconds

    def time(self) -> float:
        return START + self._passed

    def time_ns(self) -> int:
        return START * 1_000_000_000 + int(self._passed * 1_000_000_000)

    def perf_counter(self) -> float:
        return self._passed

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)


class CountedBits:
    """Numbers in ascending order, in the place of random ones: ids sort in the order of their making."""

    def __init__(self, start: int = 1) -> None:
        self._numbers = count(start)

    def getrandbits(self, bits: int) -> int:
        return next(self._numbers)

    def seed(self) -> None:
        """Do nothing, in a forked child."""


@contextmanager
def ids_apart() -> Iterator[None]:
    """Number ids made in the block apart from those of scenarios, which all begin with one."""
    before, records._random = records._random, CountedBits(1 << 40)  # type: ignore[assignment]
    try:
        yield
    finally:
        records._random = before


def inject(patch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    for name in ("time", "time_ns", "perf_counter"):
        patch.setattr(time, name, getattr(clock, name))
    patch.setattr(timezone, "now", clock.now)
    patch.setattr(records, "_random", CountedBits())
    patch.setattr(trace, "_random", CountedBits())
    return clock
