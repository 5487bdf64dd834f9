"""Group commit: one thread with one connection per process commits the records of many requests."""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    connections,
)

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.jobs import (
    ConditionalJob,
    Job,
    RecordLostError,
    Verdict,
    lose,
    portions,
    settle,
    write_if,
)
from mcphost.audit.writer.rows import RecordRefusedError
from mcphost.audit.writer.sinks import Sink, sink
from mcphost.observability import counters
from mcphost.observability.availability import Source, availability

LINGER_SECONDS = 0.0003
"""How long to wait for more submissions when a batch begins smaller than the last one."""
MAX_PAUSE = 5
"""The longest pause between failing attempts, in multiples of `WriterLimits.pause`."""

logger = logging.getLogger(__name__)

__all__ = ["RecordLostError", "RecordRefusedError", "Writer", "WriterLimits", "writer"]


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """Limits of a writer. Times are in seconds of its clock, except `pause`, which is real time.

    A transaction has `rows` rows or a few more; at most `waiting` submissions wait. A row that has
    waited for `late` makes the process unready; one that could not be written for `give_up`
    (default: MCPHOST_DATABASE_WAIT_SECONDS) is lost.
    """

    rows: int = 500
    waiting: int = 20_000
    late: float = 2.0
    give_up: float | None = None
    pause: float = 0.05


def _is_transient(error: Exception) -> bool:
    """Whether the database, and not the row, caused the error."""
    of_the_row = (DataError, IntegrityError, ProgrammingError, NotSupportedError)
    return isinstance(error, Error) and not isinstance(error, of_the_row)


