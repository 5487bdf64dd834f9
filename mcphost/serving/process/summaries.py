"""Keep the summaries of calls up to date (`audit.summaries`), in a thread with a database connection of its own.

Every process has one, and one process at a time does the work: about every second, for a share of the time
that becomes small as the process gets busy. Under load the summaries lag; calls are hardly slowed down.
"""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connections

from mcphost.audit.summaries.bulk_sql import tune
from mcphost.audit.summaries.follower import Follower, FollowerStep

EVERY_SECONDS: Final = 1.0
SHARE: Final = 0.05
"""For how much of the time it may work while this process is busy."""
MAX_SHARE: Final = 0.5
"""For how much of the time it may work while this process does nothing else."""
MAX_PAUSE: Final = 5.0
"""The most seconds of a pause. Work that took long has mostly waited, for a lock or for the CPU: a share of that would
be minutes, in which figures stand still."""
LATE_SECONDS: Final = 60.0

log = logging.getLogger(__name__)


class SummariesThread:
    """Follows the record until it is stopped. Call `start` and `stop` once each."""

    def __init__(self) -> None:
        self._follower = Follower()
        self._stopping = threading.Event()
        self._unreachable = False
        self._thread = threading.Thread(
            target=self._follow_until_stopped, name="mcphost-summaries", daemon=True
        )
        self._begun = 0.0
        self._current: float | None = None
        self._load = _Load()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread, if it was started; wait for that at most `timeout` seconds."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def lag(self) -> float:
        """How many seconds ago everything new had been read; 0 if another process reads it."""
        since = self._current
        return 0.0 if since is None else max(0.0, time.monotonic() - since - EVERY_SECONDS)

    def facts(self) -> Mapping[str, Any]:
        """What this process reports of it."""
        return {"leads": self._current is not None, "lag": round(self.lag(), 3)}

    def problem(self) -> str | None:
        """Why lists and figures are behind; None if they are not, or by little."""
        lag = self.lag()
        return f"they are {lag:.0f} seconds behind" if lag > LATE_SECONDS else None

    def _follow_until_stopped(self) -> None:
        more = False
        self._load.restart()
        try:
            while not self._stopping.wait(0.0 if more else EVERY_SECONDS):
                more = self._step()
            self._release()
        finally:
            connections.close_all()

    def _step(self) -> bool:
        self._begun = time.monotonic()
        try:
            tune()
            step = self._follower.step(self._pause)
        except (OperationalError, InterfaceError) as error:
            if not self._unreachable:
                log.warning("the summaries wait for the database: %s", type(error).__name__)
            self._unreachable = True
            connections.close_all()
            return False
        except Exception:
            log.exception("the summaries go on after an error")
            connections.close_all()
            return False
        self._unreachable = False
        self._note(step)
        return step.more

    def _note(self, step: FollowerStep) -> None:
        if not step.leads:
            self._current = None
        elif step.current or self._current is None:
            self._current = self._begun

    def _pause(self, seconds: float) -> None:
        """Let the database and the event loop go on, after work that took so long."""
        if self._current is None:  # it leads since this step, which may take minutes under load
            self._current = self._begun
        share = min(MAX_SHARE, max(SHARE, (1 - self._load.of_others()) ** 3))
        self._stopping.wait(min(seconds * (1 / share - 1), MAX_PAUSE))

    def _release(self) -> None:
        try:
            self._follower.release()
        except (OperationalError, InterfaceError) as error:
            log.debug("the lease of the summaries ends by itself: %r", error)


class _Load:
    """How busy the other threads of this process are. Used in one thread."""

    def __init__(self) -> None:
        self._wall = self._busy = 0.0

    def restart(self) -> None:
        self._wall, self._busy = time.monotonic(), time.process_time() - time.thread_time()

    def of_others(self) -> float:
        """For how much of the time since the last question another thread computed, at most 1."""
        wall, computed = self._wall, self._busy
        self.restart()
        return min(1.0, (self._busy - computed) / max(self._wall - wall, 1e-3))
