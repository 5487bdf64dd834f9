"""Wake coroutines when something ends, is done elsewhere, or is read from the change log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from threading import Lock
from typing import Generic, TypeVar

from mcphost.feed.loop import ChangeNews
from mcphost.serving.database import DATABASE_ERRORS


class Waiter:
    """One coroutine that waits on its event loop. A notification is only a hint to look.

    Thousands wait at once: a future and a timer take a fraction of an event's memory.
    """

    __slots__ = ("_loop", "_notified", "_woken")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = False
        self._woken: asyncio.Future[None] | None = None

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for a notification, at most `seconds`; return whether there was one. One since the
        last wait counts."""
        if not self._notified:
            woken = self._woken = self._loop.create_future()
            timer = None if seconds is None else self._loop.call_later(seconds, _resolve, woken)
            try:
                await woken
            finally:
                self._woken = None
                if timer is not None:
                    timer.cancel()
        notified, self._notified = self._notified, False
        return notified

    def notify(self) -> None:
        """Wake the coroutine. From any thread."""
        with suppress(RuntimeError):  # its loop has ended, and the coroutine with it
            # In an empty context: the coroutine's work does not belong to the notifier's.
            self._loop.call_soon_threadsafe(self._wake, context=Context())

    def _wake(self) -> None:
        self._notified = True
        if self._woken is not None:
            _resolve(self._woken)


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Waiters:
    """The waiting coroutines of this process, by key."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[Hashable, set[Waiter]] = {}
        self._until_drain: set[Waiter] = set()

    @contextmanager
    def expecting(self, key: Hashable, *, until_drain: bool = False) -> Iterator[Waiter]:
        """Receive notifications of `key` inside the context, and of the drain if it ends the wait. Enter
        before the first look."""
        waiter = Waiter()
        self.add(key, waiter)
        if until_drain:
            self._until_drain.add(waiter)
        try:
            yield waiter
        finally:
            self.remove(key, waiter)
            self._until_drain.discard(waiter)

    def drain(self) -> None:
        """Notify those whose wait ends with the drain. On the event loop."""
        for waiter in tuple(self._until_drain):
            waiter.notify()

    def add(self, key: Hashable, waiter: Waiter) -> None:
        """Notify `waiter` of `key` until it is removed."""
        with self._lock:
            self._waiting.setdefault(key, set()).add(waiter)

    def remove(self, key: Hashable, waiter: Waiter) -> None:
        with self._lock:
            waiting = self._waiting[key]
            waiting.remove(waiter)
            if not waiting:
                del self._waiting[key]

    def discard(self, key: Hashable, waiter: Waiter) -> None:
        """As `remove`, for a waiter that may have been removed."""
        with self._lock:
            is_registered = waiter in self._waiting.get(key, ())
        if is_registered:
            self.remove(key, waiter)

    def notify(self, key: Hashable) -> None:
        """Wake the coroutines that wait for `key`. From any thread."""
        with self._lock:
            waiting = tuple(self._waiting.get(key, ()))
        for waiter in waiting:
            waiter.notify()

    def changed(self, news: ChangeNews) -> None:
        """Notify the tenant and object of a change. From the change log's thread."""
        if news.tenant is not None:
            self.notify((news.tenant, news.object_id))

    def gap(self) -> None:
        """Notify all, because changes may have been missed. From the change log's thread."""
        with self._lock:
            keys = tuple(self._waiting)
        for key in keys:
            self.notify(key)


waiters = Waiters()
"""Its keys are a tenant's id and an object id of the change log."""


T = TypeVar("T")

RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class Relay(Generic[T]):
    """Passes items from any thread to a coroutine on the event loop, in order.

    However many items there are, the loop is woken once, and there is one task, only while there is
    work. `pause` returns the seconds for which items wait on the loop before they are handled. When
    `handle` raises, it is called again with the same items after half a second, so it must accept
    an item twice. Items before the start and after the stop are dropped.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[T]], Awaitable[None]],
        pause: Callable[[], float] = lambda: 0,
    ) -> None:
        self._handle = handle
        self._pause = pause
        self._lock = Lock()
        self._arrived: list[T] = []
        self._due: list[T] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Pass items on, on the running loop. Does nothing if it has started."""
        with self._lock:
            self._loop = asyncio.get_running_loop()

    async def stop(self) -> None:
        """Cancel the handling of items, wait for its end, and drop those that are left."""
        with self._lock:
            self._loop, self._arrived = None, []
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._task, self._due = None, []

    def put(self, item: T) -> None:
        """Queue `item`. From any thread; returns at once."""
        with self._lock:
            if self._loop is None:
                return
            self._arrived.append(item)
            if len(self._arrived) > 1:
                return
            try:
                # In an empty context: a task started in a tool's context would end with the tool.
                self._loop.call_soon_threadsafe(self._collect, context=Context())
            except RuntimeError:  # the loop was closed, without a stop: Daphne has no lifespan
                self._loop, self._arrived = None, []

    def _collect(self) -> None:
        with self._lock:
            arrived, self._arrived = self._arrived, []
        seconds = self._pause()
        if seconds > 0:
            asyncio.get_running_loop().call_later(seconds, self._take, arrived)
        else:
            self._take(arrived)

    def _take(self, items: Sequence[T]) -> None:
        if self._loop is None:  # it was stopped meanwhile
            return
        self._due.extend(items)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        this = asyncio.current_task()
        try:
            while self._due:
                items, self._due = self._due, []
                try:
                    await self._handle(items)
                except DATABASE_ERRORS as error:
                    log.warning("changes wait for the database: %s", type(error).__name__)
                    await self._again(items)
                except Exception:
                    log.exception("changes could not be handled; trying again")
                    await self._again(items)
        finally:
            if self._task is this:
                self._task = None

    async def _again(self, items: Sequence[T]) -> None:
        self._due[:0] = items
        await asyncio.sleep(RETRY_SECONDS)
