"""Event streams that stay open for days: mostly silent, and thousands per process."""

import asyncio
import logging
from heapq import heappop, heappush
from itertools import count

from mcphost.observability import counters
from mcphost.protocol import sse
from mcphost.runtime.started_coroutine import StartedCoroutine
from mcphost.transport.request import DISCONNECTED_REASON, Receive
from mcphost.transport.response import STREAM_HEADERS, RawHeaders, Send, StreamLimits, send_json

log = logging.getLogger(__name__)


class LongStream:
    """Implements `serving.ports.LongLivedStream` for one request. Make it in the request's task.

    The first message makes the response an event stream. The stream has no task of its own: the
    request's task waits for the disconnect, `send` writes the message, and only a slow reader has a
    task that writes the rest. Nor has it a timer: see SilentStreams.
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
        """Whether the response is a stream already: its status has been sent."""
        return self._opened

    def send(self, message: bytes) -> None:
        """Stream one notification; drop it if an equal one is still unsent."""
        self.push(sse.event(message))

    def push(self, frame: bytes) -> None:
        """Stream one whole frame, as `send`."""
        if not self._ended:
            self._open()
            self._push(frame)

    def comment(self) -> None:
        """Send an SSE comment, so that proxies keep the connection open."""
        if self._writing is None and not self._ended:
            self._write(sse.comment())

    async def stay(self) -> None:
        """Wait until `end_stay` is called. A disconnect cancels the request.

        Spec: basic/transports/streamable-http, Cancellation.
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
            self.uncancel()
            return
        self.lost = True
        raise asyncio.CancelledError(DISCONNECTED_REASON)

    def end_stay(self) -> None:
        if not (self._leaving or self._ended or self.lost) and self._work is not None:
            self._leaving = True
            if self._staying:
                self._work.cancel()

    def cut(self) -> None:
        """Cancel the request, once: the client has disconnected, or does not read."""
        if not (self.lost or self._ended) and self._work is not None:
            self.lost = True
            self._work.cancel(DISCONNECTED_REASON)

    def uncancel(self) -> None:
        """Undo the cancellation that this class requested, if any: it has been handled."""
        if self._work is not None and self._work.cancelling():
            self._work.uncancel()

    def open(self) -> None:
        """Start the event stream without a message.

        A comment is sent at once, because some servers delay the headers until there is a body.
        """
        if not (self._ended or self._opened):
            self._open()
            self.comment()

    async def close(self, last: bytes = b"") -> None:
        """End the stream; `last` is a final frame."""
        self._open()
        if last:
            self._push(last)
        await self._close()

    async def finish(self, status: int, body: bytes, headers: RawHeaders = ()) -> None:
        """Send the JSON-RPC response and end; on a stream the status has been sent already."""
        if not self._opened:
            self._ended = True
            await send_json(self._send, status, body, [*self._headers, *headers])
            return
        self._push(sse.event(body))
        await self._close()

    def end(self) -> None:
        """Release everything: the request has been answered or cancelled."""
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
        """Send an event to the ASGI server, which accepts it at once unless the reader is slow."""
        loop = asyncio.get_running_loop()
        self.spoke_at = loop.time()
        try:
            started = StartedCoroutine(self._pass_on(event))
        except Exception:
            log.debug("writing to a stream failed", exc_info=True)
            self.cut()
            return
        if not started.over:
            self._writing = loop.create_task(self._catch_up(started))

    async def _pass_on(self, event: dict[str, object]) -> None:
        await self._send(event)

    async def _catch_up(self, started: StartedCoroutine[None]) -> None:
        """Wait for a slow reader, and write the frames queued meanwhile, until none is left."""
        try:
            await started
            while self._waiting:
                frames = b"".join(self._waiting)
                self._waiting.clear()
                await self._send({"type": "http.response.body", "body": frames, "more_body": True})
                self._unread -= len(frames)
        except Exception:
            log.debug("writing to a stream failed", exc_info=True)
            self.cut()
        finally:
            self._writing = None


class SilentStreams:
    """Makes streams that are silent too long send a comment: one timer for all streams."""

    AT_ONCE = 200

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._heap: list[tuple[float, int, LongStream]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def expect(self, stream: LongStream) -> None:
        self._push(stream.spoke_at + stream.comment_every, stream)
        self._arm()

    def _push(self, due: float, stream: LongStream) -> None:
        heappush(self._heap, (due, next(self._numbers), stream))

    def _arm(self) -> None:
        """Set the timer for the first due stream; if overdue, for the loop's next iteration."""
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is None or self._rings_at > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(due, self._send_due_comments)
            self._rings_at = due  # not `timer.when()`: event loops differ when it is overdue

    def _send_due_comments(self) -> None:
        self._timer = None
        now = self.loop.time()
        for _ in range(self.AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                break
            self._visit(heappop(self._heap)[2], now)
        self._arm()

    def _visit(self, stream: LongStream, now: float) -> None:
        if stream.closed:
            return
        if stream.spoke_at + stream.comment_every <= now:
            stream.comment()
            self._push(now + stream.comment_every, stream)
        else:
            self._push(stream.spoke_at + stream.comment_every, stream)


_latest: SilentStreams | None = None


def silence() -> SilentStreams:
    """The instance of the running loop. A server has one loop; tests use several in turn."""
    global _latest  # noqa: PLW0603 - one per event loop
    loop = asyncio.get_running_loop()
    if _latest is None or _latest.loop is not loop:
        _latest = SilentStreams(loop)
    return _latest
