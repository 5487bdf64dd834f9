"""The one reader of the feed in each process, for all its waiters at once."""

import logging
import os
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.utils import timezone

from mcphost.feed.nodes import BEAT_SECONDS, Heartbeat, heartbeat
from mcphost.feed.pruning import PRUNED_AT_ONCE, prune
from mcphost.observability import counters

logger = logging.getLogger(__name__)

SILENT_SECONDS = 5.0
PRUNE_SECONDS = 600.0
READ_AT_ONCE = 500

# One statement, so that counter and changes are of one moment on both databases.
_READ = (
    "SELECT k.value, k.epoch, c.seq, c.tenant, c.what, c.object_id FROM feed_counter k "
    "LEFT JOIN feed_change c ON c.seq > %s WHERE k.id = 1 ORDER BY c.seq LIMIT %s"
)


@dataclass(frozen=True, slots=True)
class ChangeNews:
    """One change, as subscribers hear of it."""

    seq: int
    tenant: UUID | None
    what: str
    object_id: str


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a reader has come: the last number it knows, of which counter.

    A feed in which nothing was ever announced has no counter: number 0 of epoch "".
    """

    seq: int
    epoch: str


_NOWHERE = _Place(-1, "")


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one read saw: where the feed's end is, and the changes after the reader's place."""

    end: _Place
    news: tuple[ChangeNews, ...]

    def follows(self, place: _Place) -> bool:
        """Whether nothing is missing between `place` and the first change read, nor after it."""
        if place.epoch != self.end.epoch and place != _Place(0, ""):
            return False
        if not self.news:
            return self.end.seq == place.seq
        first, last = self.news[0].seq, self.news[-1].seq
        return first == place.seq + 1 and last - first + 1 == len(self.news)


def _uuid(value: Any) -> UUID | None:
    """A UUID as the database driver gives it: SQLite keeps them as text."""
    return UUID(value) if isinstance(value, str) else value


def _read(after: int) -> _Reading:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_READ, [after, READ_AT_ONCE])
        rows = cursor.fetchall()
    if not rows:
        return _Reading(_Place(0, ""), ())
    news = tuple(ChangeNews(row[2], _uuid(row[3]), row[4], row[5]) for row in rows if row[2])
    return _Reading(_Place(rows[0][0], str(rows[0][1])), news)


