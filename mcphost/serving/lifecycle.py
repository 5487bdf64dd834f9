"""Starting and stopping what a serving process runs beside its requests."""

import atexit
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from django.utils.module_loading import autodiscover_modules

from mcphost.audit.writer import writer
from mcphost.feed.loop import SILENT_SECONDS
from mcphost.feed.loop import loop as feed
from mcphost.kinds.python.stacks import tool_on
from mcphost.observability import counters, health, tracing
from mcphost.observability.loop_watch import LoopWatch
from mcphost.serving import claiming, drain, sole
from mcphost.serving.announcing import announcements
from mcphost.serving.housekeeping import Housekeeping
from mcphost.serving.identification import VERSION
from mcphost.serving.keycheck import KeyCheck
from mcphost.serving.legacy import adoption
from mcphost.serving.programs import threads

STOP_SECONDS = 10.0
SEND_SECONDS = 5.0
"""For what is left of spans: a collector is not worth a longer wait."""

log = logging.getLogger(__name__)


class Companion(Protocol):
    """Something of a higher room that runs while the process serves."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


_companions: list[Companion] = []
key_check = KeyCheck()


def accompany(companion: Companion) -> None:
    """Have `companion` started and stopped with everything else."""
    _companions.append(companion)


class _Parts:
    """What runs in a serving process, from one start to its stop."""

    def __init__(self) -> None:
        self._watch = LoopWatch(tool_on)
        self._housekeeping = Housekeeping()

    def start(self) -> None:
        tracing.start(VERSION)  # before anybody watches the loop: to load it takes a while
        writer.start()
        feed.start()
        adoption.attach()
        writer.heed(_database_is_away)
        for companion in _companions:
            companion.start()
        key_check.start()
        self._housekeeping.start()
        self._watch.start()
        health.register("records", writer.problem)
        health.register("feed", feed.problem)
        health.register("database", key_check.problem)
        health.register("drain", drain.problem)
        counters.measure("records_waiting", writer.waiting)
        counters.measure("feed_silent_seconds", feed.silent)
        counters.measure("threads_busy", lambda: threads().busy)
        counters.measure("threads_idle", lambda: threads().idle)
        counters.measure("threads_lost", lambda: threads().lost)

    def stop(self) -> None:
        self._watch.stop()
        self._housekeeping.stop(STOP_SECONDS)
        key_check.stop(STOP_SECONDS)
        _write_announcements()
        for companion in _companions:
            companion.stop()
        writer.heed(None)
        if not writer.stop(STOP_SECONDS):
            log.error("records were left unwritten at the end")
        claiming.release_all()  # what the writer has concluded is none of them
        feed.stop()  # last: with it this process no longer counts as living, nor do its claims
        tracing.stop(SEND_SECONDS)


_lock = threading.Lock()
_parts: _Parts | None = None


def prepare() -> None:
    """Connect the rooms and check the master key, before the first request.

    In a thread of its own: servers import applications inside their event loop, where Django's ORM
    refuses to work. Raises vault.errors.MasterKeyMismatch, and ImproperlyConfigured beside
    another server of the same database file.
    """
    sole.claim()
    autodiscover_modules("wiring")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(key_check.check).result()


def ensure_started() -> None:
    """Start what runs beside the requests, once per process.

    Called on the event loop, at every request, because Daphne has no lifespan to call it earlier.
    """
    if _parts is None:
        _start()


def stop() -> None:
    """Commit what is queued and stop. Harmless when nothing was started."""
    global _parts
    with _lock:
        parts, _parts = _parts, None
        if parts is not None:
            atexit.unregister(stop)
            parts.stop()


def _start() -> None:
    global _parts  # noqa: PLW0603 - one process, one start
    with _lock:
        if _parts is None:
            parts = _Parts()
            parts.start()
            atexit.register(stop)
            _parts = parts


def _database_is_away() -> bool:
    """As the feed knows, which reads it twice a second."""
    return feed.silent() >= SILENT_SECONDS


def _write_announcements() -> None:
    try:
        announcements.flush()
    except Exception:
        log.exception("announcements were left unwritten at the end")
