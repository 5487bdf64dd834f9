"""GET of clients of the session-based revisions: a stream to be told what changed, or, with a
`Last-Event-ID`, what is missing of a stream that broke off."""

import asyncio
import logging

from mcphost.observability import counters
from mcphost.protocol import sse
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.errors import in_post
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.serving.authority import presences
from mcphost.serving.drain import draining
from mcphost.serving.incoming import Session
from mcphost.serving.legacy.following import follow
from mcphost.serving.legacy.standing import standing
from mcphost.transport.admission import Admitted
from mcphost.transport.answering import told
from mcphost.transport.http import HttpRequest
from mcphost.transport.sessions import VERSION_HEADER, find
from mcphost.transport.streaming import RETRY_MS, Showing, Wire, until_end

EVENT_HEADER = "last-event-id"
REFUSED_WITHIN_SECONDS = 0.5
"""How long who comes back may wait for its headers; then it is let wait, with comments, for more."""

log = logging.getLogger(__name__)


async def get(request: HttpRequest, admitted: Admitted, wire: Wire) -> int:
    """Answer it; gives the status. Raises SessionError for what gets no stream."""
    last_event = request.headers.get(EVENT_HEADER)
    counters.listeners_open.add()
    try:
        session = await find(admitted, request.headers)
        wire = wire._replace(polling=REVISIONS[session.revision].polling)
        if not last_event:  # an empty one is none
            return await _listen(session, admitted, request, wire)
        return await _resume(session, admitted, last_event, wire)
    except Exception as error:
        raise in_post(told(error), request.headers.get(VERSION_HEADER)) from error
    finally:
        counters.listeners_open.add(-1)


async def _listen(session: Session, admitted: Admitted, request: HttpRequest, wire: Wire) -> int:
    """Have the session told on the stream until its client hangs up or we end it."""
    stream = wire.stream()

    async def listen() -> bytes:
        async with standing(session, admitted.principal, request.source, stream):
            stream.open()
            if not draining():
                await stream.stay()
        return sse.retry(RETRY_MS) if wire.polling else b""

    return await until_end(stream, listen())


class _Follower:
    """One of `presences`: a stream ends with the authority of who reads it."""

    def __init__(self, principal: Principal, showing: Showing) -> None:
        self.principal = principal
        self._showing = showing

    def lose(self, refusal: ProtocolError) -> None:
        self._showing.end()


async def _resume(session: Session, admitted: Admitted, last_event: str, wire: Wire) -> int:
    """Show what came after an event, and what comes. Raises ProtocolError for what is no event."""
    stream = wire.stream()

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None and stream.opened:
            log.warning("a stream was not resumed: %s", task.exception())
        stream.leave()

    showing = Showing(stream, wire.polling)
    follower = _Follower(admitted.principal, showing)
    loop = asyncio.get_running_loop()
    following = loop.create_task(follow(session, last_event, showing))
    following.add_done_callback(ended)
    opening = loop.call_later(REFUSED_WITHIN_SECONDS, stream.open)
    presences.enter(follower)

    async def see() -> bytes:
        last = await showing.over()
        if following.done() and not stream.opened:
            following.result()
        return last

    try:
        return await until_end(stream, see())
    finally:
        presences.leave(follower)
        opening.cancel()
        following.cancel()
