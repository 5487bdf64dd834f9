"""uvicorn with time-outs for clients that send a request, or read the response, too slowly."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from enum import Enum
from typing import Any, NamedTuple, cast

from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mcphost.transport.server.graceful_shutdown import GracefulServer, ShutdownTimes
from mcphost.transport.server.websockets import (
    MESSAGE_BYTES,
    PING_SECONDS,
    PREFIX,
    WebSocketProtocol,
)

SHUTDOWN_TIMES = ShutdownTimes()
HEADER_BYTES = 64 * 1024
"""The most bytes of request line and headers, and of headers or trailers that are still incomplete.
The parser has no limit, and copies all earlier parts whenever another part arrives."""
_LINE_BYTES = 4
"""Bytes of a header besides its name and value: the colon, a space and the end of the line."""
TOO_LARGE = "The headers are too large."


class HeadersTooLargeError(Exception):
    """The headers are too large. Raised inside the parser, to stop it."""


class ClientTimeouts(NamedTuple):
    """Time-outs in seconds: for headers, for a body, for a reader that reads nothing, and for the
    next request on a connection."""

    header_seconds: float = 10.0
    body_seconds: float = 40.0
    stalled_seconds: float = 30.0
    idle_seconds: int = 75


class Cork:
    """A transport that combines the writes of one iteration of the event loop into one.

    uvicorn writes a response's headers and its body separately: two system calls and two packets.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._chunks: list[bytes] = []
        self._written = 0

    @property
    def plain(self) -> asyncio.Transport:
        """The transport itself."""
        return self._transport

    @property
    def sent_bytes(self) -> int:
        """How many bytes have been handed to the kernel."""
        return self._written - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if not self._chunks:
            self._loop.call_soon(self.flush)
        self._chunks.append(data)

    def flush(self) -> None:
        chunks, self._chunks = self._chunks, []
        if chunks and not self._transport.is_closing():
            data = b"".join(chunks)
            self._written += len(data)
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Awaited(Enum):
    """The part of a request that has not arrived yet."""

    HEADERS = "headers"
    BODY = "body"


class Pipeline(list[Any]):
    """The requests of a connection that wait for the one before: nearly always none.

    An empty deque takes 600 bytes, and there is one for each of thousands of silent streams.
    """

    def appendleft(self, waiting: Any) -> None:
        self.insert(0, waiting)


