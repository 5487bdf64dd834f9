"""The response to an HTTP request: JSON, or an event stream once something must be streamed."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from mcphost.observability import counters
from mcphost.protocol import sse

Send = Callable[[dict[str, Any]], Awaitable[None]]
RawHeaders = Sequence[tuple[bytes, bytes]]

JSON_HEADERS: RawHeaders = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
STREAM_HEADERS: RawHeaders = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Timer(Protocol):
    """A timer that can be cancelled, once or more."""

    def cancel(self) -> None: ...


class StreamLimits(NamedTuple):
    """Seconds before a silent call becomes a stream, seconds between comments on a silent stream,
    and how many bytes a reader may leave unread before it is cut."""

    stream_after: float
    comment_every: float
    unread: int


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders = ()) -> None:
    """Send a response with a JSON body."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*JSON_HEADERS, (b"content-length", b"%d" % len(body)), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, headers: RawHeaders = ()) -> None:
    """Send a response without a body."""
    length = () if status == 204 else ((b"content-length", b"0"),)
    await send({"type": "http.response.start", "status": status, "headers": [*length, *headers]})
    await send({"type": "http.response.body", "body": b""})


class Responder:
    """The response to one request (spec: basic/transports/streamable-http, Receiving Messages).

    It is JSON unless something must be streamed: the first notification, or `open`, turns it into
    an event stream, whose last event is then the JSON-RPC response. Nothing is sent after that.
    `cut` is called when the reader is too slow; subclasses may override it. `_timer` opens the
    stream of a silent call, where there is one.
    """

    _ended = False
    _unread = 0
    _overrun = False
    _pump: asyncio.Task[None] | None = None
    _timer: Timer | None = None

    def __init__(self, send: Send, limits: StreamLimits, headers: RawHeaders) -> None:
        self._send = send
        self._limits = limits
        self._headers = headers

    def cut(self) -> None:
        """Drop a reader that is too slow."""
        self.abandon()

    @property
    def closed(self) -> bool:
        return self._ended

    @property
    def streaming(self) -> bool:
        return self._pump is not None

    def open(self) -> None:
        """Turn the response into an event stream, unless it is one already or has ended."""
        if self._pump is None and not self._ended:
            self._queue: deque[bytes] = deque()
            self._wake = asyncio.Event()
            self._pump = asyncio.get_running_loop().create_task(self._write_stream())
            counters.streams_open.add()
            self._pump.add_done_callback(_count_out)

    def send(self, message: bytes) -> None:
        """Stream one notification."""
        if not self._ended:
            self.open()
            self._push(sse.event(message))

    async def finish(self, status: int, body: bytes, headers: RawHeaders = ()) -> None:
        """Send the JSON-RPC response and end; on a stream the status has been sent already."""
        if self._pump is None:
            self.close()
            await send_json(self._send, status, body, [*self._headers, *headers])
            return
        self._push(sse.event(body))
        self.close()
        await self._pump

    def close(self) -> None:
        """Accept no more frames. Queued ones are still sent, unless the pump is cancelled."""
        self._ended = True
        if self._pump is not None:
            self._wake.set()
        if self._timer is not None:
            self._timer.cancel()

    def abandon(self) -> None:
        """Drop everything: the client has disconnected."""
        self.close()
        if self._pump is not None:
            self._pump.cancel()

    def _push(self, frame: bytes) -> None:
        self._queue.append(frame)
        self._unread += len(frame)
        self._wake.set()
        if self._unread > self._limits.unread and len(self._queue) > 1 and not self._overrun:
            self._overrun = True
            counters.streams_cut.add()
            self.cut()

    async def _write_stream(self) -> None:
        headers = [*STREAM_HEADERS, *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            while self._queue:
                frames = b"".join(self._queue)
                self._queue.clear()
                await self._body(frames, more=True)
                self._unread -= len(frames)
            if self._ended and not self._queue:
                break
            await self._silence()
        await self._body(b"", more=False)

    async def _silence(self) -> None:
        self._wake.clear()
        if self._queue or self._ended:
            return
        try:
            async with asyncio.timeout(self._limits.comment_every):
                await self._wake.wait()
        except TimeoutError:
            await self._body(sse.comment(), more=True)

    async def _body(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _count_out(pump: "asyncio.Task[None]") -> None:
    counters.streams_open.add(-1)