class Loop:
    """Reads the feed and tells the subscribers: every change once, in order, or a gap.

    A gap (changes pruned before this process read them, a database put back, the very first read)
    calls the gap callbacks instead, and reading goes on from the feed's end: whoever keeps
    anything drops it.

    Callbacks run in the thread that polls: the loop's own, or one that has just committed an
    announcement. They must be quick and thread-safe; one that raises is logged and stops nothing.
    `clock` counts seconds and is compared only with itself. The thread also says, by `heartbeat`,
    that this process serves; where one process serves there is nobody to say it to.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, heartbeat: Heartbeat | None = None
    ) -> None:
        self._clock = clock
        self._heartbeat = heartbeat
        self._beaten_at: float | None = None
        self._subscribers: dict[str, list[Callable[[ChangeNews], None]]] = defaultdict(list)
        self._gap_callbacks: list[Callable[[], None]] = []
        self._place = _NOWHERE
        self._read_at: float | None = None
        self._failed = False
        self._pruned_at: float | None = None
        self._thread: threading.Thread | None = None
        self._waker: Callable[[], None] | None = None
        self._forget_threads()
        _loops.add(self)

    def _forget_threads(self) -> None:
        """Begin with fresh locks: those of a forked process's parent may be held for ever."""
        self._turn = threading.RLock()
        self._starting = threading.Lock()
        self._delivering = False
        self._again = False
        self._woken = threading.Event()
        self._stopping = threading.Event()

    def subscribe(self, what: str, callback: Callable[[ChangeNews], None]) -> None:
        """Have `callback` called for every change of the kind `what`."""
        self._subscribers[what].append(callback)

    def on_gap(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when anything may have changed unheard: drop what was kept."""
        self._gap_callbacks.append(callback)

    def poll(self) -> bool:
        """Read what is new and tell the subscribers; False if the database could not be read.

        By hand, do it outside a transaction: inside one it sees changes that may yet be undone.
        """
        with self._turn:
            self._again = True
            if self._delivering:  # a callback announced something: the outer poll goes round again
                return True
            self._delivering = True
            try:
                return self._read_all()
            except Error as error:
                if not self._failed:
                    logger.warning("the change feed cannot be read: %s", type(error).__name__)
                self._failed = True
                counters.feed_polls.add("failed")
                _let_go()
                return False
            finally:
                self._delivering = False

    def set_waker(self, waker: Callable[[], None]) -> None:
        """Have `waker` called after each local commit of an announcement, to tell other processes.

        It is called in the committing thread: it must not wait.
        """
        self._waker = waker

    def committed(self) -> None:
        """An announcement was committed here: tell the other processes, and hear of it ourselves."""
        if self._waker is not None:
            self._tell((self._waker,))
        self.poll()

    def wake(self) -> None:
        """Have the thread poll now: a hint that there may be news."""
        self._woken.set()

    def start(self) -> None:
        """Start the thread, if it does not run already in this process."""
        with self._starting:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="mcphost-feed", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop the thread and wait for its end, at most `timeout` seconds."""
        thread = self._thread
        self._stopping.set()
        self._woken.set()
        if thread is not None:
            thread.join(timeout)

    def problem(self) -> str | None:
        """What is wrong, for people; None while the feed is being read."""
        if self._read_at is None:
            return "the change feed has not been read yet"
        silent = self.silent()
        if silent < SILENT_SECONDS:
            return None
        return f"the change feed has not been read for {silent:.0f} s"

    def silent(self) -> float:
        """For how many seconds the feed has not been read; 0 before it was for the first time."""
        return 0.0 if self._read_at is None else self._clock() - self._read_at

    def _read_all(self) -> bool:
        while self._again:
            self._again = False
            reading = _read(self._place.seq)
            self._read_at = self._clock()
            if self._failed:
                self._failed = False
                logger.info("the change feed is read again")
            counters.feed_polls.add("read")
            counters.feed_changes.add(len(reading.news))
            if reading.follows(self._place):
                self._deliver(reading)
            else:
                if self._place != _NOWHERE:
                    counters.feed_gaps.add()
                self._place = reading.end
                self._tell(self._gap_callbacks)
        return True

    def _deliver(self, reading: _Reading) -> None:
        for news in reading.news:
            self._place = _Place(news.seq, reading.end.epoch)
            self._tell(self._subscribers.get(news.what, ()), news)
        if self._place.seq < reading.end.seq:
            self._again = True

    def _tell(self, callbacks: Any, *news: ChangeNews) -> None:
        for callback in tuple(callbacks):
            try:
                callback(*news)
            except Exception:
                logger.exception("a subscriber of the change feed raised")

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._tick()
                self._woken.wait(settings.MCPHOST_FEED_SECONDS)
                self._woken.clear()
            self._leave()
        finally:
            connections.close_all()

    def _tick(self) -> None:
        try:
            if not self.poll():
                return
            self._beat()
            self._prune()
        except Exception:
            logger.exception("the change feed's thread goes on after an error")
            _let_go()

    def _prune(self) -> None:
        """Now and then; again at the next look while there is more than goes at once."""
        now = self._clock()
        if self._pruned_at is None or now - self._pruned_at >= PRUNE_SECONDS:
            self._pruned_at = now
            if prune(timezone.now()) >= PRUNED_AT_ONCE:
                self._pruned_at = None

    def _beat(self) -> None:
        if self._heartbeat is None or settings.MCPHOST_ALONE:
            return
        now = self._clock()
        if self._beaten_at is None or now - self._beaten_at >= BEAT_SECONDS:
            self._heartbeat.beat()
            self._beaten_at = now

    def _leave(self) -> None:
        self._beaten_at = None
        if self._heartbeat is not None and not settings.MCPHOST_ALONE:
            with suppress(Error):  # it will look dead soon enough
                self._heartbeat.leave()


def _let_go() -> None:
    """Drop a connection that failed, so that the next use opens another."""
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        connection.close()


_loops: "weakref.WeakSet[Loop]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in _loops:
        each._forget_threads()


os.register_at_fork(after_in_child=_after_fork)

loop = Loop(heartbeat=heartbeat)
