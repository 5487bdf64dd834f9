"""Detect when the event loop is blocked, and log the tool whose code blocks it.

A thread schedules a callback on the loop and waits for it. While a tool blocks the loop, its code
is on the stack of the loop's thread, so the watching thread finds it there.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

from mcphost.observability import counters

Locate = Callable[[FrameType], str | None]

log = logging.getLogger(__name__)


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
    stack, or None. It runs in the watching thread.
    """

    def __init__(self, locate: Locate, patience: WatchTimes | None = None) -> None:
        self._locate = locate
        self._patience = patience or WatchTimes()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start watching the running loop. Raises RuntimeError outside of one."""
        loop = asyncio.get_running_loop()
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
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # the loop was closed
                return
            asked = time.monotonic()
            if answered.wait(self._patience.blocked):
                continue
            tool, place = self._look(thread)
            counters.loop_blocks.add()
            log.warning("the event loop is blocked", extra={"tool": tool, "at": place})
            while not answered.wait(self._patience.blocked):
                if self._stopped.is_set():
                    return
            seconds = round(time.monotonic() - asked, 3)
            counters.loop_blocked_seconds.add(seconds)
            log.warning(
                "the event loop is no longer blocked",
                extra={"tool": tool, "at": place, "seconds": seconds},
            )

    def _look(self, thread: int) -> tuple[str | None, str]:
        """The tool whose code the thread runs, and the line."""
        frame = sys._current_frames().get(thread)
        if frame is None:
            return None, "unknown"
        place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        try:
            return self._locate(frame), place
        except Exception:
            log.exception("could not find the tool that blocks the event loop")
            return None, place
