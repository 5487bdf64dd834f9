"""Start and stop what a serving process runs besides its requests."""

import asyncio
import atexit
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from mcphost.audit.writer.writer import writer
from mcphost.catalogue import kinds
from mcphost.feed.loop import loop as feed
from mcphost.kinds.python.stacks import tool_on
from mcphost.observability import counters, health, tracing
from mcphost.observability.availability import availability
from mcphost.observability.loop_watch import LoopWatch
from mcphost.serving import database, load, shutdown
from mcphost.serving.database import waiting
from mcphost.serving.execution import claims
from mcphost.serving.execution.announcements import announcements
from mcphost.serving.execution.held_task import running_tasks
from mcphost.serving.execution.left_rounds import left_rounds
from mcphost.serving.execution.ports import threads
from mcphost.serving.legacy import takeover
from mcphost.serving.legacy.task_notices import session_task_notices
from mcphost.serving.options import options
from mcphost.serving.process import startup_checks
from mcphost.serving.process.facts import WORKER, process_facts
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.process.startup_checks import KeyCheck
from mcphost.serving.process.summaries import SummariesThread
from mcphost.serving.replies import VERSION
from mcphost.serving.tasks.job_worker import job_worker
from mcphost.serving.tasks.notices import notices
from mcphost.serving.tasks.runner import runner

STOP_SECONDS = 10.0
SEND_SECONDS = 5.0
"""How long the process waits at its end for the collector to take the last spans."""
CONNECTIONS = database.THREADS + database.UNAUTHENTICATED_THREADS + 7
"""How many database connections a process holds at most, besides those of Django's requests: one
for each thread of the pools, and one each for the record writer, the change log, housekeeping, the
summaries of calls, the probe of an unreachable database, live lists, and the thread that starts and
stops the process."""

log = logging.getLogger(__name__)


class Companion(Protocol):
    """A component of a higher package that runs while the process serves."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


_companions: list[Companion] = []
key_check = KeyCheck()


def register_companion(companion: Companion) -> None:
    """Start and stop `companion` with everything else."""
    _companions.append(companion)


class _Parts:
    """The components of a serving process, from one start to its stop."""

    def __init__(self) -> None:
        self._watch = LoopWatch(tool_on, lag=load.lag)
        self._housekeeping = Housekeeping()
        self._summaries = SummariesThread()

    def start(self) -> None:
        tracing.start(VERSION)  # before the loop is watched: loading it takes a while
        writer.start()
        feed.start()
        for companion in _companions:
            companion.start()
        key_check.start()
        self._housekeeping.start()
        if settings.MCPHOST_SUMMARIES_IN_SERVER or process_facts.role == WORKER:
            self._summaries.start()
        process_facts.summaries = self._summaries.facts
        self._watch.start()
        health.register("records", writer.problem)
        health.register("feed", feed.problem)
        health.register("database", _database_problem)
        health.register("drain", shutdown.problem)
        health.warn("summaries", self._summaries.problem)
        counters.measure("records_waiting", writer.waiting)
        counters.measure("summaries_lag_seconds", self._summaries.lag)
        counters.measure("database_waiting", waiting)
        counters.measure("change_log_silent_seconds", feed.silent)
        load.measure()
        counters.measure("task_rounds_running", lambda: len(running_tasks))
        counters.measure("threads_busy", lambda: threads().busy)
        counters.measure("threads_idle", lambda: threads().idle)
        counters.measure("threads_lost", lambda: threads().lost)

    def stop(self) -> None:
        self._watch.stop()
        self._housekeeping.stop(STOP_SECONDS)
        self._summaries.stop(STOP_SECONDS)
        key_check.stop(STOP_SECONDS)
        try:
            announcements.flush()
        except Exception:
            log.exception("announcements were left unwritten at the end")
        for companion in _companions:
            companion.stop()
        if not writer.stop(STOP_SECONDS):
            log.error("records were left unwritten at the end")
        claims.release_all()  # after the writer: rounds that it has concluded are not released
        feed.stop()  # last: after it this process and its claims no longer count as alive
        tracing.stop(SEND_SECONDS)


_lock = threading.Lock()
_parts: _Parts | None = None
_loop: asyncio.AbstractEventLoop | None = None


def prepare() -> None:
    """Load the packages' wiring, log what of the code is not served, and check the master key, before
    the first request.

    The key is checked in a thread: servers import applications inside their event loop, where
    Django's ORM refuses to work. Raises vault.errors.MasterKeyMismatch; raises ImproperlyConfigured
    when another server uses the same database file.
    """
    startup_checks.claim()
    autodiscover_modules("wiring")
    kinds.log_problems()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(key_check.check).result()


def ensure_started() -> None:
    """Start what runs besides the requests, once per process, and use the running loop from now on.

    Called on the event loop, at every request, because Daphne has no lifespan to call it earlier.
    A server has one loop; tests have several.
    """
    global _parts, _loop  # noqa: PLW0603 - one process, one start
    loop = asyncio.get_running_loop()
    if loop is _loop:
        return
    with _lock:
        takeover.attach()
        runner.attach()
        left_rounds.attach()
        notices.attach()
        session_task_notices.attach()
        announcements.attach()  # tools announce from threads, too
        if options().tasks.worker_in_server:
            job_worker.attach()
        if _parts is None:
            parts = _Parts()
            parts.start()
            atexit.register(stop)
            _parts = parts
        _loop = loop


def stop() -> None:
    """Commit what is queued and stop. Does nothing if nothing was started."""
    global _parts, _loop
    with _lock:
        parts, _parts, _loop = _parts, None, None
        if parts is not None:
            atexit.unregister(stop)
            parts.stop()


def _database_problem() -> str | None:
    return key_check.problem() or availability.problem()
