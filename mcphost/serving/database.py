"""Run database functions from the event loop, again after a pause where the database was away.

Django's ORM is synchronous here. What the event loop does not find in a cache is read in a small
thread pool of its own, so that neither tools nor the record writer wait behind it.

When the database is unreachable, the thread returns the work unfinished. The coroutine waits
without a thread until the database is back, and runs the work again: a short outage costs latency,
not an error. The number of waiting coroutines and their wait are limited.

A database may also accept a statement and never respond. So serving threads wait for one statement
for only a few seconds, and a request waits for a thread no longer than for the database.
"""

import asyncio
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)
from django.db.backends.signals import connection_created
from psycopg.errors import QueryCanceled

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, writer
from mcphost.feed.loop import loop as feed
from mcphost.observability.availability import Source, availability

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

THREADS = 4
UNAUTHENTICATED_THREADS = 2
DATABASE_ERRORS: Final = (OperationalError, InterfaceError)
"""What the ORM raises when the database cannot be used."""
BUSY_MS: Final = 1000
"""How long a thread waits for an SQLite lock before it returns its work."""
MAX_PAUSE: Final = 0.5
AGAIN_SECONDS: Final = 0.5
STATEMENT_SECONDS: Final = 5
"""The `statement_timeout` of PostgreSQL, so that no statement stays there waiting for a lock."""
ANSWER_SECONDS: Final = 8.0
"""How long a thread waits for PostgreSQL's response, be it only the error of that time-out."""
POOLS: Final = ("mcphost-database", "mcphost-unauthenticated")
"""Name prefixes of the threads of the two pools."""
SERVING: Final = (
    *POOLS,
    "mcphost-feed",
    "mcphost-housekeeping",
    "mcphost-key",
    "mcphost-live",
    "mcphost-probe",
    "mcphost-summaries",
    "mcphost-writer",
)
"""Name prefixes of the threads that must not wait for ever: the process's exit waits for them."""


class DatabaseAwayError(OperationalError):
    """The database did not come back in time, or too many requests wait for it."""


class _Pool:
    """A pool of database threads, and the number of requests that wait without a thread."""

    def __init__(self, threads: int, name: str) -> None:
        self.threads = ThreadPoolExecutor(threads, name)
        self.waiting = 0

    @contextmanager
    def count_waiter(self) -> Iterator[None]:
        """Count one more waiting request in the context.

        Raises DatabaseAwayError if too many wait.
        """
        if self.waiting >= settings.MCPHOST_DATABASE_WAITERS:
            raise DatabaseAwayError("too many requests wait for the database")
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1


class _Work(Generic[T]):
    """A function to run in a thread. `begun`: it may have taken effect, even if it raised."""

    __slots__ = ("_connect", "_function", "begun")

    def __init__(self, function: Callable[[], T], *, connect: bool = False) -> None:
        self._function = function
        self._connect = connect
        self.begun = False

    def __call__(self) -> T:
        self.begun = False
        if availability.lacks(Source.CONNECTION):  # lost while queued: connecting may take long
            raise DatabaseAwayError("the database is unreachable")
        connection = connections[DEFAULT_DB_ALIAS]
        try:
            close_old_connections()
            if self._connect:
                connection.cursor().close()
            self.begun = True
            return self._function()
        except DATABASE_ERRORS as error:
            report(error)
            if connection.vendor == "sqlite" and "locked" in str(error):
                self.begun = False  # SQLite has refused to begin
            raise
        finally:
            close_old_connections()


def report(error: Exception) -> None:
    """Report that the database is unreachable, because of an error in this thread.

    Some errors concern only this thread, and its work may succeed later: a statement was cancelled
    by its time-out, or PostgreSQL had no connection left while the change log is read over its own.
    """
    connected = connections[DEFAULT_DB_ALIAS].connection is not None
    if isinstance(error.__cause__, QueryCanceled) or (not connected and feed.is_read()):
        return
    availability.lost(Source.CONNECTION, type(error).__name__)


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` in the pool and raise what it raises.

    While the database is unreachable, wait up to MCPHOST_DATABASE_WAIT_SECONDS and run `function`
    again. It must be safe to run twice, because a commit may succeed although its connection is
    lost. Raises the database's error once the time is over, DatabaseAwayError if too many requests
    wait.
    """
    return await _done(_pool, partial(function, *args, **kwargs))


async def in_database_once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_database`, but run `function` again only if it cannot have taken effect."""
    ends = _ends()
    work = _Work(partial(function, *args, **kwargs), connect=True)
    failed: Exception | None = None
    if not availability.unreachable:
        try:
            return await _run_in_thread(_pool, work, ends)
        except DATABASE_ERRORS as error:
            if work.begun:
                raise
            failed = error
    return await _done_later(_pool, work, ends, failed, once=True)


async def in_database_unauthenticated(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """As `in_database` for an unauthenticated caller, in a pool of its own.

    Any client can invent thousands of tokens that have to be looked up. Authenticated callers and
    revocations do not wait behind them.
    """
    return await _done(_unauthenticated, partial(function, *args, **kwargs))


async def in_database_unbounded(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `in_database`, but wait without a limit: for open streams, and work without a client."""
    work = _Work(partial(function, *args, **kwargs))
    pause = 0.0
    while True:
        await availability.wait()
        try:
            return await _run_in_thread(_pool, work)
        except DATABASE_ERRORS:
            await asyncio.sleep(pause)
            pause = _longer(pause)


class _Batch(Generic[K, T]):
    """Keys that are read together, and the read."""

    __slots__ = ("keys", "reading")

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.reading: asyncio.Task[Mapping[K, T]]