class Writer:
    """Commits records in batches: all waiting submissions are committed together.

    `submit` is for event loops and costs them next to nothing; encoding and encryption are done in
    the writer's thread. `clock` is compared only with itself.
    """

    def __init__(
        self, limits: WriterLimits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or WriterLimits()
        self._clock = clock
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Reset, at the start and in a forked child, which does not have the thread."""
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
        self._behind = False
        self._failures = 0
        self._batch_size = 0
        self._judging = threading.Lock()

    def submit(
        self, records: Sequence[Record], condition: Condition | None = None
    ) -> "asyncio.Future[Any]":
        """Commit `records`, all or none; the future is resolved after the commit.

        With a `condition`, see `submit_if`. Call it on an event loop. The future raises
        RecordRefusedError if a record can never be written, RecordLostError if it could not be written in
        time; at once, when the writer does not run or its queue is full. Cancelling the future cancels
        only the waiting.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if condition is None:
            job = Job(records, self._clock(), future, loop)
        else:
            job = ConditionalJob(condition, records, self._clock(), future, loop)
        if not self._running:
            future.set_exception(RecordLostError("the record writer is not running"))
            return future
        if len(self._jobs) >= self._limits.waiting:
            future.set_exception(RecordLostError("the record writer's queue is full"))
            return future
        self._jobs.append(job)
        # The thread sets `_idle`, then checks the queue again: so no submission goes unnoticed.
        if self._idle:
            self._idle = False
            # After this iteration of the loop, when others have submitted too. Earlier the thread
            # would compete with the loop for the GIL, to write a batch of one.
            loop.call_soon(self._wake.put, None)
        if self._closed:
            self._lose_waiting()
        return future

    def submit_if(
        self, condition: Condition, records: Sequence[Record] = ()
    ) -> "asyncio.Future[bool]":
        """Commit `records` together with a condition's change, or neither.

        The future's result is whether the condition took hold; otherwise as `submit`. After
        RecordLostError it may have taken hold, if the connection was lost during the commit.
        """
        future: asyncio.Future[bool] = self.submit(records, condition)
        return future

    def problem(self) -> str | None:
        """The health probe: why new calls must be refused now; None when all is well."""
        thread = self._thread
        if not self._running or thread is None:
            return "the record writer is not running"
        if not thread.is_alive():
            return "the record writer's thread has died"
        if len(self._jobs) >= self._limits.waiting // 2:
            return "the record writer's queue is filling up"
        waited = self._waited()
        if waited < self._limits.late:
            return None
        return f"the oldest record has been waiting for {waited:.0f} s"

    def is_running(self) -> bool:
        """Whether submissions are accepted: `start` was called, and not `stop`."""
        return self._running

    def is_ready(self) -> bool:
        """Whether a call may run at once: no record has waited for too long, and there is room."""
        waits = self._jobs or self._behind or self._since is not None  # most often nothing does
        if waits and self.is_behind():
            return False
        thread, room = self._thread, self._limits.waiting // 2 - len(self._jobs)
        return self._running and thread is not None and thread.is_alive() and room > 0

    def refuse_new(self) -> bool:
        """Whether to refuse a call before its tool runs: the writer is dead, or too much waits."""
        thread = self._thread
        if not self._running or thread is None or not thread.is_alive():
            return True
        return len(self._jobs) >= self._limits.waiting // 2

    def is_behind(self) -> bool:
        """Whether a new call should wait, because records have waited for too long.

        If so, `availability` reports it too, until the writer has caught up.
        """
        waits = self._since is not None or self._jobs  # most often nothing does
        if waits and not self._behind and self._waited() >= self._limits.late:
            self._fall_behind("the oldest record has waited too long", check=True)
        return self._behind

    def waiting(self) -> int:
        """How many submissions wait for their first transaction."""
        return len(self._jobs)

    def lag(self) -> float:
        """How many seconds the oldest record has been waiting; 0 if none waits."""
        return self._waited()

    def start(self) -> None:
        """Start the thread, unless it runs already in this process."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                if self._running:
                    return
                self._thread.join()  # it was stopped and ends by itself
            self._abandoned.clear()
            self._closed = False
            self._running = True
            self._thread = threading.Thread(
                target=self._write_batches, name="mcphost-writer", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float = 10.0) -> bool:
        """Refuse new submissions, write those that wait, end the thread.

        False if `timeout` seconds (of real time) were not enough: what is left is then lost.
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

    def _fall_behind(self, reason: str, *, check: bool = False) -> None:
        """Report that records are not being written; `check` verifies first that they are late."""
        with self._judging:
            if not self._behind and (not check or self._waited() >= self._limits.late):
                self._behind = True
                availability.lost(Source.RECORDS, reason)

    def _catch_up(self) -> None:
        """Report that records are written again, or that none wait. In the writer's thread."""
        with self._judging:
            self._since = None
            if self._behind and self._waited() < self._limits.late:
                self._behind = False
                availability.reached(Source.RECORDS)

    def _waited(self) -> float:
        """How long the oldest record has been waiting; 0 if there is none."""
        since = self._since
        if since is None:
            try:
                since = self._jobs[0].since
            except IndexError:
                return 0.0
        return self._clock() - since

    def _write_batches(self) -> None:
        remaining: list[Job] = []
        self._sink = None  # a connection belongs to the thread that opened it
        try:
            while not self._abandoned.is_set() and (batch := self._next_batch(remaining)):
                remaining = self._write_batch(batch)
        finally:
            self._closed = True
            lose(remaining, "the record writer has stopped")
            self._lose_waiting()
            self._catch_up()
            connections.close_all()

    def _lose_waiting(self) -> None:
        with suppress(IndexError):
            while True:
                lose([self._jobs.popleft()], "the record writer has stopped")

    def _next_batch(self, remaining: list[Job]) -> list[Job]:
        """The next batch: what is left of the last one, and what waits; empty at the end."""
        jobs, batch = self._jobs, remaining
        while not jobs and not batch:
            self._since = None
            if not self._running:
                return []
            self._idle = True
            if not jobs and self._running:
                self._wake.get()
            self._idle = False
        if len(jobs) < self._batch_size and self._running:
            # Probably as many as last time will arrive: one commit for all of them costs less than
            # two, and the event loop submits them faster while this thread sleeps.
            time.sleep(LINGER_SECONDS)
        rows = sum(len(job.records) for job in batch)
        self._batch_size = 0
        while jobs and rows < self._limits.rows:
            self._batch_size += 1
            job = jobs.popleft()
            batch.append(job)
            rows += len(job.records)
        self._since = batch[0].since
        return batch

    def _write_batch(self, batch: list[Job]) -> list[Job]:
        """Write a batch, report the results to the callers, and return what to try again."""
        verdicts: list[Verdict] = []
        remaining: list[Job] = []
        try:
            self._commit(batch, verdicts)
        except Exception as error:  # noqa: BLE001 - the thread must survive any error
            # Drop the connection that failed: the next attempt opens another.
            self._fall_behind(type(error).__name__)
            self._failures += 1
            level = logging.DEBUG if self._failures > 1 else logging.WARNING
            logger.log(level, "writing records failed: %s", type(error).__name__)
            self._sink = None
            with suppress(Exception):
                connections[DEFAULT_DB_ALIAS].close()
            done = {id(job) for job, _ in verdicts}
            undone = [job for job in batch if id(job) not in done]
            seconds = self._limits.give_up
            if seconds is None:
                seconds = settings.MCPHOST_DATABASE_WAIT_SECONDS
            before = self._clock() - seconds
            remaining = [job for job in undone if job.since > before]
            if not remaining:  # nothing is left with which this thread could try the database again
                availability.lost(Source.CONNECTION, type(error).__name__)
            late = [job for job in undone if job.since <= before]
            lose(late, "records could not be written in time")
        counters.records_refused.add(
            sum(len(job.records) for job, result in verdicts if result and result is not True)
        )
        if not remaining:
            self._failures = 0
            self._catch_up()
        settle(verdicts)
        if remaining:
            self._abandoned.wait(self._limits.pause * min(self._failures, MAX_PAUSE))
        return remaining

    def _commit(self, batch: list[Job], verdicts: list[Verdict]) -> None:
        """Commit `batch`; if the database refuses it, commit its halves, down to the bad job.

        Raises the error if it is transient, and so not caused by a row.
        """
        ready = []
        for job in batch:
            try:
                job.prepare()
                ready.append(job)
            except Error:
                raise
            except RecordRefusedError as error:
                verdicts.append((job, error))
            except Exception as error:  # noqa: BLE001 - a cipher may raise anything
                # Never the error's text: it may contain parts of the payload.
                logger.error("a record could not be prepared: %s", type(error).__name__)
                reason = f"the record could not be prepared: {type(error).__name__}"
                verdicts.append((job, RecordRefusedError(reason)))
        groups = portions(ready)
        while groups:
            group = groups.pop()
            bad = self._write_group(group)
            if bad is None:
                verdicts += [(job, job.took_hold) for job in group]
            elif len(group) == 1:
                logger.error("the database refused a record: %s", type(bad).__name__)
                refused = RecordRefusedError(
                    f"the database refused the record: {type(bad).__name__}"
                )
                verdicts.append((group[0], refused))
            else:
                half = len(group) // 2
                groups += [group[half:], group[:half]]

    def _write_group(self, group: list[Job]) -> Exception | None:
        """Commit a group; return the error if a row caused it, raise any other."""
        rows = [row for job in group for row in job.rows or ()]
        conditional = [job for job in group if isinstance(job, ConditionalJob)]
        if not rows and not conditional:
            return None
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            with connection.wrap_database_errors:
                if self._sink is None:
                    connection.ensure_connection()
                    self._sink = sink(connection)
                began = time.perf_counter()
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


writer = Writer()
