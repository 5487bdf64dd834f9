"""Start and stop what a serving process runs besides its requests."""

import asyncio
import atexit
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final, Protocol

from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from mcphost import __version__
from mcphost.audit.writer.writer import writer
from mcphost.catalogue import kinds
from mcphost.feed.loop import loop as feed
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.python.stacks import tool_on
from mcphost.observability import counters, health, tracing
from mcphost.observability.availability import availability
from mcphost.observability.loop_watch import LoopWatch
from mcphost.serving import database, load, shutdown
from mcphost.serving.background import background
from mcphost.serving.database import waiting
from mcphost.serving.execution import claims
from mcphost.serving.execution.announcements import announcements
from mcphost.serving.execution.outgoing import sender
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.serving.execution.ports import threads
from mcphost.serving.execution.released_rounds import released_rounds
from mcphost.serving.legacy.stream import live
from mcphost.serving.legacy.takeover import takeovers
from mcphost.serving.legacy.task_notices import SessionTaskNotices
from mcphost.serving.options import options
from mcphost.serving.process import startup_checks
from mcphost.serving.process.facts import SERVER, WORKER, ProcessFacts
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.process.startup_checks import KeyCheck
from mcphost.serving.process.summaries import SummariesThread
from mcphost.serving.revocation import presences
from mcphost.serving.subscriptions.registry import listeners
from mcphost.serving.tasks.job_worker import JobWorker
from mcphost.serving.tasks.notices import TaskNotices
from mcphost.serving.tasks.runner import Runner
from mcphost.tasks import changes

DRAIN_SECONDS = 1.0
"""How long the drain takes if the server has not drained before it stops."""
CUT_SECONDS = 2.0
"""How long work that was cut may take to end."""
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


class LoopPart(Protocol):
    """A component that works on the event loop, on what other threads pass to it."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...


PARTS: Final[tuple[LoopPart, ...]] = (
    presences,
    listeners,
    live,
    takeovers,
    released_rounds,
    announcements,
)


class ServerProcess:
    """What a process runs besides its requests, from a start to a stop. It can be started again, on the
    same event loop.

    `role` is what the process does: serve requests, or only run tasks. `companions` are components of
    higher packages.
    """

    def __init__(self, *companions: Companion, role: str = SERVER) -> None:
        self.runner = Runner()
        self.job_worker = JobWorker(self.runner)
        self.facts = ProcessFacts(role, self.job_worker)
        self._notices = TaskNotices()
        self._session_notices = SessionTaskNotices()
        self._parts = (*PARTS, self.runner, self._notices, self._session_notices)
        self._key_check = KeyCheck()
        self._companions = companions
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop on which the process runs; None unless it runs."""
        self._threads: _Threads | None = None

    def prepare(self) -> None:
        """Check the master key, load the packages' wiring, and log which functions cannot be served, before
        the first request.

        The key is checked in a thread: servers import applications inside their event loop, where
        Django's ORM refuses to work. Raises vault.errors.MasterKeyMismatchError; raises
        ImproperlyConfigured when another server uses the same database file.
        """
        startup_checks.claim()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self._key_check.check).result()
        autodiscover_modules("wiring")
        self.connect()
        kinds.log_problems()

    def connect(self) -> None:
        """Subscribe to the change log, the heartbeat and the drain, after the packages' wiring: what
        these have cached is then dropped first."""
        for change in (changes.CHANGED, changes.PROGRESS):
            listeners.register_handler(change, self._session_notices.changed)
            feed.subscribe(change, listeners.on_change)
        feed.subscribe(changes.CHANGED, self._notices.on_change)
        feed.subscribe(changes.DUE, self.runner.on_due)
        feed.subscribe("tool", self.runner.on_tools)
        feed.subscribe(changes.CANCELLED, self.runner.on_cancelled)
        feed.on_gap(self.runner.on_gap)
        feed.on_gap(self._notices.on_gap)
        heartbeat.on_functions(self.runner.on_gap)
        heartbeat.drains = lambda: shutdown.draining() or self.facts.role == WORKER
        heartbeat.report = self.facts.read
        shutdown.on_drain(self.job_worker.end)

    def start(self) -> None:
        """Start, on the running event loop. Does nothing while the process runs.

        Every request calls this, because Daphne has no lifespan to do it earlier. When it raises, the
        next request tries again.
        """
        if self.loop is not None:
            return
        for part in self._parts:
            part.start()
        running = _Threads(self._key_check, self.facts, self._companions, self.runner.find_tasks)
        running.start()
        if self.facts.role == WORKER or options().tasks.worker_in_server:
            self.job_worker.start()
        atexit.register(running.stop)
        self._threads, self.loop = running, asyncio.get_running_loop()

    async def stop(self) -> None:
        """End the work under way, and wait for that; then write what is queued, and end the threads.

        Does nothing unless the process runs. Work that others can continue is released to them.
        """
        if self._threads is None:
            return
        if not shutdown.draining():
            shutdown.begin()
            await background.wait_until_idle(DRAIN_SECONDS)
        shutdown.cut()
        await background.end(CUT_SECONDS)
        for part in self._parts:
            await part.stop()
        await self.job_worker.ended()
        await sender.close()
        atexit.unregister(self._threads.stop)
        # In a separate thread: tools that never return may block all of asyncio's threads.
        with ThreadPoolExecutor(1, thread_name_prefix="mcphost-stop") as pool:
            await asyncio.get_running_loop().run_in_executor(pool, self._threads.stop)
        shutdown.reset()
        self._threads.close_probes()
        self.loop = self._threads = None


