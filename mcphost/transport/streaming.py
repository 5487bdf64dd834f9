"""Answers to POSTs of sessions: as JSON where that is all, else as a stream of events with ids.

The calls live by themselves. What is here reads what comes of them, for as long as a client does; a
client that comes back for the rest gets it by GET.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from mcphost.protocol import sse
from mcphost.serving.legacy.calls import JsonAnswer, SessionCall
from mcphost.transport import refusals
from mcphost.transport.answering import NOBODY
from mcphost.transport.bodies import Receive
from mcphost.transport.options import options
from mcphost.transport.responder import RawHeaders, Send, send_empty, send_json
from mcphost.transport.standing import StandingStream

RETRY_MS = 1000
"""When a client is to come back whose stream broke off."""


class Wire(NamedTuple):
    """The two directions of one HTTP exchange, what every answer on it must carry, and whether its
    client knows streams that begin with an event of nothing and say when to come back."""

    receive: Receive
    send: Send
    headers: RawHeaders
    polling: bool = False

    def stream(self) -> StandingStream:
        """A response that stays open. To be made in the task that waits for its end."""
        return StandingStream(self.receive, self.send, options().stream, self.headers)


class Showing:
    """Fills `serving.streams.Reader` with the response to one request; `parts` streams are shown on it.

    It is over when all of them are, or when its client is sent away to come back for the rest.
    """

    __slots__ = ("_last", "_parts", "_polling", "_stream")

    def __init__(self, stream: StandingStream, polling: bool, parts: int = 1) -> None:
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
            self._stream.leave()

    async def over(self) -> bytes:
        """Wait until it is; gives the last frame. When the client hangs up, the work is cancelled."""
        await self._stream.stay()
        return self._last


async def until_end(stream: StandingStream, work: Awaitable[bytes]) -> int:
    """Have a response last for as long as the work, which gives its last frame; gives the status."""
    try:
        await stream.close(await work)
    except asyncio.CancelledError:
        if not stream.lost:
            raise
        stream.forgive()
        return NOBODY
    finally:
        stream.end()
    return 200


async def answer(call: SessionCall, wire: Wire) -> int:
    """Answer the one request of a POST; gives the status."""
    settled = await _settled([call])
    answered = settled[0]
    if answered is None:
        return await _show([call], (), wire)
    if not answered.body:
        await send_empty(wire.send, 202, wire.headers)
        return 202
    more = () if answered.error is None else refusals.headers_of(answered.error)
    await send_json(wire.send, answered.status, answered.body, [*wire.headers, *more])
    return answered.status


async def answer_batch(calls: Sequence[SessionCall], refused: Sequence[bytes], wire: Wire) -> int:
    """Answer the requests of a batch together; `refused` answers those that were not even begun.

    Once any of them streams, all do, and each gets its answer by itself.
    """
    settled = await _settled(calls)
    bodies = [*refused, *(one.body for one in settled if one is not None and one.body)]
    streaming = [call for call, one in zip(calls, settled, strict=True) if one is None]
    if streaming:
        return await _show(streaming, bodies, wire)
    if not bodies:
        await send_empty(wire.send, 202, wire.headers)
        return 202
    await send_json(wire.send, 200, b"[" + b",".join(bodies) + b"]", wire.headers)
    return 200


async def _settled(calls: Sequence[SessionCall]) -> list[JsonAnswer | None]:
    """What came of each: its answer, or None if it streams, as they all do before long."""

    def open_all() -> None:
        for call in calls:
            call.open()

    seconds = options().stream.stream_after
    timer = asyncio.get_running_loop().call_later(seconds, open_all)
    try:
        if len(calls) > 1:
            await _any_streams(calls)
            open_all()
        return [await call.settled() for call in calls]
    finally:
        timer.cancel()


async def _any_streams(calls: Sequence[SessionCall]) -> None:
    """Wait until one of them streams, or none ever will."""
    waiting = {asyncio.ensure_future(call.settled()) for call in calls}
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if any(one.result() is None for one in done):
                return
    finally:
        for one in waiting:
            one.cancel()


async def _show(calls: Sequence[SessionCall], bodies: Sequence[bytes], wire: Wire) -> int:
    """Show what the calls say, after what has been answered already."""
    stream = wire.stream()
    showing = Showing(stream, wire.polling, len(calls))
    stream.open()
    for body in bodies:
        stream.send(body)
    for call in calls:
        call.outgoing.attach(showing)
    try:
        return await until_end(stream, showing.over())
    finally:
        for call in calls:
            call.outgoing.detach(showing)
