"""From the thread that reads the feed to the event loop: all that came together, in one hop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class Relay(Generic[T]):
    """Hands over items from any thread to a coroutine on the event loop, in the order they came.

    However many there are, the loop is woken once, and there is one task, only while there is
    work. `pause` says how many seconds an item rests on the loop before it is handled. What
    `handle` was given comes again after half a second when it raises: it must be able to take an
    item twice. Before `attach` was called, items are dropped.
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

    def attach(self) -> None:
        """From now on, hand over on the running loop. There is one in a server; tests have more."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            with self._lock:
                self._loop, self._task = loop, None
                self._arrived, self._due = [], []

    def put(self, item: T) -> None:
        """Have `item` handled. From any thread; returns at once."""
        with self._lock:
            if self._loop is None:
                return
            self._arrived.append(item)
            if len(self._arrived) == 1:
                self._wake(self._loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            # In no context: a task that begins in a tool's would be taken for the tool's own, and end
            # with it.
            loop.call_soon_threadsafe(self._collect, context=Context())
        except RuntimeError:  # the loop has ended, and so has everybody who was to be told
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
        self._due.extend(items)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._due:
                items, self._due = self._due, []
                try:
                    await self._handle(items)
                except Exception:
                    log.exception("news could not be dealt with; trying again")
                    self._due[:0] = items
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            if self._task is asyncio.current_task():
                self._task = None
