"""Who waits in this process for something to be done elsewhere."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from mcphost.feed.loop import ChangeNews

Awaited = tuple[UUID, str]
"""A tenant, and the name that the feed uses."""


class _Waiter(NamedTuple):
    loop: asyncio.AbstractEventLoop
    news: asyncio.Event


class Waiters:
    """Events, by what they wait for. News is a hint to look again, never the message."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[Awaited, list[_Waiter]] = {}

    @contextmanager
    def expecting(self, awaited: Awaited) -> Iterator[asyncio.Event]:
        """An event that is set at every news of it. On the event loop."""
        waiter = _Waiter(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.setdefault(awaited, []).append(waiter)
        try:
            yield waiter.news
        finally:
            with self._lock:
                self._waiting[awaited].remove(waiter)
                if not self._waiting[awaited]:
                    del self._waiting[awaited]

    def heard(self, news: ChangeNews) -> None:
        """The feed told of something. On the feed's thread."""
        if news.tenant is not None:
            self._wake([(news.tenant, news.object_id)])

    def tell(self, awaited: Awaited) -> None:
        """It was done here. From any thread."""
        self._wake([awaited])

    def heard_nothing(self) -> None:
        """The feed may have missed something: everybody looks again."""
        with self._lock:
            everything = list(self._waiting)
        self._wake(everything)

    def _wake(self, about: list[Awaited]) -> None:
        with self._lock:
            for awaited in about:
                for waiter in self._waiting.get(awaited, ()):
                    _tell(waiter)


def _tell(waiter: _Waiter) -> None:
    with suppress(RuntimeError):  # its loop has ended, and it with that
        # In no context: nothing that comes of it belongs to who told the news.
        waiter.loop.call_soon_threadsafe(waiter.news.set, context=Context())


waiters = Waiters()
