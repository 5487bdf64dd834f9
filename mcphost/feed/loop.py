"""The reader of the change log: one in each process, for all its subscribers."""

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections
from django.utils import timezone

from mcphost.feed.nodes import BEAT_SECONDS, Heartbeat, heartbeat
from mcphost.feed.pruning import PRUNED_AT_ONCE, prune
from mcphost.observability import counters
from mcphost.observability.availability import Source, availability

logger = logging.getLogger(__name__)

SILENT_SECONDS = 5.0
READ_LATELY_SECONDS = 0.5
PRUNE_SECONDS = 600.0
READ_AT_ONCE = 500

# One statement, so that counter and changes are consistent on both databases.
_READ = (
    "SELECT k.value, k.epoch, c.seq, c.tenant, c.name, c.object_id FROM feed_counter k "
    "LEFT JOIN feed_change c ON c.seq > %s WHERE k.id = 1 ORDER BY c.seq LIMIT %s"
)


@dataclass(frozen=True, slots=True)
class ChangeNews:
    """One change, as subscribers receive it."""

    seq: int
    tenant: UUID | None
    kind: str
    object_id: str


@dataclass(frozen=True, slots=True)
class _Position:
    """A reader's position: the last number that it has read, and the counter's epoch.

    A change log in which nothing was ever announced has no counter: number 0 of epoch "".
    """

    seq: int
    epoch: str


_NOWHERE = _Position(-1, "")


@dataclass(frozen=True, slots=True)
class _Reading:
    """The result of one read: the end of the change log, and the changes after a position."""

    end: _Position
    news: tuple[ChangeNews, ...]

    def follows(self, position: _Position) -> bool:
        """Whether no change is missing between `position` and the first change read, or after it."""
        if position.epoch != self.end.epoch and position != _Position(0, ""):
            return False
        if not self.news:
            return self.end.seq == position.seq
        first, last = self.news[0].seq, self.news[-1].seq
        return first == position.seq + 1 and last - first + 1 == len(self.news)


def _read_changes(after: int) -> _Reading:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_READ, [after, READ_AT_ONCE])
        rows = cursor.fetchall()
    if not rows:
        return _Reading(_Position(0, ""), ())
    news = []
    for _, _, seq, tenant, kind, object_id in rows:
        if seq:
            of = UUID(tenant) if isinstance(tenant, str) else tenant  # SQLite has them as text
            news.append(ChangeNews(seq, of, kind, object_id))
    return _Reading(_Position(rows[0][0], str(rows[0][1])), tuple(news))


