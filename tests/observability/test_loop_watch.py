"""These tests really block the loop, until the watch has logged it, at most for `LIMIT`."""

import asyncio
import logging
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from mcphost.observability import counters
from mcphost.observability.loop_watch import (
    CALM_CHECKS,
    SLOW_CHECKS,
    LoopLag,
    LoopWatch,
    WatchTimes,
)

LIMIT = 10.0
QUICK = WatchTimes(blocked=0.05, pause=0.005)


class Listener(logging.Handler):
    """Keeps the watch's log records and lets a test wait for them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[logging.LogRecord] = []
        self.blocked = threading.Event()
        self.freed = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record)
        if record.msg == "the event loop is blocked":
            self.blocked.set()
        if record.msg == "the event loop is no longer blocked":
            self.freed.set()

    def said(self, message: str) -> list[logging.LogRecord]:
        return [line for line in self.lines if line.msg == message]


@pytest.fixture
def listener():
    listener = Listener()
    log = logging.getLogger("mcphost.observability.loop_watch")
    log.addHandler(listener)
    yield listener
    log.removeHandler(listener)


@pytest.fixture
def watching():
    watches: list[LoopWatch] = []

    def begin(locate: Callable[[FrameType], str | None]) -> LoopWatch:
        watch = LoopWatch(locate, QUICK)
        watches.append(watch)
        watch.start()
        return watch

    yield begin
    for watch in watches:
        watch.stop()
        assert watch.join(LIMIT)


def hog(until: threading.Event) -> None:
    assert until.wait(LIMIT)


def name_of_hog(frame: FrameType | None) -> str | None:
    while frame is not None:
        if frame.f_code is hog.__code__:
            return "hog"
        frame = frame.f_back
    return None


async def test_a_blocked_loop_is_logged_once_with_its_tool_and_duration(listener, watching):
    before, seconds = counters.loop_blocks.value, counters.loop_blocked_seconds.value
    watching(name_of_hog)
    hog(listener.blocked)
    assert await asyncio.to_thread(listener.freed.wait, LIMIT)
    (blocked,) = listener.said("the event loop is blocked")
    (freed,) = listener.said("the event loop is no longer blocked")
    assert blocked.__dict__["tool"] == freed.__dict__["tool"] == "hog"
    assert freed.__dict__["seconds"] >= QUICK.blocked
    assert counters.loop_blocks.value == before + 1
    assert counters.loop_blocked_seconds.value == seconds + freed.__dict__["seconds"]


async def test_a_loop_that_is_not_blocked_logs_nothing(listener, watching):
    watch = LoopWatch(lambda frame: None, WatchTimes(blocked=LIMIT, pause=0.001))
    watch.start()
    for _ in range(100):
        await asyncio.sleep(0)
    watch.stop()
    assert await asyncio.to_thread(watch.join, LIMIT)
    assert listener.lines == []


def observe(lag: LoopLag, seconds: float, times: int = 1) -> bool:
    """Add as many checks; whether the loop is then too late."""
    for _ in range(times):
        lag.observe(seconds)
    return lag.is_over()


def test_a_loop_counts_as_late_only_after_several_checks_above_the_limit():
    lag = LoopLag(lambda: 0.5)
    assert not observe(lag, 9.0, SLOW_CHECKS - 1), "too few checks to judge"
    assert observe(lag, 9.0)
    assert lag.seconds() == 9.0
    lag.reset()
    assert (lag.is_over(), lag.seconds()) == (False, 0.0)
    assert not observe(lag, 0.5, CALM_CHECKS), "at the limit"
    assert not observe(LoopLag(float), 9.0, CALM_CHECKS), "without a limit"


def test_a_loop_recovers_only_well_below_the_limit_and_after_more_checks():
    lag = LoopLag(lambda: 0.5)
    observe(lag, 0.6, CALM_CHECKS)
    assert observe(lag, 0.4, 2 * CALM_CHECKS), "half the limit is 0.25"
    assert observe(lag, 0.1, CALM_CHECKS // 2 - 1)
    assert not observe(lag, 0.1, 2)
    assert not observe(lag, 0.4, CALM_CHECKS)
