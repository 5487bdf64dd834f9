"""One request under way: its response, and the connection that it may lose."""

import asyncio

from mcphost.protocol.errors import ProtocolError
from mcphost.runtime.call import Principal
from mcphost.serving.authority import presences
from mcphost.transport.bodies import Receive
from mcphost.transport.responder import RawHeaders, Responder, Send, StreamLimits


class Conversation(Responder):
    """A response whose reader may go away, or lose its authority: then the work for it is cancelled.

    Spec: basic/transports/streamable-http, Cancellation. `refusal` is then the answer that is left
    for a reader who is still there. Most calls are over before anybody could
    hang up, so nothing listens until the call turns out to be slow: to listen takes a task, which
    costs more than many a call. Made in the task that does the work.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        limits: StreamLimits,
        headers: RawHeaders,
        principal: Principal,
    ) -> None:
        super().__init__(send, limits, headers)
        self.principal = principal
        self._receive = receive
        self._work = asyncio.current_task()
        self._watch: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.lost = False
        self.refusal: ProtocolError | None = None
        self._slow_calls = _slow_calls()
        self._slow_calls.expect(self)

    @property
    def ended_early(self) -> bool:
        """Whether the work was cancelled, or is about to be, for a reason of ours."""
        return self.lost or self.refusal is not None

    def become_slow(self) -> None:
        """The call is not over yet: listen for a hang-up, look at whether its caller may still make
        it, and stream if it takes much longer."""
        if not self._ended:
            presences.enter(self)
            loop = asyncio.get_running_loop()
            self._watch = loop.create_task(self._listen())
            self._timer = loop.call_later(self._limits.stream_after, self.open)

    def cut(self) -> None:
        """The reader has gone, or does not read: cancel the work, once."""
        if not self.lost and self._work is not None:
            self.lost = True
            self._work.cancel("the client hung up")

    def lose(self, refusal: ProtocolError) -> None:
        """The caller may not go on: cancel the work, once, unless it has been answered."""
        if not (self.lost or self._ended) and self.refusal is None and self._work is not None:
            self.refusal = refusal
            self._work.cancel(refusal.message)

    def forgive(self) -> None:
        """The cancellation was ours and has done its work."""
        if self._work is not None:
            self._work.uncancel()

    def end(self) -> None:
        """The request has been answered or given up: let go of everything."""
        self.lost = True
        self._slow_calls.forget(self)
        self.abandon()
        if self._watch is not None:
            self._watch.cancel()
            presences.leave(self)

    def close(self) -> None:
        super().close()
        if self._timer is not None:
            self._timer.cancel()

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cut()


class SlowCalls:
    """Tells conversations when they have become slow: one timer for all of them.

    It looks every 20 ms, and whoever was there the last time is slow. Those that end meanwhile are
    let go at once: kept until the timer, they and all they hold would push out of the processor's
    cache what the next call needs.
    """

    SECONDS = 0.02

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._new: set[Conversation] = set()
        self._seen: set[Conversation] = set()
        self._armed = False

    def expect(self, conversation: Conversation) -> None:
        self._new.add(conversation)
        if not self._armed:
            self._armed = True
            self.loop.call_later(self.SECONDS, self._look)

    def forget(self, conversation: Conversation) -> None:
        self._new.discard(conversation)
        self._seen.discard(conversation)

    def _look(self) -> None:
        slow, self._seen, self._new = self._seen, self._new, set()
        for conversation in slow:
            conversation.become_slow()
        self._armed = bool(self._seen)
        if self._armed:
            self.loop.call_later(self.SECONDS, self._look)


_latest: SlowCalls | None = None


def _slow_calls() -> SlowCalls:
    """The running loop's. There is one loop in a server; tests have one after another."""
    global _latest  # noqa: PLW0603 - one per event loop
    loop = asyncio.get_running_loop()
    if _latest is None or _latest.loop is not loop:
        _latest = SlowCalls(loop)
    return _latest
