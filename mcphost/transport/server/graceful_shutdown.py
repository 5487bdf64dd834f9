"""Graceful shutdown: with notice, without dropping accepted requests, and within a time limit.

On a signal uvicorn closes its listening socket at once. That resets connections that the kernel has
accepted and uvicorn has not; it also closes connections on which a request is arriving. Here the
shutdown has phases (`serving.shutdown`); a second signal starts the last phase at once.

1. *Notice.* `/readyz` answers 503, everything is served; responses close their connections, so that
   proxies use another server.
2. *Drain.* No new connections; accepted requests are served. Listen and GET streams end. Rounds of
   tasks, which have no connection, go on to the end of their step.
3. *Cut.* Requests that have not ended by themselves are cancelled with an error, rounds of tasks are
   cancelled and left to other processes.
"""

import asyncio
import logging
import math
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple, Protocol, cast

from uvicorn import Config, Server

from mcphost.serving import shutdown as drain
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.serving.execution.released_rounds import released_rounds

ECHO_SECONDS = 1.0
"""Another SIGTERM within this time is the same one: `make` passes on one sent to the group."""
POLL_SECONDS = 0.05
FRESH_SECONDS = 2.0
"""How long to wait for the first request on a new connection: a busy client opens many before it
writes on the first one, and does not send a request again that was reset."""
QUIET_SECONDS = 1.0
"""How long a kept connection must have been idle before the drain closes it, and how long responses must
have closed theirs. Proxies use the last connection first: its next request may already be on its way, and a
POST that meets a close fails. Once that one is closed, it is the turn of those that were idle for long."""
CUT_SECONDS = 2.0
"""Limit of each step of the cut: cancelled requests send their errors, then connections close."""
EXIT_SECONDS = 5.0
"""How long tools' threads may keep the process alive after the shutdown."""
TURNS = 5
"""Iterations of the event loop until a socket that it has accepted is a connection."""
CLOSE = (b"connection", b"close")

log = logging.getLogger(__name__)


class ShutdownTimes(NamedTuple):
    """Seconds of notice, and seconds that in-progress requests may take after it."""

    notice_seconds: float = 0.0
    drain_seconds: float = 20.0


class HttpConnection(Protocol):
    """A client's connection: what the shutdown needs of it."""

    transport: asyncio.Transport

    @property
    def fresh(self) -> bool:
        """Whether nothing has been received on it yet."""

    @property
    def busy(self) -> bool:
        """Whether some part of an unanswered request has been received."""

    @property
    def answered_at(self) -> float:
        """When the last response was complete, on the event loop's clock."""

    def answer_last(self) -> None:
        """Make a response that has not begun the last one on the connection."""