class _Threads:
    """The threads of a process, and what it measures."""

    def __init__(
        self,
        key_check: KeyCheck,
        facts: ProcessFacts,
        companions: Sequence[Companion],
        find_tasks: Callable[[], None],
    ) -> None:
        self._key_check = key_check
        self._facts = facts
        self._companions = companions
        self._watch = LoopWatch(tool_on, lag=load.lag)
        self._housekeeping = Housekeeping(
            takeovers.find_orphans, find_tasks, released_rounds.find_rounds
        )
        self._summaries = SummariesThread()
        self._probes = ExitStack()

    def start(self) -> None:
        tracing.start(__version__)  # before the loop is watched: loading it takes a while
        writer.start()
        feed.start()
        for companion in self._companions:
            companion.start()
        self._key_check.start()
        self._housekeeping.start()
        if settings.MCPHOST_SUMMARIES_IN_SERVER or self._facts.role == WORKER:
            self._summaries.start()
        self._facts.summaries = self._summaries.facts
        self._watch.start()
        self._open_probes()

    def _open_probes(self) -> None:
        gauges: dict[str, Callable[[], float]] = {
            "records_waiting": writer.waiting,
            "summaries_lag_seconds": self._summaries.lag,
            "database_waiting": waiting,
            "change_log_silent_seconds": feed.silent,
            **load.GAUGES,
            "task_rounds_running": lambda: len(running_tasks),
            "threads_busy": lambda: threads().busy,
            "threads_idle": lambda: threads().idle,
            "threads_lost": lambda: threads().lost,
        }
        for remove in (
            health.register("records", writer.problem),
            health.register("feed", feed.problem),
            health.register("database", self._database_problem),
            health.register("drain", shutdown.problem),
            health.warn("summaries", self._summaries.problem),
            *(counters.measure(name, gauge) for name, gauge in gauges.items()),
        ):
            self._probes.callback(remove)

    def close_probes(self) -> None:
        """Remove the health probes and the gauges. The last step of a stop: until then the process
        is not ready because it drains."""
        self._probes.close()

    def stop(self) -> None:
        """Commit what is queued, and end the threads."""
        self._watch.stop()
        self._housekeeping.stop(STOP_SECONDS)
        self._summaries.stop(STOP_SECONDS)
        self._key_check.stop(STOP_SECONDS)
        try:
            announcements.flush()
        except Exception:
            log.exception("announcements were left unwritten at the end")
        for companion in self._companions:
            companion.stop()
        if not writer.stop(STOP_SECONDS):
            log.error("records were left unwritten at the end")
        claims.release_all()  # after the writer: rounds that it has concluded are not released
        feed.stop()  # last: after it this process and its claims no longer count as alive
        tracing.stop(SEND_SECONDS)

    def _database_problem(self) -> str | None:
        return self._key_check.problem() or availability.problem()
