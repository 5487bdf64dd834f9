"""Responses to POSTs of sessions: JSON if there is only a result, else a stream of events with ids.

The calls run independently of the HTTP request. This module sends what they write while the client
is connected; after a disconnect the client gets the rest by GET.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from mcphost.protocol import sse
from mcphost.serving.legacy.call import JsonAnswer, SessionCall
from mcphost.serving.legacy.reconnection import RETRY_MS
from mcphost.transport import errors
from mcphost.transport.long_stream import LongStream
from mcphost.transport.options import options
from mcphost.transport.request import Receive
from mcphost.transport.request_cycle import DISCONNECTED, WhenSlow
from mcphost.transport.response import RawHeaders, Send, send_empty, send_json


class HttpWire(NamedTuple):
    """The two directions of one HTTP exchange, and the headers of every response on it. `polling`:
    the client's revision has streams that begin with an empty event and `retry`."""

    receive: Receive
    send: Send
    headers: RawHeaders
    polling: bool = False

    def stream(self) -> LongStream:
        """A streamed response. Make it in the task that waits for its end."""
        return LongStream(self.receive, self.send, options().stream, self.headers)


class StreamReader:
    """Implements `serving.ports.Reader` with the response to one request. It shows `parts` streams.

    It ends when all of them have ended, or when the client is told to resume later.
    """

    __slots__ = ("_last", "_parts", "_polling", "_stream")

    def __init__(self, stream: LongStream, polling: bool, parts: int = 1) -> None:
        self._stream = stream
        self._polling = polling
        self._parts = parts
        self._last = b""

    @property
    def closed(self) -> bool:
        return self._stream.closed or self._stream.lost or not self._parts

    def write(self, event_id: str, message: bytes) -> None:
        begins = self._polling and not message
        self._stream.push(sse.event(message, event_id, RETRY_MS if begins else None))

    def end(self, retry_ms: int | None = None) -> None:
        self._parts = max(self._parts - 1, 0) if retry_ms is None else 0
        if retry_ms is not None and self._polling:
            self._last = sse.retry(retry_ms)
        if not self._parts:
            self._stream.end_stay()

    def last(self) -> bytes:
        """The last frame, once it has ended."""
        return self._last


class Shown(NamedTuple):
    """A response that shows the streams of calls. It is awaited by the endpoint itself: the code
    that began the calls has returned, so a waiting call does not keep its variables."""

    stream: LongStream
    reader: StreamReader
    calls: Sequence[SessionCall]

    async def until_end(self) -> int:
        """Keep the response open until the calls' streams end; return the status, or
        DISCONNECTED."""
        try:
            return await until_end(self.stream, self.stream.stay(), self.reader.last)
        finally:
            for call in self.calls:
                call.outgoing.detach(self.reader)


async def until_end(
    stream: LongStream, work: Awaitable[object], last: Callable[[], bytes] = bytes
) -> int:
    """Keep the response open until `work` is done, and end it with the frame `last`. A disconnect
    cancels the work.

    Return the status, or DISCONNECTED."""
    try:
        await work
        await stream.close(last())
    except asyncio.CancelledError:
        if not stream.lost:
            raise
        stream.uncancel()
        return DISCONNECTED
    finally:
        stream.end()
    return 200


async def answer(call: SessionCall, wire: HttpWire) -> int | Shown:
    """Answer the single request of a POST; return the HTTP status, or its stream."""
    settled = await _settled([call])
    answered = settled[0]
    if answered is None:
        return _show([call], (), wire)
    if not answered.body:
        await send_empty(wire.send, 202, wire.headers)
        return 202
    more: RawHeaders = ()
    if answered.error is not None:
        request = call.incoming
        more = errors.headers_of(answered.error, request.headers, request.tenant.slug)
    await send_json(wire.send, answered.status, answered.body, [*wire.headers, *more])
    return answered.status


async def answer_batch(
    calls: Sequence[SessionCall], refused: Sequence[bytes], wire: HttpWire
) -> int | Shown:
    """As `answer`, for the requests of a batch; `refused` are the errors of those not begun.

    Once one of them streams, all do, and each is answered by its own event.
    """
    settled = await _settled(calls)
    bodies = [*refused, *(result.body for result in settled if result is not None and result.body)]
    streaming = [call for call, result in zip(calls, settled, strict=True) if result is None]
    if streaming:
        return _show(streaming, bodies, wire)
    if not bodies:
        await send_empty(wire.send, 202, wire.headers)
        return 202
    await send_json(wire.send, 200, b"[" + b",".join(bodies) + b"]", wire.headers)
    return 200


async def _settled(calls: Sequence[SessionCall]) -> list[JsonAnswer | None]:
    """The response of each call, or None if it streams; after `stream_after` seconds all do."""

    def open_all() -> None:
        for call in calls:
            call.open()

    seconds = options().stream.stream_after
    timer = WhenSlow(seconds, open_all)
    try:
        if len(calls) > 1:
            await _any_streams(calls)
            open_all()
        return [await call.settled() for call in calls]
    finally:
        timer.cancel()


async def _any_streams(calls: Sequence[SessionCall]) -> None:
    """Wait until one of the calls streams, or all have ended without."""
    waiting = {asyncio.ensure_future(call.settled()) for call in calls}
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(task.result() is None for task in done):
                return
    finally:
        for task in waiting:
            task.cancel()


def _show(calls: Sequence[SessionCall], bodies: Sequence[bytes], wire: HttpWire) -> Shown:
    """Begin to stream the calls' messages, after the responses that are ready already."""
    stream = wire.stream()
    reader = StreamReader(stream, wire.polling, len(calls))
    stream.open()
    for body in bodies:
        stream.send(body)
    for call in calls:
        call.outgoing.attach(reader)
    return Shown(stream, reader, calls)
