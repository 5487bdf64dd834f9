"""WebSockets of our pages: small messages, pings, and an end for readers that read nothing."""

import asyncio
import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

PREFIX = b"/admin/"
"""Only below this path a request may become a WebSocket. Elsewhere it is an ordinary request."""
MESSAGE_BYTES = 1024
"""The most that a client may send at once: our pages send nothing."""
PING_SECONDS = 20.0
"""How often a client is pinged, and how long it may take to answer."""
CLOSE_SECONDS = 5.0
"""How long a connection may take to close before it is aborted."""

log = logging.getLogger(__name__)
log.setLevel(logging.WARNING)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, with what `graceful_shutdown` needs of a connection.

    uvicorn waits for ever for a reader that reads nothing, also when it closes the connection.
    """

    stalled_seconds = 30.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Theirs report each connection, with the filters in its address.
        self.logger = self.conn.logger = log
        self._stalled: asyncio.TimerHandle | None = None

    @property
    def fresh(self) -> bool:
        return False

    @property
    def busy(self) -> bool:
        """True: the application ends its sockets when the drain begins."""
        return True

    @property
    def answered_at(self) -> float:
        return 0.0

    def answer_last(self) -> None:
        """Do nothing: a socket ends with its application."""

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_in(self.stalled_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._abort_in(CLOSE_SECONDS)

    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        super().on_task_complete(task)
        if not self.disconnected:
            self._abort_in(CLOSE_SECONDS + self.close_timeout)

    def _abort_in(self, seconds: float) -> None:
        self._stop_timer()
        self._stalled = self.loop.call_later(seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
