"""GET of clients of the session-based revisions: a stream to be told what changed."""

import asyncio

from mcphost.observability import counters
from mcphost.protocol import sse
from mcphost.protocol.legacy.errors import in_post
from mcphost.protocol.revisions import REVISIONS
from mcphost.serving.drain import draining
from mcphost.serving.incoming import Session
from mcphost.serving.legacy.standing import standing
from mcphost.transport.admission import Admitted
from mcphost.transport.answering import NOBODY, told
from mcphost.transport.http import HttpRequest
from mcphost.transport.options import options
from mcphost.transport.sessions import VERSION_HEADER, Wire, find
from mcphost.transport.standing import StandingStream

RETRY_MS = 1000
"""When a client is to come back whose stream we end: another process is there by then."""


async def get(request: HttpRequest, admitted: Admitted, wire: Wire) -> int:
    """Answer it; gives the status. Raises SessionError for what gets no stream."""
    stream = StandingStream(wire.receive, wire.send, options().stream, wire.headers)
    counters.listeners_open.add()
    try:
        session = await find(admitted, request.headers)
        await _listen(session, admitted, request, stream)
        await stream.close(_last(session))
    except asyncio.CancelledError:
        if not stream.lost:
            raise
        stream.forgive()
        return NOBODY
    except Exception as error:
        raise in_post(told(error), request.headers.get(VERSION_HEADER)) from error
    finally:
        counters.listeners_open.add(-1)
        stream.end()
    return 200


async def _listen(
    session: Session, admitted: Admitted, request: HttpRequest, stream: StandingStream
) -> None:
    """Have the session told on the stream until its client hangs up or we end it."""
    async with standing(session, admitted.principal, request.source, stream):
        stream.open()
        if not draining():
            await stream.stay()


def _last(session: Session) -> bytes:
    """Where streams may be polled, their end says when to come back."""
    return sse.retry(RETRY_MS) if REVISIONS[session.revision].polling else b""
