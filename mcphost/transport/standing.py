"""The response to a request that stays open for days: an event stream, mostly silent, one of thousands."""

import asyncio
import logging
from heapq import heappop, heappush
from itertools import count

from mcphost.observability import counters
from mcphost.protocol import sse
from mcphost.runtime.begun import Begun
from mcphost.transport.bodies import Receive
from mcphost.transport.responder import (
    STREAM_HEADERS,
    RawHeaders,
    Send,
    StreamLimits,
    send_json,
)

HANG_UP = "the client hung up"

log = logging.getLogger(__name__)


class StandingStream:
    """Fills `serving.streams.StandingStream` for one request, in the task that answers it.

    It is a stream from its first message on. It has no task of its own: that of the request waits
    for the hang-up, a message is written where it is sent, and only a reader that does not keep up
    has a task that goes on writing. Nor has it a timer: see Silence.
    """

    __slots__ = (
        "_ended",
        "_headers",
        "_leaving",
        "_limits",
        "_opened",
        "_receive",
        "_send",
        "_staying",
        "_unread",
        "_waiting",
        "_work",
        "_writing",
        "lost",
        "spoke_at",
    )

    def __init__(
        self, receive: Receive, send: Send, limits: StreamLimits, headers: RawHeaders
    ) -> None:
        self._receive = receive
        self._send = send
        self._limits = limits
        self._headers = headers
        self._work = asyncio.current_task()
        self._writing: asyncio.Task[None] | None = None
        self._waiting: dict[bytes, None] = {}
        self._unread = 0
        self._opened = self._ended = self._leaving = self._staying = False
        self.lost = False
        self.spoke_at = 0.0

    @property
    def closed(self) -> bool:
        return self._ended

    @property
    def comment_every(self) -> float:
        return self._limits.comment_every

    @property
    def opened(self) -> bool:
        """Whether it is a stream already: no status can be told any more."""
        return self._opened

    def send(self, message: bytes) -> None:
        """Stream one notification; one that waits already waits no second time."""
        self.push(sse.event(message))

    def push(self, frame: bytes) -> None:
        """The same for a whole frame."""
        if not self._ended:
            self._open()
            self._push(frame)

    def comment(self) -> None:
        """Say nothing, so that whoever lies between us and the client keeps the connection."""
        if self._writing is None and not self._ended:
            self._write(sse.comment())

    async def stay(self) -> None:
        """Wait until `leave` is called.

        Spec: basic/transports/streamable-http, Cancellation: a hang-up cancels the request.
        """
        if self._leaving:
            return
        self._staying = True
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except asyncio.CancelledError:
            if self.lost or not self._leaving:
                raise
            self.forgive()
            return
        self.lost = True
        raise asyncio.CancelledError(HANG_UP)

    def leave(self) -> None:
        if not (self._leaving or self._ended or self.lost) and self._work is not None:
            self._leaving = True
            if self._staying:
                self._work.cancel()

    def cut(self) -> None:
        """The reader has gone, or does not read: cancel the request, once."""
        if not (self.lost or self._ended) and self._work is not None:
            self.lost = True
            self._work.cancel(HANG_UP)

    def forgive(self) -> None:
        """The cancellation, if there was one, was ours and has done its work."""
        if self._work is not None and self._work.cancelling():
            self._work.uncancel()

    def open(self) -> None:
        """Be a stream from now on, whenever there is something to say.

        Some servers keep the headers back until there is.
        """
        if not (self._ended or self._opened):
            self._open()
            self.comment()

    async def close(self, last: bytes = b"") -> None:
        """End the stream; `last` is a frame that still goes out."""
        self._open()
        if last:
            self._push(last)
        await self._close()

    async def finish(self, status: int, body: bytes, headers: RawHeaders = ()) -> None:
        """Send the answer and end the response; on a stream, the status has been sent already."""
        if not self._opened:
            self._ended = True
            await send_json(self._send, status, body, [*self._headers, *headers])
            return
        self._push(sse.event(body))
        await self._close()

    def end(self) -> None:
        """The request has been answered or given up: let go of everything."""
        if self._opened:
            self._opened = False
            counters.streams_open.add(-1)
        self._ended = True
        if self._writing is not None:
            self._writing.cancel()

    async def _close(self) -> None:
        self._ended = True
        if self._writing is not None:
            await self._writing
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            counters.streams_open.add()
            headers = [*STREAM_HEADERS, *self._headers]
            self._pass({"type": "http.response.start", "status": 200, "headers": headers})
            silence().expect(self)

    def _push(self, frame: bytes) -> None:
        if self._writing is None:
            self._write(frame)
        elif frame not in self._waiting:
            self._waiting[frame] = None
            self._unread += len(frame)
            if self._unread > self._limits.unread and len(self._waiting) > 1 and not self.lost:
                counters.streams_cut.add()
                self.cut()

    def _write(self, frames: bytes) -> None:
        self._pass({"type": "http.response.body", "body": frames, "more_body": True})

    def _pass(self, event: dict[str, object]) -> None:
        """Hand an event to the server, which takes it at once unless the reader is behind."""
        loop = asyncio.get_running_loop()
        self.spoke_at = loop.time()
        try:
            begun = Begun(self._pass_on(event))
        except Exception:
            log.debug("a stream could not be written to", exc_info=True)
            self.cut()
            return
        if not begun.over:
            self._writing = loop.create_task(self._catch_up(begun))

    async def _pass_on(self, event: dict[str, object]) -> None:
        await self._send(event)

    async def _catch_up(self, begun: Begun[None]) -> None:
        """Wait for the reader, and write what has gathered meanwhile, until nothing waits."""
        try:
            await begun
            while self._waiting:
                frames = b"".join(self._waiting)
                self._waiting.clear()
                await self._send({"type": "http.response.body", "body": frames, "more_body": True})
                self._unread -= len(frames)
        except Exception:
            log.debug("a stream could not be written to", exc_info=True)
            self.cut()
        finally:
            self._writing = None


class Silence:
    """Has streams send a comment when they have been silent for long: one timer for all of them."""

    AT_ONCE = 200

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._heap: list[tuple[float, int, StandingStream]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def expect(self, stream: StandingStream) -> None:
        self._push(stream.spoke_at + stream.comment_every, stream)
        self._arm()

    def _push(self, due: float, stream: StandingStream) -> None:
        heappush(self._heap, (due, next(self._numbers), stream))

    def _arm(self) -> None:
        """Look when the first is due; at once, but in another turn, if that has passed."""
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is None or self._rings_at > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(due, self._look)
            self._rings_at = due  # a timer that is due at once does not say so in every loop

    def _look(self) -> None:
        self._timer = None
        now = self.loop.time()
        for _ in range(self.AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                break
            self._visit(heappop(self._heap)[2], now)
        self._arm()

    def _visit(self, stream: StandingStream, now: float) -> None:
        if stream.closed:
            return
        if stream.spoke_at + stream.comment_every <= now:
            stream.comment()
            self._push(now + stream.comment_every, stream)
        else:
            self._push(stream.spoke_at + stream.comment_every, stream)


_latest: Silence | None = None


def silence() -> Silence:
    """The running loop's. There is one loop in a server; tests have one after another."""
    global _latest  # noqa: PLW0603 - one per event loop
    loop = asyncio.get_running_loop()
    if _latest is None or _latest.loop is not loop:
        _latest = Silence(loop)
    return _latest