class BatchReader(Generic[K, T]):
    """Reads rows by key as `in_database` does. Keys that are asked for before a thread has begun the
    read are read together, so that many requests at once cost few statements.

    `read` runs in a thread of the pool, always after all its keys were asked for.
    """

    def __init__(self, read: Callable[[Collection[K]], Mapping[K, T]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._open: _Batch[K, T] | None = None

    async def get(self, key: K) -> T | None:
        """The row of that key, if any. Raises what `in_database` raises."""
        if availability.unreachable:  # each waits for itself, and is counted
            return (await in_database(self._read, (key,))).get(key)
        with self._lock:
            batch = self._open
            if batch is None:
                batch = self._open = self._opened()
            batch.keys.add(key)
        return (await asyncio.shield(batch.reading)).get(key)

    def _opened(self) -> _Batch[K, T]:
        batch: _Batch[K, T] = _Batch()
        # In an empty context: the read belongs to no single request.
        batch.reading = asyncio.get_running_loop().create_task(
            in_database(self._read_batch, batch), context=Context()
        )
        batch.reading.add_done_callback(lambda reading: self._ended(batch))
        return batch

    def _read_batch(self, batch: _Batch[K, T]) -> Mapping[K, T]:
        self._close(batch)
        return self._read(batch.keys)

    def _ended(self, batch: _Batch[K, T]) -> None:
        self._close(batch)
        if not batch.reading.cancelled():
            batch.reading.exception()  # its requests may all have been cancelled

    def _close(self, batch: _Batch[K, T]) -> None:
        with self._lock:
            if self._open is batch:
                self._open = None


async def until_there() -> None:
    """Wait for the database if it is away, before starting work that needs it.

    Raises DatabaseAwayError if that takes too long, or too many requests wait.
    """
    with _pool.count_waiter():
        if not await availability.wait(settings.MCPHOST_DATABASE_WAIT_SECONDS):
            raise DatabaseAwayError("the database has not come back in time")


def waiting() -> int:
    """The number of requests that wait for the database."""
    return _pool.waiting + _unauthenticated.waiting


async def _done(pool: _Pool, function: Callable[[], T]) -> T:
    ends = _ends()
    work = _Work(function)
    failed: Exception | None = None
    if not availability.unreachable:
        try:
            return await _run_in_thread(pool, work, ends)
        except DATABASE_ERRORS as error:
            failed = error
    return await _done_later(pool, work, ends, failed)


async def _done_later(
    pool: _Pool, work: _Work[T], ends: float, failed: Exception | None, *, once: bool = False
) -> T:
    """Run the work as soon as the database is back; `failed` is its first error, if any."""
    loop = asyncio.get_running_loop()
    pause = 0.0
    with pool.count_waiter():
        while (remaining := ends - loop.time()) > 0 and await availability.wait(remaining):
            try:
                return await _run_in_thread(pool, work, ends)
            except DATABASE_ERRORS as error:
                if once and work.begun:
                    raise
                failed = error
            await asyncio.sleep(pause)
            pause = _longer(pause)
    raise failed or DatabaseAwayError("the database has not come back in time")


async def _run_in_thread(pool: _Pool, work: _Work[T], ends: float | None = None) -> T:
    """Run the work in a thread of the pool.

    With `ends`, in the loop's time, wait until then, but at least ANSWER_SECONDS. Work that has no
    thread by then is not started. Raises DatabaseAwayError after that time.
    """
    loop = asyncio.get_running_loop()
    bound = asyncio.timeout_at(None if ends is None else max(ends, loop.time() + ANSWER_SECONDS))
    try:
        async with bound:
            return await loop.run_in_executor(pool.threads, work)
    except TimeoutError:
        if not bound.expired():
            raise
        raise DatabaseAwayError("the database has not answered in time") from None


def _ends() -> float:
    return asyncio.get_running_loop().time() + settings.MCPHOST_DATABASE_WAIT_SECONDS


def _longer(pause: float) -> float:
    """The next pause between attempts that fail although the database can be reached."""
    return min(2 * pause + 0.05, MAX_PAUSE)


def _give_back_soon(sender: Any, connection: Any, **_: Any) -> None:
    """Shorten the pool threads' wait for an SQLite lock: callers can wait without a thread."""
    if connection.vendor == "sqlite" and threading.current_thread().name.startswith(POOLS):
        connection.connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def _without_compiling(sender: Any, connection: Any, **_: Any) -> None:
    """Let PostgreSQL execute statements as they are: its JIT compiler takes 20 to 100 ms for a statement
    that it only believes to be expensive, such as each one of a connection that may not scan tables."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET jit = off")


def _wait_within_bounds(sender: Any, connection: Any, **_: Any) -> None:
    """Limit the serving threads' wait for a response of PostgreSQL."""
    if connection.vendor == "postgresql" and threading.current_thread().name.startswith(SERVING):
        link = connection.connection
        link.wait = partial(link.wait, timeout=ANSWER_SECONDS)
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")


connection_created.connect(_give_back_soon)
connection_created.connect(_without_compiling)
connection_created.connect(_wait_within_bounds)
_pool = _Pool(THREADS, POOLS[0])
_unauthenticated = _Pool(UNAUTHENTICATED_THREADS, POOLS[1])


async def commit_patiently(condition: Condition, records: Sequence[Record] = ()) -> bool:
    """Commit what the owner of a call or a task writes, as soon as the database can be reached; return
    whether the condition took hold. Raises RecordRefusedError, and RecordLostError in a process that stops."""
    while True:
        await availability.wait()
        try:
            return await writer.submit_if(condition, records)
        except RecordLostError:
            if not writer.is_running():
                raise
        await asyncio.sleep(AGAIN_SECONDS)
