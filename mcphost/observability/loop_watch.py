"""Measure how late the event loop runs, and log the tool whose code blocks it.

A thread schedules a callback on the loop and waits for it. While a tool blocks the loop, its code
is on the stack of the loop's thread, so the watching thread finds it there.
"""

import asyncio
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from types import FrameType
from typing import Final

from mcphost.observability import counters

Locate = Callable[[FrameType], str | None]

SLOW_CHECKS: Final = 5
"""The loop is too late when the median of so many checks in a row is over the limit."""
CALM_CHECKS: Final = 20
"""It is no longer when the median of so many checks is below half the limit."""

log = logging.getLogger(__name__)


class LoopLag:
    """How late the event loop runs what is due, smoothed: one slow callback changes nothing.

    `limit` returns the limit in seconds, 0 for none. One thread calls `observe`; any thread reads.
    """

    def __init__(self, limit: Callable[[], float]) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Forget all checks: another loop is watched."""
        self._checks: deque[float] = deque(maxlen=CALM_CHECKS)
        self._seconds = 0.0
        self._over = False

    def observe(self, seconds: float) -> None:
        """Add a check: the loop has run a callback so much later than it was scheduled."""
        self._checks.append(seconds)
        latest = tuple(self._checks)
        self._seconds = median(latest[-SLOW_CHECKS:])
        limit = self._limit()
        if self._over:
            self._over = median(latest) >= limit / 2
        else:
            self._over = len(latest) >= SLOW_CHECKS and self._seconds > limit

    def seconds(self) -> float:
        """The median of the latest checks."""
        return self._seconds

    def is_over(self) -> bool:
        """Whether the loop has been later than the limit, and has not recovered."""
        return self._over and self._limit() > 0


class _Check:
    """A callback that notes how late it runs, in seconds."""

    def __init__(self) -> None:
        self._scheduled = time.monotonic()
        self._ran = threading.Event()
        self.seconds = 0.0

    def __call__(self) -> None:
        self.seconds = time.monotonic() - self._scheduled
        self._ran.set()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` until it has run; return whether it has."""
        return self._ran.wait(seconds)


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """How long the loop may be blocked, and the pause between two checks, in seconds.

    A block may begin right after a check, so their sum must not exceed the documented limit.
    """

    blocked: float = 0.2
    pause: float = 0.05


class LoopWatch:
    """Watches one event loop from a daemon thread. Start it on that loop; stop it from any thread.

    `locate` gets the innermost frame of the loop's thread and returns the tool whose code is on the
    stack, or None. It runs in the watching thread. `lag` observes each check.
    """

    def __init__(
        self, locate: Locate, patience: WatchTimes | None = None, lag: LoopLag | None = None
    ) -> None:
        self._locate = locate
        self._patience = patience or WatchTimes()
        self._lag = lag or LoopLag(float)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start watching the running loop. Raises RuntimeError outside of one."""
        loop = asyncio.get_running_loop()
        self._lag.reset()
        self._thread = threading.Thread(
            target=self._watch,
            args=(loop, threading.get_ident()),
            name="mcphost-loop-watch",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Tell the watching thread to end. May be called on the watched loop."""
        self._stopped.set()

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the thread to end; return whether it did."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._stopped.wait(self._patience.pause):
            check = _Check()
            try:
                loop.call_soon_threadsafe(check)
            except RuntimeError:  # the loop was closed
                return
            if check.wait(self._patience.blocked):
                self._lag.observe(check.seconds)
                continue
            tool, location = self._find_code(thread)
            counters.loop_blocks.add()
            log.warning("the event loop is blocked", extra={"tool": tool, "at": location})
            while not check.wait(self._patience.blocked):
                if self._stopped.is_set():
                    return
            self._lag.observe(check.seconds)
            seconds = round(check.seconds, 3)
            counters.loop_blocked_seconds.add(seconds)
            log.warning(
                "the event loop is no longer blocked",
                extra={"tool": tool, "at": location, "seconds": seconds},
            )

    def _find_code(self, thread: int) -> tuple[str | None, str]:
        """The tool whose code the thread runs, and the line."""
        frame = sys._current_frames().get(thread)
        if frame is None:
            return None, "unknown"
        location = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        try:
            return self._locate(frame), location
        except Exception:
            log.exception("could not find the tool that blocks the event loop")
            return None, location