class GracefulServer(Server):
    """Treats SIGTERM and Ctrl-C as the ordinary way to stop: `serve` then ends with status 0.

    uvicorn would raise the signal again after its shutdown. Ctrl-C skips the notice, because the
    user is waiting. After a second signal only the audit records are still written.
    """

    def __init__(self, config: Config, shutdown_times: ShutdownTimes) -> None:
        super().__init__(config)
        self._shutdown_times = shutdown_times
        self._signal = 0
        self._signal_at = 0.0
        self._notice_ends = 0.0
        self._asked_to_go_at = math.inf
        self._last_resort: threading.Timer | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal arrives, in a process that runs nothing else."""
        self._last_resort = threading.Timer(EXIT_SECONDS, _end_process)
        self._last_resort.daemon = True
        try:
            super().run(sockets)
        finally:
            self._last_resort.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.should_exit:
            echo = sig == signal.SIGTERM == self._signal and now < self._signal_at + ECHO_SECONDS
            self.force_exit = self.force_exit or not echo
            return
        self._signal, self._signal_at = sig, now
        if sig != signal.SIGINT:
            self._notice_ends = now + self._shutdown_times.notice_seconds
        self.should_exit = True
        drain.give_notice()

    async def on_tick(self, counter: int) -> bool:
        """Called several times a second; True ends the main loop and begins the drain."""
        await super().on_tick(counter)
        if not self.should_exit:
            return False
        self._ask_to_go()
        return self.force_exit or time.monotonic() >= self._notice_ends

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            drain.begin()
            self._ask_to_go()
            await self._stop_listening(sockets or ())
            await self._settle(self._shutdown_times.drain_seconds)
            await self._cut()
            await self.lifespan.shutdown()
        finally:
            drain.reset()
            if self._last_resort is not None:
                self._last_resort.start()

    def _connections(self) -> list[HttpConnection]:
        return list(cast("Iterable[HttpConnection]", self.server_state.connections))

    def _ask_to_go(self) -> None:
        """Make every response from now on close its connection."""
        if CLOSE not in self.config.encoded_headers:
            self._asked_to_go_at = asyncio.get_running_loop().time()
            self.config.encoded_headers.append(CLOSE)
            self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
            for connection in self._connections():
                connection.answer_last()

    async def _stop_listening(self, sockets: Iterable[socket.socket]) -> None:
        """Accept what is in the kernel's queue, then stop listening: closing would reset it."""
        loop = asyncio.get_running_loop()
        listening = [listener for server in self.servers for listener in server.sockets]
        for listener in listening:
            loop.remove_reader(listener.fileno())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        doors = [listener.dup() for listener in listening]
        for closing in (*self.servers, *sockets):
            cast("socket.socket", closing).close()  # the duplicates are still listening
        for door in doors:
            waiting = []
            door.setblocking(False)
            # Until the queue is empty, or its next connection was aborted.
            with door, suppress(OSError):
                while True:
                    end, _ = door.accept()
                    end.setblocking(False)
                    waiting.append(end)
            for end in waiting:
                await loop.connect_accepted_socket(self._protocol, end)

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def _settle(self, seconds: float) -> None:
        """Wait at most `seconds` until all requests are answered and no round of a task runs; close
        idle connections."""
        began = time.monotonic()
        while self._is_open() and not self.force_exit:
            spent = time.monotonic() - began
            if spent >= seconds:
                return
            self._close_idle(QUIET_SECONDS, fresh_too=spent >= FRESH_SECONDS)
            await asyncio.sleep(POLL_SECONDS)

    def _is_open(self) -> bool:
        rounds = len(running_tasks) + len(released_rounds)
        return bool(self.server_state.connections or self.server_state.tasks or rounds)

    def _close_idle(self, quiet_seconds: float, *, fresh_too: bool) -> None:
        """Close connections that have been idle for so long, and new ones only if `fresh_too`."""
        limit = asyncio.get_running_loop().time() - quiet_seconds
        idle = {
            connection.transport.get_extra_info("socket").fileno(): connection
            for connection in self._connections()
            if not connection.busy
            and (
                fresh_too
                if connection.fresh
                else max(connection.answered_at, self._asked_to_go_at) <= limit
            )
        }
        # Not those with received data that the event loop has not read yet.
        poll = select.poll()
        for descriptor in idle:
            poll.register(descriptor, select.POLLIN)
        readable = {descriptor for descriptor, _ in poll.poll(0)}
        for descriptor in idle.keys() - readable:
            idle[descriptor].transport.close()

    async def _cut(self) -> None:
        """End what is left: calls with an error that says why, the rest by closing connections."""
        remaining = len(self.server_state.tasks)
        if remaining:
            log.warning("drain ended: cancelling unfinished requests: %d", remaining)
        if len(running_tasks):
            log.warning("drain ended: cutting rounds of tasks: %d", len(running_tasks))
        drain.cut()
        await self._await_end()
        for connection in self._connections():
            connection.transport.abort()
        await self._await_end()
        for task in tuple(self.server_state.tasks):
            task.cancel("the server stopped")
        await self._await_end()

    async def _await_end(self) -> None:
        ends = time.monotonic() + CUT_SECONDS
        while self._is_open() and time.monotonic() < ends:
            self._close_idle(0, fresh_too=True)
            await asyncio.sleep(POLL_SECONDS / 5)


def _end_process() -> None:
    """Exit although a tool still blocks a thread of asyncio's executor."""
    log.warning("a thread is still running after the shutdown; exiting anyway")
    os._exit(0)
