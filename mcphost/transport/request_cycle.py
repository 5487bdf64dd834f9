"""Answer one request: cancel its work when the client disconnects or the caller loses its
authority, and turn the response into an event stream when the work takes long.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from django.conf import settings

from mcphost.observability import counters, tracing
from mcphost.observability.availability import availability
from mcphost.protocol import messages
from mcphost.protocol.errors import ProtocolError
from mcphost.runtime.call import Principal
from mcphost.serving.context import Incoming
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import error_for
from mcphost.serving.revocation import presences
from mcphost.transport import errors
from mcphost.transport.options import options
from mcphost.transport.request import DISCONNECTED_REASON, Receive
from mcphost.transport.response import RawHeaders, Responder, Send, StreamLimits

GRACE_SECONDS: Final = 1.0
"""Added to the wait for the database, so that a refusal is sent before the stream opens."""


class WhenSlow:
    """Calls `open` after `seconds`, once, on the event loop.

    While the database is unreachable this is delayed by as long as a request waits for it: a
    refusal for that reason can then have its status and `Retry-After`, unlike on a stream.
    """

    __slots__ = ("_handle", "_open")

    def __init__(self, seconds: float, open: Callable[[], None]) -> None:
        self._open = open
        self._handle = asyncio.get_running_loop().call_later(seconds, self._open_or_wait)

    def cancel(self) -> None:
        self._handle.cancel()

    def _open_or_wait(self) -> None:
        if not availability.unreachable:
            self._open()
            return
        seconds = settings.MCPHOST_DATABASE_WAIT_SECONDS + GRACE_SECONDS
        self._handle = asyncio.get_running_loop().call_later(seconds, self._open)


class Conversation(Responder):
    """A response whose work is cancelled on a disconnect or when the caller loses its authority.

    Spec: basic/transports/streamable-http, Cancellation. In the second case `refusal` is the error
    for the client. Most calls end before a client could disconnect, so the disconnect is watched
    only once the call is slow: watching takes a task, which costs more than many calls. Make it in
    the task that does the work. `ended_early`: it has cancelled the work.
    """

    ended_early = False
    lost = False
    refusal: ProtocolError | None = None
    _watch: asyncio.Task[None] | None = None

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
        self._slow_calls = _expect(self)

    def become_slow(self) -> None:
        """Watch an unfinished call for a disconnect and for lost authority, and stream its response
        if it takes much longer."""
        if not self._ended:
            presences.register(self)
            loop = asyncio.get_running_loop()
            self._watch = loop.create_task(self._listen())
            self._timer = WhenSlow(self._limits.stream_after, self.open)

    def cut(self) -> None:
        """Cancel the work, once: the client has disconnected, or does not read."""
        if not self.lost and self._work is not None:
            self.ended_early = self.lost = True
            self._work.cancel(DISCONNECTED_REASON)

    def revoke(self, refusal: ProtocolError) -> None:
        """Cancel unanswered work, once, because the caller has lost its authority."""
        if not (self.lost or self._ended) and self.refusal is None and self._work is not None:
            self.ended_early = True
            self.refusal = refusal
            self._work.cancel(refusal.message)

    def uncancel(self) -> None:
        """Undo the cancellation that this class requested: it has been handled."""
        if self._work is not None:
            self._work.uncancel()

    def end(self) -> None:
        """Release everything: the request has been answered or cancelled."""
        self.lost = True
        self._slow_calls.forget(self)
        if not self._ended or self._pump is not None:
            self.abandon()
        if self._watch is not None:
            self._watch.cancel()
            presences.unregister(self)

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cut()


class SlowCalls:
    """Calls `become_slow` on conversations that last more than 20 to 40 ms, with one timer.

    The timer runs every 20 ms; a conversation that it sees a second time is slow. Those that end
    are dropped at once: kept until the timer runs, they and all that they reference would evict
    from the CPU's cache what the next call needs.
    """

    SECONDS = 0.02

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.new: set[Conversation] = set()
        self._older: set[Conversation] = set()
        self.armed = False

    def arm(self) -> None:
        """Start the timer."""
        self.armed = True
        self.loop.call_later(self.SECONDS, self._sweep)

    def forget(self, conversation: Conversation) -> None:
        self.new.discard(conversation)
        self._older.discard(conversation)

    def _sweep(self) -> None:
        slow, self._older, self.new = self._older, self.new, set()
        for conversation in slow:
            conversation.become_slow()
        self.armed = False
        if self._older:
            self.arm()


_latest: SlowCalls | None = None


def _expect(conversation: Conversation) -> SlowCalls:
    """Add a conversation to the instance of the running loop, and return that. A server has one
    loop; tests use several in turn."""
    global _latest  # noqa: PLW0603 - one per event loop
    loop = asyncio.get_running_loop()
    if _latest is None or _latest.loop is not loop:
        _latest = SlowCalls(loop)
    _latest.new.add(conversation)
    if not _latest.armed:
        _latest.arm()
    return _latest


DISCONNECTED = 0
"""In place of an HTTP status: the client disconnected before it was answered."""

Answer = tuple[int, bytes, RawHeaders]


Work = Callable[[Incoming, EventStream], Awaitable[Mapping[str, Any]]]


async def converse(
    incoming: Incoming, work: Work, receive: Receive, send: Send, headers: RawHeaders
) -> int:
    """Answer a request; cancel its work when the client disconnects or reads too slowly, or when
    the caller loses its authority. Return the HTTP status, or DISCONNECTED."""
    conversation = Conversation(receive, send, options().stream, headers, incoming.principal)
    status = DISCONNECTED
    try:
        answer = await answer_of(incoming, work(incoming, conversation))
        if not conversation.ended_early:
            await conversation.finish(*answer)
            status = answer[0]
    except asyncio.CancelledError:
        if not conversation.ended_early:
            raise
    finally:
        try:
            if conversation.ended_early:
                status = await _refuse(incoming, conversation) or status
        finally:
            conversation.end()
    return status


async def _refuse(incoming: Incoming, conversation: Conversation) -> int:
    """End work that was cancelled: send the refusal, if there is one and the client is connected."""
    conversation.uncancel()
    if conversation.refusal is None or conversation.lost:
        return DISCONNECTED
    answer = refusal_of(incoming, conversation.refusal)
    try:
        await conversation.finish(*answer)
    except asyncio.CancelledError:  # servers report a disconnect also when all has been sent
        if not conversation.lost:
            raise
        conversation.uncancel()
    return answer[0]


async def answer_of(incoming: Incoming, work: Awaitable[Mapping[str, Any]]) -> Answer:
    identifier = incoming.exchange.id
    assert identifier is not None
    try:
        return 200, messages.response(identifier, await work), ()
    except Exception as error:  # noqa: BLE001 - it is reported, and logged unless it is a refusal
        return refusal_of(incoming, error_for(error))


def refusal_of(incoming: Incoming, error: ProtocolError) -> Answer:
    counters.refused(error.code)
    tracing.refused(error.code)
    named = error.with_id(incoming.exchange.id)
    headers = errors.headers_of(named, incoming.headers, incoming.tenant.slug)
    return errors.status_of(named), messages.error_response(named), headers