class Loop:
    """Reads the change log and notifies subscribers of every change once, in order, or of a gap.

    After a gap (changes pruned before this process read them, a restored database, the very first
    read) the gap callbacks are called instead, and reading continues from the end: subscribers drop
    their caches.

    Callbacks run in the polling thread: the loop's own, or one that has just committed an
    announcement. They must be quick and thread-safe; an exception in one is logged and stops
    nothing. `clock` counts seconds and is compared only with itself. The thread also writes the
    `heartbeat` of this process, unless only one process serves (MCPHOST_ALONE).
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, heartbeat: Heartbeat | None = None
    ) -> None:
        self._clock = clock
        self._heartbeat = heartbeat
        self._beaten_at: float | None = None
        self._subscribers: dict[str, list[Callable[[ChangeNews], None]]] = defaultdict(list)
        self._gap_callbacks: list[Callable[[], None]] = []
        self._position = _NOWHERE
        self._read_at: float | None = None
        self._pause = 0.0
        self._failed = False
        self._pruned_at: float | None = None
        self._thread: threading.Thread | None = None
        self._waker: Callable[[], None] | None = None
        self._forget_threads()
        os.register_at_fork(after_in_child=self._forget_threads)

    def _forget_threads(self) -> None:
        """Create new locks and events: those of a forked process's parent may be held for ever."""
        self._turn = threading.RLock()
        self._starting = threading.Lock()
        self._delivering = False
        self._again = False
        self._woken = threading.Event()
        self._stopping = threading.Event()

    def subscribe(self, kind: str, callback: Callable[[ChangeNews], None]) -> None:
        """Call `callback` for every change of the kind `kind`."""
        self._subscribers[kind].append(callback)

    def on_gap(self, callback: Callable[[], None]) -> None:
        """Call `callback` after a gap, when anything may have changed: it drops cached values."""
        self._gap_callbacks.append(callback)

    def poll(self) -> bool:
        """Read new changes and notify the subscribers; False if the database could not be read.

        Do not call it inside a transaction: it would see changes that may yet be rolled back.
        """
        with self._turn:
            self._again = True
            if self._delivering:  # a callback has announced a change: the outer poll reads again
                return True
            self._delivering = True
            try:
                return self._read_all()
            except Error as error:
                if not self._failed:
                    logger.warning("the change log cannot be read: %s", type(error).__name__)
                self._failed = True
                counters.change_log_polls.add("failed")
                availability.lost(Source.CONNECTION, type(error).__name__)
                _close_connection()
                return False
            finally:
                self._delivering = False

    def set_waker(self, waker: Callable[[], None]) -> None:
        """Call `waker` after each local commit of an announcement, to wake other processes.

        It is called in the committing thread and must not block.
        """
        self._waker = waker

    def committed(self) -> None:
        """Wake the other processes after a local commit of an announcement, and poll."""
        if self._waker is not None:
            self._notify((self._waker,))
        self.poll()

    def announced(self) -> None:
        """As `committed`, but the loop's own thread polls: for threads that must not be delayed."""
        if self._waker is not None:
            self._notify((self._waker,))
        self.wake()

    def wake(self) -> None:
        """Make the thread poll now, because there may be changes."""
        self._woken.set()

    def start(self) -> None:
        """Start the thread, unless it is running in this process."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping.clear()
            self._thread = threading.Thread(
                target=self._poll_until_stopped, name="mcphost-feed", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop the thread and wait for its end, at most `timeout` seconds."""
        thread = self._thread
        self._stopping.set()
        self._woken.set()
        if thread is not None:
            thread.join(timeout)

    def problem(self) -> str | None:
        """A readable problem for the health probe; None while the change log is being read."""
        if self._read_at is None:
            return "the change log has not been read yet"
        silent = self.silent()
        if silent < SILENT_SECONDS:
            return None
        return f"the change log has not been read for {silent:.0f} s"

    def silent(self) -> float:
        """Seconds since the change log was last read; 0 before the first read."""
        return 0.0 if self._read_at is None else self._clock() - self._read_at

    def longest_pause(self) -> float:
        """The most seconds between two reads since the last call of this. For one caller."""
        pause, self._pause = self._pause, 0.0
        return pause

    def position(self) -> int:
        """The number of the last change that was read; -1 before the first read."""
        return self._position.seq

    def is_read(self) -> bool:
        """Whether the latest reads succeeded: the database responds, at least to this thread."""
        if self._read_at is None or self._failed:
            return False
        return self.silent() <= READ_LATELY_SECONDS + settings.MCPHOST_FEED_SECONDS

    def _read_all(self) -> bool:
        while self._again:
            self._again = False
            reading = _read_changes(self._position.seq)
            now = self._clock()
            self._pause = max(self._pause, now - (self._read_at or now))
            self._read_at = now
            if self._failed:
                self._failed = False
                logger.info("the change log is read again")
            counters.change_log_polls.add("read")
            counters.change_log_changes.add(len(reading.news))
            if reading.follows(self._position):
                for news in reading.news:
                    self._position = _Position(news.seq, reading.end.epoch)
                    self._notify(self._subscribers.get(news.kind, ()), news)
                if self._position.seq < reading.end.seq:
                    self._again = True
            else:
                if self._position != _NOWHERE:
                    counters.change_log_gaps.add()
                self._position = reading.end
                self._notify(self._gap_callbacks)
        return True

    def _notify(self, callbacks: Any, *news: ChangeNews) -> None:
        for callback in tuple(callbacks):
            try:
                callback(*news)
            except Exception:
                logger.exception("a subscriber of the change log raised")

    def _poll_until_stopped(self) -> None:
        try:
            while not self._stopping.is_set():
                self._poll_once()
                self._woken.wait(settings.MCPHOST_FEED_SECONDS)
                self._woken.clear()
            self._beaten_at = None
            if self._heartbeat is not None and not settings.MCPHOST_ALONE:
                with suppress(Error):  # its row expires soon
                    self._heartbeat.unregister()
        finally:
            connections.close_all()

    def _poll_once(self) -> None:
        try:
            if not self.poll():
                return
            now = self._clock()
            heartbeat = None if settings.MCPHOST_ALONE else self._heartbeat
            is_due = self._beaten_at is None or now - self._beaten_at >= BEAT_SECONDS
            if heartbeat is not None and is_due:
                heartbeat.beat()
                self._beaten_at = now
            # Every PRUNE_SECONDS; while more is left than one portion, at every poll.
            if self._pruned_at is None or now - self._pruned_at >= PRUNE_SECONDS:
                self._pruned_at = now
                if prune(timezone.now()) >= PRUNED_AT_ONCE:
                    self._pruned_at = None
        except (OperationalError, InterfaceError) as error:  # lost between two statements
            availability.lost(Source.CONNECTION, type(error).__name__)
            _close_connection()
        except Exception:
            logger.exception("the change log's thread goes on after an error")
            _close_connection()


def _close_connection() -> None:
    """Drop a connection that failed, so that the next use opens another."""
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        connection.close()


loop = Loop(heartbeat=heartbeat)
