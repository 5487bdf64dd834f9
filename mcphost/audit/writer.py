"""Group commit: one thread and one connection per process commit what many requests wait for."""

import asyncio
import concurrent.futures
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from django.db import (
    DEFAULT_DB_ALIAS,
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    connections,
)

from mcphost.audit.conditions import Condition
from mcphost.audit.jobs import (
    ConditionalJob,
    Job,
    RecordLost,
    Verdict,
    lose,
    portions,
    settle,
    write_if,
)
from mcphost.audit.records import Record
from mcphost.audit.rows import RecordRefused
from mcphost.audit.sinks import Sink, sink
from mcphost.observability import counters

logger = logging.getLogger(__name__)

__all__ = ["Limits", "RecordLost", "RecordRefused", "Writer", "writer"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a writer takes on. Times are in seconds of its clock, but `pause` is real time.

    A transaction holds `rows` rows or few more; at most `waiting` submissions wait. A row that
    waited `late` makes the process unready; one that could not be written for `give_up` is lost.
    """

    rows: int = 500
    waiting: int = 20_000
    late: float = 2.0
    give_up: float = 10.0
    pause: float = 0.05


def _is_transient(error: Exception) -> bool:
    """Whether the database, and not the row, is the reason."""
    of_the_row = (DataError, IntegrityError, ProgrammingError, NotSupportedError)
    return isinstance(error, Error) and not isinstance(error, of_the_row)


class Writer:
    """Commits records in batches: whatever waits is taken and committed at once.

    `submit` is for event loops and costs them next to nothing; encoding and encryption are done in
    the writer's thread. `clock` is compared only with itself.
    """

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._doubt: Callable[[], bool] | None = None
        self._reset()
        _writers.add(self)

    def _reset(self) -> None:
        """Begin anew, as at the start and in a forked child, where the thread is not."""
        self._jobs: deque[Job] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._starting = threading.Lock()
        self._abandoned = threading.Event()
        self._thread: threading.Thread | None = None
        self._idle = False
        self._running = False
        self._closed = True
        self._since: float | None = None
        self._sink: Sink | None = None

    def submit(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        """Have `records` committed, all or none; the future is resolved after the commit.

        To be called on an event loop. The future raises RecordRefused for what can never be
        written, RecordLost for what could not be. Cancelling it cancels only the waiting.
        Raises RecordLost at once when the writer does not run or its queue is full.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._enqueue(Job(records, self._clock(), future, loop))
        return future

    def submit_if(
        self, condition: Condition, records: Sequence[Record] = ()
    ) -> "asyncio.Future[bool]":
        """Have `records` committed together with a condition's change, or neither.

        The future tells whether the condition took hold; otherwise as `submit`. What is lost may
        have taken hold, if a connection was lost in the very moment of its commit.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._enqueue(ConditionalJob(condition, records, self._clock(), future, loop))
        return future

    def submit_and_wait(self, records: Sequence[Record], timeout: float | None = None) -> None:
        """Have `records` committed and wait for it, in a thread without an event loop.

        Raises what `submit` raises, and TimeoutError after `timeout` seconds: the records may
        still land.
        """
        future: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._enqueue(Job(records, self._clock(), future, None))
        future.result(timeout)

    def problem(self) -> str | None:
        """Why new calls must be refused now, for people; None when all is well."""
        thread = self._thread
        if not self._running or thread is None:
            return "the record writer does not run"
        if not thread.is_alive():
            return "the record writer's thread has died"
        if len(self._jobs) >= self._limits.waiting // 2:
            return "the record writer's queue is filling up"
        since = self._oldest()
        if since is None or (waited := self._clock() - since) < self._limits.late:
            return None
        return f"the oldest record has been waiting for {waited:.0f} s"

    def refuse_new(self) -> bool:
        """Whether to refuse a new call before its tool runs."""
        if self.problem() is not None:
            return True
        return self._doubt is not None and self._doubt()

    def heed(self, doubt: Callable[[], bool] | None) -> None:
        """Refuse new calls also while `doubt` says so: whoever reads the database all the time
        knows that it is away before the next record would."""
        self._doubt = doubt

    def waiting(self) -> int:
        """How many submissions no transaction has begun with yet."""
        return len(self._jobs)

    def start(self) -> None:
        """Start the thread, if it does not run already in this process."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                if self._running:
                    return
                self._thread.join()  # it was stopped and ends by itself
            self._abandoned.clear()
            self._closed = False
            self._running = True
            self._thread = threading.Thread(target=self._run, name="mcphost-writer", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Refuse what is new, write what waits, end the thread; False if `timeout` seconds (of
        real time) were not enough: what is left is then lost.
        """
        with self._starting:
            thread = self._thread
            self._running = False
            self._wake.put(None)
            if thread is None:
                return True
            thread.join(timeout)
            drained = not thread.is_alive()
            self._abandoned.set()
            return drained

    def _enqueue(self, job: Job) -> None:
        if not self._running:
            raise RecordLost("the record writer does not run")
        if len(self._jobs) >= self._limits.waiting:
            raise RecordLost("the record writer's queue is full")
        self._jobs.append(job)
        # The thread says that it is idle, then looks once more: one of the two sees the other.
        if job.loop is None:
            self._wake.put(None)  # whoever blocks a thread waits for no event loop's turn
        elif self._idle:
            self._idle = False
            self._rouse(job.loop)
        if self._closed:
            self._lose_waiting()

    def _rouse(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the thread once the loop's turn is over and all who can have joined.

        Woken earlier it would fight the loop for Python's lock, to write a batch of one.
        """
        loop.call_soon(self._wake.put, None)

    def _oldest(self) -> float | None:
        since = self._since
        if since is not None:
            return since
        try:
            return self._jobs[0].since
        except IndexError:
            return None

    def _run(self) -> None:
        left: list[Job] = []
        self._sink = None  # a connection belongs to the thread that opened it
        try:
            while not self._abandoned.is_set() and (batch := self._take(left)):
                left = self._round(batch)
        finally:
            self._closed = True
            self._since = None
            lose(left, "the record writer ended")
            self._lose_waiting()
            connections.close_all()

    def _lose_waiting(self) -> None:
        with suppress(IndexError):
            while True:
                lose([self._jobs.popleft()], "the record writer ended")

    def _take(self, left: list[Job]) -> list[Job]:
        """What to write next: what is left of the last batch, and what waits; empty at the end."""
        jobs, batch = self._jobs, left
        while not jobs and not batch:
            self._since = None
            if not self._running:
                return []
            self._idle = True
            if not jobs and self._running:
                self._wake.get()
            self._idle = False
        rows = sum(len(job.records) for job in batch)
        while jobs and rows < self._limits.rows:
            job = jobs.popleft()
            batch.append(job)
            rows += len(job.records)
        self._since = batch[0].since
        return batch

    def _round(self, batch: list[Job]) -> list[Job]:
        """Write a batch, tell those who wait, and return what is to be tried again."""
        verdicts: list[Verdict] = []
        left: list[Job] = []
        try:
            self._commit(batch, verdicts)
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever happens
            self._let_go(error)
            done = {id(job) for job, _ in verdicts}
            left = self._give_up([job for job in batch if id(job) not in done])
        counters.records_refused.add(
            sum(len(job.records) for job, fate in verdicts if fate and fate is not True)
        )
        settle(verdicts)
        if left:
            self._abandoned.wait(self._limits.pause)
        return left

    def _give_up(self, jobs: list[Job]) -> list[Job]:
        before = self._clock() - self._limits.give_up
        lose([job for job in jobs if job.since <= before], "the database took no records")
        return [job for job in jobs if job.since > before]

    def _commit(self, batch: list[Job], verdicts: list[Verdict]) -> None:
        """Commit `batch`; when something in it is refused, in halves, down to the bad job.

        Raises whatever keeps the database from taking anything.
        """
        groups = portions(self._prepared(batch, verdicts))
        while groups:
            group = groups.pop()
            error = self._write(group)
            if error is None:
                verdicts += [(job, job.held) for job in group]
            elif len(group) == 1:
                logger.error("a record was refused: %s", type(error).__name__)
                refused = RecordRefused(f"the database refused it: {type(error).__name__}")
                verdicts.append((group[0], refused))
            else:
                half = len(group) // 2
                groups += [group[half:], group[:half]]

    def _prepared(self, batch: list[Job], verdicts: list[Verdict]) -> list[Job]:
        ready = []
        for job in batch:
            try:
                job.prepare()
                ready.append(job)
            except Error:
                raise
            except RecordRefused as error:
                verdicts.append((job, error))
            except Exception as error:  # noqa: BLE001 - a cipher may raise anything
                # Never the error's text: it may hold what the payload held.
                logger.error("a record could not be prepared: %s", type(error).__name__)
                verdicts.append((job, RecordRefused(f"unusable: {type(error).__name__}")))
        return ready

    def _write(self, group: list[Job]) -> Exception | None:
        """Commit a group; the error if it is the group's own fault."""
        rows = [row for job in group for row in job.rows or ()]
        conditional = [job for job in group if isinstance(job, ConditionalJob)]
        if not rows and not conditional:
            return None
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            if self._sink is None:
                connection.ensure_connection()
                self._sink = sink(connection)
            began = time.perf_counter()
            with connection.wrap_database_errors:
                if conditional:
                    rows += write_if(self._sink, rows, conditional)
                else:
                    self._sink.write(rows)
            counters.committed(len(rows), time.perf_counter() - began)
        except Exception as error:
            if _is_transient(error):
                raise
            return error
        return None

    def _let_go(self, error: Exception) -> None:
        """Drop the connection that failed: the next attempt opens another."""
        logger.warning("records could not be written now: %s", type(error).__name__)
        self._sink = None
        with suppress(Exception):
            connections[DEFAULT_DB_ALIAS].close()


_writers: "weakref.WeakSet[Writer]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in _writers:
        each._reset()


os.register_at_fork(after_in_child=_after_fork)

writer = Writer()
