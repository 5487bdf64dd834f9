"""One open socket: its bounded queue of messages, and the code with which it ends."""

import asyncio
from collections import deque
from enum import IntEnum

from mcphost.console.live.rights import LiveReader
from mcphost.console.live.views import LiveView

QUEUED = 4
"""Messages that wait for a slow reader. With one more, its socket is closed."""


class CloseCode(IntEnum):
    """Why a socket was closed, as its client receives it."""

    UNEXPECTED = 1008  # the client sent something: it has nothing to say
    RESTART = 1012  # the process stops: connect again, to another one
    TRY_LATER = 1013  # the client read too slowly, or the database is away
    NO_ACCESS = 4403  # the session has ended, or the right to read


class LiveSocket:
    """A reader of a live list. Use it on the event loop only."""

    __slots__ = ("_texts", "_waiter", "code", "view", "viewer")

    def __init__(self, viewer: LiveReader, view: LiveView) -> None:
        self.viewer = viewer
        self.view = view
        self.code: CloseCode | None = None
        self._texts: deque[str] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, text: str) -> None:
        """Queue a message; end the socket if its reader is too slow."""
        if len(self._texts) >= QUEUED:
            self.end(CloseCode.TRY_LATER)
        elif self.code is None:
            self._texts.append(text)
            self._wake()

    def end(self, code: CloseCode) -> None:
        """End the socket; what it has not sent is dropped."""
        if self.code is None:
            self.code = code
            self._texts.clear()
            self._wake()

    async def message(self) -> str | None:
        """Wait for the next message; None once the socket has ended. For one task."""
        while not self._texts and self.code is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._texts.popleft() if self._texts else None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
