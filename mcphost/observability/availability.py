"""Whether this process can currently use the database.

Code that gets a connection error reports it here, from any thread. Coroutines then wait here,
without occupying a thread, until the database answers again.
"""

import asyncio
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Final

FIRST_RETRY_PAUSE: Final = 0.05
MAX_PAUSE: Final = 0.25
"""Seconds between two probes of an unreachable database: at first, and at most."""

log = logging.getLogger(__name__)


class Source(Enum):
    """What fails, and what finds out that it works again."""

    CONNECTION = "the database is unreachable"
    """A thread of this class probes, from the first error to the first success."""
    RECORDS = "audit records cannot be written"
    """The record writer retries by itself."""


class Availability:
    """Whether the database can be used. Thread-safe. `clock` is compared only with itself.

    `probe` is called in its own thread. It uses the database once, and raises if that fails.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.probe: Callable[[], None] | None = None
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self.unreachable = False
        self._lock = threading.Lock()
        self._sources: set[Source] = set()
        self._since = 0.0
        self._waiting: set[asyncio.Future[None]] = set()
        self._probing: threading.Event | None = None

    def lost(self, source: Source, reason: str) -> None:
        """Report that an attempt to use the database has failed; `reason` is for the log."""
        with self._lock:
            if not self._sources:
                self._since = self._clock()
                log.warning("%s: %s", source.value, reason)
            self._sources.add(source)
            self.unreachable = True
            if source is Source.CONNECTION and self._probing is None and self.probe is not None:
                self._probing = threading.Event()
                arguments = (self.probe, self._probing)
                threading.Thread(
                    target=self._try, args=arguments, name="mcphost-probe", daemon=True
                ).start()

    def reached(self, source: Source) -> None:
        """Report that what had failed works again."""
        with self._lock:
            if source not in self._sources:
                return
            self._sources.remove(source)
            if source is Source.CONNECTION:
                self._probing = None
            if self._sources:
                return
            self.unreachable = False
            waiting, self._waiting = self._waiting, set()
            log.info("the database was unavailable for %.2f s", self._clock() - self._since)
        _wake(waiting)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until the database can be used; False if that takes longer than `seconds`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            if not self.unreachable:
                return True
            self._waiting.add(future)
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.discard(future)
        return True

    def lacks(self, source: Source) -> bool:
        """Whether this source is reported as failing now."""
        return source in self._sources

    def problem(self) -> str | None:
        """The health probe: what fails now, as text; None if nothing does."""
        with self._lock:
            return "; ".join(sorted(source.value for source in self._sources)) or None

    def forget(self) -> None:
        """Reset, as in a process that starts; release all waiting coroutines."""
        if self._probing is not None:
            self._probing.set()
        waiting = self._waiting
        self._begin()
        _wake(waiting)

    def _try(self, probe: Callable[[], None], stopped: threading.Event) -> None:
        pause = FIRST_RETRY_PAUSE
        while not stopped.is_set():
            try:
                probe()
            except Exception:  # noqa: BLE001 - on any error the database cannot be used
                stopped.wait(pause)
                pause = min(2 * pause, MAX_PAUSE)
            else:
                self.reached(Source.CONNECTION)
                return


def _wake(waiting: "set[asyncio.Future[None]]") -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
    for future in waiting:
        by_loop[future.get_loop()].append(future)
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and its tasks with it
            loop.call_soon_threadsafe(_resolve, futures)


def _resolve(futures: "list[asyncio.Future[None]]") -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


availability = Availability()
os.register_at_fork(after_in_child=availability._begin)