class WriteFlow(FlowControl):
    """Flow control that needs no event until a reader is slow."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        if self.write_paused:
            await self._is_writable_event.wait()

    def pause_writing(self) -> None:
        if not self.write_paused:
            self._is_writable_event = asyncio.Event()
        super().pause_writing()


class BodyEvent:
    """An `asyncio.Event` for the one task that reads a request's body and waits for a disconnect.

    The queue of waiters in asyncio's own takes 600 bytes.
    """

    __slots__ = ("_set", "_waiter")

    def __init__(self) -> None:
        self._set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        self._set = False

    def wait(self) -> "Awaitable[None]":
        """Wait until it is set. Cancelled with its task."""
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
            if self._set:
                self._waiter.set_result(None)
        return self._waiter


class TimeoutHttpProtocol(HttpToolsProtocol):
    """HTTP protocol with time-outs: closes the connection of a client that is too slow.

    uvicorn itself waits for ever for the headers of a connection's first request, for the rest of
    headers or of a body half sent, and for a reader that reads nothing. The endpoint has a shorter
    time-out for bodies and answers with an error; the one here is for bodies that no code reads.
    """

    header_seconds, body_seconds, stalled_seconds, idle_seconds = ClientTimeouts()

    # Slots: with more attributes than uvicorn's, instances could not share the keys of `__dict__`.
    __slots__ = (
        "_at_most",
        "_awaited",
        "_cork",
        "_deadline",
        "_pending",
        "_stalled",
        "_steps",
        "_too_large",
        "_upgraded",
        "_upgrades",
        "_watched",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pipeline = cast("deque[Any]", Pipeline())
        self._awaited: Awaited | None = Awaited.HEADERS
        self._watched: Awaited | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._steps = 0
        self._pending = 0
        self._at_most = 0
        self._too_large = False
        self._upgraded = False
        self._upgrades: bool | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = WriteFlow(transport)
        self._cork = Cork(transport, self.loop)
        self.transport = cast("asyncio.Transport", self._cork)
        self._watch()

    def data_received(self, data: bytes) -> None:
        steps = self._steps
        self._at_most += len(data)
        super().data_received(data)
        if self._upgraded:
            return
        if self._awaited is not Awaited.HEADERS:
            self._at_most = 0
        self._pending = 0 if self._steps != steps else self._pending + len(data)
        if self._pending > HEADER_BYTES:  # headers or trailers that are too large already
            self._too_large = True
            self.send_400_response(TOO_LARGE)
        # Data that began no request, such as an empty line, may have stopped uvicorn's timer.
        may_be_idle = self._awaited is None and self.timeout_keep_alive_task is None
        if may_be_idle and self._all_answered():
            self._awaited = Awaited.HEADERS
        if self._awaited is not self._watched:
            self._watch()

    def _should_upgrade(self) -> bool:
        """Return whether the request becomes a WebSocket: only of our pages, and not while an earlier
        request of the connection is unanswered."""
        if self._upgrades is None:
            is_page = self.url.startswith(PREFIX) and self._all_answered()
            self._upgrades = is_page and super()._should_upgrade()
        return self._upgrades

    def handle_websocket_upgrade(self) -> None:
        self._upgraded = True
        self._awaited = None
        self._watch()
        _cancel(self._stalled)
        self._cork.flush()
        self.transport = self._cork.plain  # the new protocol combines its writes itself
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        self._awaited = Awaited.HEADERS
        self._steps += 1
        self._upgrades = None
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._at_most > HEADER_BYTES:  # else too few bytes have been received to exceed it
            fields = sum(len(name) + len(value) + _LINE_BYTES for name, value in self.headers)
            if len(self.url) + fields > HEADER_BYTES:
                self._too_large = True
                raise HeadersTooLargeError
        self._awaited = Awaited.BODY
        self._steps += 1
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # not so for trailers
            self.cycle.message_event = cast("asyncio.Event", BodyEvent())
        # The parser reports the trailers of a chunked body like headers. They must not be added to
        # the headers that the application has (RFC 9110 section 6.5.1).
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._steps += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._awaited = None
        self._steps += 1
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._awaited = None
        self._watch()
        _cancel(self._stalled)
        super().connection_lost(exc)

    @property
    def fresh(self) -> bool:
        """Whether nothing has been received yet."""
        return self.scope is None

    @property
    def busy(self) -> bool:
        """Whether some part of an unanswered request has been received."""
        cycle: RequestResponseCycle | None = self.cycle
        begun = not self.fresh and (cycle is None or cycle.scope is not self.scope)
        return begun or not self._all_answered()

    @property
    def answered_at(self) -> float:
        """When the last response was complete, on the event loop's clock."""
        timer = self.timeout_keep_alive_task
        return 0.0 if timer is None else timer.when() - self.timeout_keep_alive

    def answer_last(self) -> None:
        """Make a response that has not begun the last one on the connection.

        One that has begun says that the connection stays open, so it does: a proxy may send the next
        request the moment it has the end of the response.
        """
        if not self._all_answered() and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Answer the arriving request with 400, and close.

        Only close if its response has begun, or if an earlier request of the connection is still
        unanswered: the client would take the 400 for that request's response.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle.scope is self.scope:
            unanswered = not cycle.response_started and not self.pipeline
        else:
            unanswered = self._all_answered()
        if unanswered:
            super().send_400_response(TOO_LARGE if self._too_large else msg)
        else:
            self.transport.close()

    def _all_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _watch(self) -> None:
        """Set the deadline: for headers from their first byte (for the first request: from the
        connection), for the body from the last byte of the headers."""
        _cancel(self._deadline)
        self._deadline = None  # a cancelled timer may keep a reference to this object
        self._watched = self._awaited
        if self._awaited is not None:
            of_body = self._awaited is Awaited.BODY
            seconds = self.body_seconds if of_body else self.header_seconds
            self._deadline = self.loop.call_later(seconds, self._be_late)

    def _be_late(self) -> None:
        if self.pipeline:  # uvicorn has paused reading until earlier requests are answered
            self._watch()
        else:
            self.transport.close()

    def _watch_reader(self) -> None:
        self._stalled = self.loop.call_later(
            self.stalled_seconds, self._check_reader, self._cork.sent_bytes
        )

    def _check_reader(self, sent_before: int) -> None:
        """Abort if the client has read nothing since: closing would wait for it for ever."""
        if self._cork.sent_bytes > sent_before:
            self._watch_reader()
        else:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def protocol_with(patience: ClientTimeouts) -> type[TimeoutHttpProtocol]:
    """The HTTP protocol class with its limits set; uvicorn makes one instance per connection."""
    return type("Http", (TimeoutHttpProtocol,), patience._asdict())


def build(
    application: Any,
    host: str,
    port: int,
    patience: ClientTimeouts,
    shutdown_times: ShutdownTimes = SHUTDOWN_TIMES,
    proxies: str = "",
) -> GracefulServer:
    """Make the uvicorn server of `application`, without uvicorn's access log and log config.

    `proxies` are the proxies whose `X-Forwarded-*` headers are trusted (addresses or networks,
    separated by commas). By default none is, because a client could claim any address.
    """
    config = Config(
        application,
        host=host,
        port=port,
        http=protocol_with(patience),
        ws=WebSocketProtocol,
        ws_max_size=MESSAGE_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        ws_per_message_deflate=False,  # 64 KiB for each connection
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        date_header=True,
        timeout_keep_alive=patience.idle_seconds,
    )
    return GracefulServer(config, shutdown_times)
