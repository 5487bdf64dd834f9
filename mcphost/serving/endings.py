"""Waking those in this process who wait for the end of what another of its requests has claimed."""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock


class Listener:
    """One request that waits on its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until it is told, at most so long; what was told since the last wait counts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        self._heard.clear()

    def tell(self) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # its loop has ended: nobody waits there any more
            self._loop.call_soon_threadsafe(self._heard.set)


class Endings:
    """Who waits for the end of what. A hint: whoever is told looks for itself."""

    def __init__(self) -> None:
        self._listeners: dict[Hashable, set[Listener]] = {}
        self._lock = Lock()

    @contextmanager
    def listening(self, key: Hashable) -> Iterator[Listener]:
        """Be told of the ends of `key` from now on. Begin before the first look: nothing is missed."""
        listener = Listener()
        with self._lock:
            self._listeners.setdefault(key, set()).add(listener)
        try:
            yield listener
        finally:
            with self._lock:
                left = self._listeners[key]
                left.remove(listener)
                if not left:
                    del self._listeners[key]

    def tell(self, key: Hashable) -> None:
        """It ended. From any thread."""
        with self._lock:
            told = tuple(self._listeners.get(key, ()))
        for listener in told:
            listener.tell()
