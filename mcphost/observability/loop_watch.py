"""Notices when the event loop stands still, and says whose code it stands in.

A thread asks the loop for a sign of life and waits for it. While the loop stands in somebody's
code, that code is on the stack of the loop's thread, so the thread looks there and names it.
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
class Patience:
    """How long the loop may stand (`blocked`) and the pause between two questions, in seconds.

    The two together must not exceed what is promised: a block may begin right after an answer.
    """

    blocked: float = 0.2
    pause: float = 0.05


class LoopWatch:
    """Watches one event loop from a daemon thread. Start it on that loop; stop it from anywhere.

    `locate` is given the innermost frame of the loop's thread and names the tool whose code is on
    the stack, or says None. It runs in the watching thread.
    """

    def __init__(self, locate: Locate, patience: Patience | None = None) -> None:
        self._locate = locate
        self._patience = patience or Patience()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch the running loop. Raises RuntimeError outside of one."""
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._watch,
            args=(loop, threading.get_ident()),
            name="mcphost-loop-watch",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """End the watching thread. It may be called on a loop that is being watched."""
        self._stopped.set()

    def join(self, timeout: float) -> bool:
        """Wait for the thread to end, at most `timeout` seconds; whether it did."""
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
            if not answered.wait(self._patience.blocked):
                self._report(thread, answered, asked)

    def _report(self, thread: int, answered: threading.Event, asked: float) -> None:
        tool, place = self._look(thread)
        counters.loop_blocks.add()
        log.warning("the event loop is blocked", extra={"tool": tool, "at": place})
        while not answered.wait(self._patience.blocked):
            if self._stopped.is_set():
                return
        seconds = round(time.monotonic() - asked, 3)
        counters.loop_blocked_seconds.add(seconds)
        log.warning(
            "the event loop runs again", extra={"tool": tool, "at": place, "seconds": seconds}
        )

    def _look(self, thread: int) -> tuple[str | None, str]:
        """The tool in whose code the thread stands, and the line."""
        frame = sys._current_frames().get(thread)
        if frame is None:
            return None, "nowhere"
        place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        try:
            return self._locate(frame), place
        except Exception:
            log.exception("could not tell whose code blocks the event loop")
            return None, place
