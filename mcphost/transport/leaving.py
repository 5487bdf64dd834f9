"""How a server leaves: with notice, without dropping what was asked, and within a time.

uvicorn closes its listening socket on a signal at once, which resets the connections that the
kernel has accepted and nobody has taken up, and it closes connections on which a request is on its
way. Here the end has phases (`serving.drain`); a signal after the first goes to the last at once.

1. *Notice.* `/readyz` answers 503, everything is served; responses close their connections, so that
   proxies move on.
2. *Drain.* Nobody is listened to any more; what was accepted is served. Listeners end.
3. *Cut.* What has not ended by itself is cancelled, and told so.
"""

import asyncio
import ctypes
import logging
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple, Protocol, cast

from uvicorn import Config, Server

from mcphost.serving import drain

ECHO_SECONDS = 1.0
"""How long another SIGTERM is the same one: sent to a group, `make` passes it on a second time."""
LOOK_SECONDS = 0.05
FRESH_SECONDS = 0.5
"""How long a connection that has not asked for anything yet is waited for."""
CUT_SECONDS = 2.0
"""How long what was cancelled may take to say so, and then to go."""
EXIT_SECONDS = 5.0
"""How long threads of tools may hold on to the process once all is done."""
TURNS = 5
"""Of the event loop, after which what it has accepted has become a connection."""
CLOSE = (b"connection", b"close")
SO_ATTACH_FILTER = 26
BPF_RETURN = 6
"""A packet filter of one instruction: take nothing of it (Linux, socket(7))."""

log = logging.getLogger(__name__)


class Leave(NamedTuple):
    """For how many seconds notice is given, and how long what is under way then may take."""

    notice_seconds: float = 0.0
    drain_seconds: float = 20.0


class Connection(Protocol):
    """A client's connection, as far as leaving is concerned."""

    transport: asyncio.Transport

    @property
    def fresh(self) -> bool:
        """Whether nothing has come on it yet."""

    @property
    def busy(self) -> bool:
        """Whether something has come that is not answered yet, however little."""

    def answer_last(self) -> None:
        """Close when what was asked has been answered."""


class QuietServer(Server):
    """Treats SIGTERM and Ctrl-C as the ordinary way to stop: `serve` then ends with status 0.

    uvicorn would raise the signal again once it has shut down. Ctrl-C gives no notice: whoever
    presses it waits. A second signal waits for nobody, except for the records to be written.
    """

    def __init__(self, config: Config, leave: Leave) -> None:
        super().__init__(config)
        self._leave = leave
        self._told = 0
        self._told_at = 0.0
        self._notice_ends = 0.0
        self._last_resort: threading.Timer | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop, in a process that has nothing else to do."""
        self._last_resort = threading.Timer(EXIT_SECONDS, _end_process)
        self._last_resort.daemon = True
        try:
            super().run(sockets)
        finally:
            self._last_resort.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.should_exit:
            echo = sig == signal.SIGTERM == self._told and now < self._told_at + ECHO_SECONDS
            self.force_exit = self.force_exit or not echo
            return
        self._told, self._told_at = sig, now
        if sig != signal.SIGINT:
            self._notice_ends = now + self._leave.notice_seconds
        self.should_exit = True
        drain.give_notice()

    async def on_tick(self, counter: int) -> bool:
        """Several times a second; True ends the service and begins the drain."""
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
            await self._settle(self._leave.drain_seconds)
            await self._cut()
            await self.lifespan.shutdown()
        finally:
            drain.reset()
            if self._last_resort is not None:
                self._last_resort.start()

    def _connections(self) -> list[Connection]:
        return list(cast("Iterable[Connection]", self.server_state.connections))

    def _ask_to_go(self) -> None:
        """Have every response from now on end its connection."""
        if CLOSE not in self.config.encoded_headers:
            self.config.encoded_headers.append(CLOSE)
            self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
            for connection in self._connections():
                connection.answer_last()

    async def _stop_listening(self, sockets: Iterable[socket.socket]) -> None:
        """Take up what the kernel has accepted, then listen no more: closing would reset it."""
        loop = asyncio.get_running_loop()
        listening = [listener for server in self.servers for listener in server.sockets]
        for listener in listening:
            loop.remove_reader(listener.fileno())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        doors = [listener.dup() for listener in listening]
        for closing in (*self.servers, *sockets):
            cast("socket.socket", closing).close()  # the doors still stand open
        for door in doors:
            with door:
                _let_nobody_in(door)
                waiting = list(_accept_all(door))
            for end in waiting:
                await loop.connect_accepted_socket(self._protocol, end)

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def _settle(self, seconds: float) -> None:
        """Wait until all is answered, closing what is idle; at most so long."""
        began = time.monotonic()
        while self._is_open() and not self.force_exit:
            spent = time.monotonic() - began
            if spent >= seconds:
                return
            self._close_idle(fresh_too=spent >= FRESH_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    def _is_open(self) -> bool:
        return bool(self.server_state.connections or self.server_state.tasks)

    def _close_idle(self, *, fresh_too: bool) -> None:
        idle = {
            connection.transport.get_extra_info("socket").fileno(): connection
            for connection in self._connections()
            if not connection.busy and (fresh_too or not connection.fresh)
        }
        for descriptor in idle.keys() - _readable(idle):
            idle[descriptor].transport.close()

    async def _cut(self) -> None:
        """End what is left: calls by an error that says why, the rest by a hang-up."""
        left = len(self.server_state.tasks)
        if left:
            log.warning("requests did not end in time and are cancelled: %d", left)
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
            self._close_idle(fresh_too=True)
            await asyncio.sleep(LOOK_SECONDS / 5)


def _end_process() -> None:
    """A tool that blocks a thread of asyncio's own would keep the process for ever."""
    log.warning("a thread does not end; the process does")
    os._exit(0)


def _let_nobody_in(door: socket.socket) -> None:
    """Have the kernel overlook whoever knocks from now on, where it can; they will knock again.

    Otherwise somebody may be let in between the last look and the closing of the door.
    """
    if sys.platform == "linux":
        nothing = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RETURN, 0, 0, 0))
        program = struct.pack("HP", 1, ctypes.addressof(nothing))
        with suppress(OSError):
            door.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def _accept_all(door: socket.socket) -> Iterator[socket.socket]:
    door.setblocking(False)
    while True:
        try:
            end, _ = door.accept()
        except OSError:  # none is left, or one that was is gone
            return
        end.setblocking(False)
        yield end


def _readable(descriptors: Iterable[int]) -> set[int]:
    """Those on which something has come that the event loop has not read yet."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(0)}
