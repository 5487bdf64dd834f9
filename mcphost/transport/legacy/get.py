"""GET of clients of the session-based revisions: opens the GET stream, or, with `Last-Event-ID`,
resumes a stream that broke off."""

import asyncio
import logging

from mcphost.observability import counters
from mcphost.protocol import sse
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.serving.context import ClientSession
from mcphost.serving.legacy.get_stream import open_get_stream
from mcphost.serving.legacy.reconnection import retry_ms
from mcphost.serving.legacy.replay import follow
from mcphost.serving.legacy.stream import following
from mcphost.serving.limits import caller
from mcphost.serving.replies import error_for
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import draining
from mcphost.transport.authentication import Admitted
from mcphost.transport.legacy.post import find
from mcphost.transport.legacy.stream_response import HttpWire, StreamReader, until_end
from mcphost.transport.request import HttpRequest

EVENT_HEADER = "last-event-id"
REFUSED_WITHIN_SECONDS = 0.5
"""How long a resuming client may wait for its headers. Then the stream opens with comments."""

log = logging.getLogger(__name__)


async def get(request: HttpRequest, admitted: Admitted, wire: HttpWire) -> int:
    """Answer a GET; return the HTTP status. Raises SessionError if there is no stream to open."""
    last_event = request.headers.get(EVENT_HEADER)
    counters.listeners_open.add()
    try:
        # That the session is open is part of the commit that registers a GET stream.
        session = await find(admitted, request.headers, checked=bool(last_event))
        wire = wire._replace(polling=REVISIONS[session.revision].polling)
        if not last_event:  # an empty header counts as none
            return await _listen(session, admitted, request, wire)
        with following.count_replay(caller(admitted.principal, request.source)):
            return await _resume(session, admitted, last_event, wire)
    except Exception as error:
        raise in_session(error_for(error)) from error
    finally:
        counters.listeners_open.add(-1)


async def _listen(
    session: ClientSession, admitted: Admitted, request: HttpRequest, wire: HttpWire
) -> int:
    """Send the session's notifications until the client disconnects or the server ends it."""
    stream = wire.stream()

    async def listen() -> None:
        async with open_get_stream(session, admitted.principal, request.source, stream):
            stream.open()
            if not draining():
                await stream.stay()

    def last() -> bytes:
        return sse.retry(retry_ms()) if wire.polling else b""

    return await until_end(stream, listen(), last)


class _Follower:
    """A `Presence`: ends a resumed stream when its reader loses its authority."""

    def __init__(self, principal: Principal, reader: StreamReader) -> None:
        self.principal = principal
        self._reader = reader

    def revoke(self, refusal: ProtocolError) -> None:
        self._reader.end()


async def _resume(
    session: ClientSession, admitted: Admitted, last_event: str, wire: HttpWire
) -> int:
    """Send the events after `last_event`, also those yet to come. Raises ProtocolError if there is
    no such event."""
    stream = wire.stream()

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None and stream.opened:
            log.warning("a stream could not be resumed: %s", task.exception())
        stream.end_stay()

    reader = StreamReader(stream, wire.polling)
    follower = _Follower(admitted.principal, reader)
    loop = asyncio.get_running_loop()
    following = loop.create_task(follow(session, last_event, reader))
    following.add_done_callback(ended)
    opening = loop.call_later(REFUSED_WITHIN_SECONDS, stream.open)
    presences.register(follower)

    async def see() -> None:
        await stream.stay()
        if following.done() and not stream.opened:
            following.result()

    try:
        return await until_end(stream, see(), reader.last)
    finally:
        presences.unregister(follower)
        opening.cancel()
        following.cancel()
