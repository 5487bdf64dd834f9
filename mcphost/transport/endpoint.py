"""The MCP endpoint, `/t/<tenant>/mcp`: a plain ASGI application.

Not a Channels consumer: a consumer receives neither a disconnect nor a channel-layer message while
it handles a request.
"""

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcphost.observability import context, counters, tracing
from mcphost.observability.instruments import OTHER_LABEL
from mcphost.observability.labels import CODES, END, NO_METHOD, NOTIFICATION, STREAM
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.legacy.opening import LegacyBody
from mcphost.protocol.messages import error_response
from mcphost.protocol.opening import open_post
from mcphost.protocol.subscriptions import lasting
from mcphost.serving.context import Incoming
from mcphost.serving.database import DATABASE_ERRORS
from mcphost.serving.first_use import with_shapes
from mcphost.serving.methods.dispatch import LONG_LIVED, dispatch, dispatch_long_lived
from mcphost.serving.replies import error_for
from mcphost.transport import cors, errors, guard, lanes, visitors
from mcphost.transport.authentication import Admitted, admit
from mcphost.transport.legacy import post
from mcphost.transport.legacy.get import get
from mcphost.transport.legacy.post import Post
from mcphost.transport.legacy.stream_response import HttpWire, Shown
from mcphost.transport.long_stream import LongStream
from mcphost.transport.options import options
from mcphost.transport.request import ClientGoneError, HttpRequest, Receive, read_body
from mcphost.transport.request_cycle import DISCONNECTED, answer_of, converse
from mcphost.transport.response import RawHeaders, Send, send_empty, send_json
from mcphost.transport.tracing import in_span

PATH = re.compile(r"/t/([^/]+)/mcp/?")

log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """How a request ended: the label of its method, and the HTTP status (0 after a disconnect); or
    the streams that it still shows."""

    method: str
    status: int | Shown


async def endpoint(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one HTTP request below `/t/`. Paths other than `/t/<tenant>/mcp` get a 404 in JSON."""
    match = PATH.fullmatch(scope["path"])
    if match is None:
        await send_json(send, 404, errors.NOT_FOUND, cors.ANYONE)
        return
    counters.requests.add()
    request = HttpRequest.from_scope(scope, match[1])
    began = request.began
    method, status = NO_METHOD, DISCONNECTED
    try:
        entered = await _enter(request, receive, send)
        if isinstance(entered, Ended):
            method, ended = entered
            del entered, match, request  # a stream stays open for long, and needs little
            status = await ended.until_end() if isinstance(ended, Shown) else ended
            return
        incoming, headers = entered
        method = incoming.exchange.method
        if incoming.exchange.id is None:
            method = NOTIFICATION
            await send_empty(send, 202, headers)
            status = 202
            return
        context.bind(incoming.http_request_id, incoming.tenant.slug, incoming.trace_id)
        if method in LONG_LIVED:
            answering = _attend(incoming, receive, send, headers)
        else:
            answering = converse(incoming, dispatch, receive, send, headers)
        if tracing.tracer is not None:
            answering = in_span(tracing.tracer, incoming, began, answering)
        status = await answering
    finally:
        counters.request_ended(time.perf_counter() - began, method, status)


async def _enter(
    request: HttpRequest, receive: Receive, send: Send
) -> tuple[Incoming, RawHeaders] | Ended:
    """Admit the caller: return its request and the headers of the response, or `Ended` if the
    request has been answered already."""
    headers: RawHeaders = cors.ANYONE
    try:
        lane = lanes.find(request)
        if lane is not None:
            guard.check_length(request)
            admitted, headers, accepts = lane.admission.admitted, lane.headers, lane.accepts
        else:
            guard.check_host(request)
            if status := await _answer_browser(request, send):
                return Ended(NO_METHOD, status)
            accepts = guard.check_post(request)
            admission = await admit(request)
            admitted, headers = admission.admitted, ()
            headers = cors.allow(request.headers.get("origin"), admitted.tenant.allowed_origins)
            lanes.store(request, admission, headers, accepts=accepts)
        wire = HttpWire(receive, send, headers)
        if request.method != "POST":
            guard.check_method(request)
            return await _session(request, admitted, wire)
        body, waited = await read_body(wire.receive, options().body_limit, options().body_seconds)
        if waited:  # perhaps for half a minute: check the caller's authority again
            admitted = (await admit(request)).admitted
            cors.allow(request.headers.get("origin"), admitted.tenant.allowed_origins)
        exchange = await with_shapes(open_post, request.headers, body)
        if not accepts:
            _check_unanswered(exchange)
        if isinstance(exchange, LegacyBody):
            sent = Post(request, admitted, exchange, len(body))
            return Ended(post.label(exchange), await post.post(sent, wire))
        if exchange.method in LONG_LIVED:
            exchange = lasting(exchange)
        return admitted.incoming(request, exchange, len(body)), headers
    except ClientGoneError:
        return Ended(NO_METHOD, DISCONNECTED)
    except (ProtocolError, *DATABASE_ERRORS) as error:
        return Ended(NO_METHOD, await _refuse(request, send, error_for(error), headers))


def _check_unanswered(exchange: Exchange | LegacyBody) -> None:
    """Refuse messages that need a response with a body. Raises ProtocolError, with the request's id."""
    if isinstance(exchange, Exchange):
        if exchange.id is not None:
            raise guard.not_acceptable().with_id(exchange.id)
    elif exchange.requests or exchange.refused:
        raise in_session(guard.not_acceptable()).with_id(exchange.alone)


async def _answer_browser(request: HttpRequest, send: Send) -> int | None:
    """Answer what only browsers send, a preflight or the visit of a person; return its status."""
    if request.method == "OPTIONS":
        await send_empty(send, 204, cors.preflight(request.headers))
        return 204
    if request.method == "GET" and visitors.is_browser(request):
        return await visitors.show(send)
    return None


async def _session(request: HttpRequest, admitted: Admitted, wire: HttpWire) -> Ended:
    """Answer GET or DELETE, which exist only in sessions."""
    if request.method == "GET":
        return Ended(STREAM, await get(request, admitted, wire))
    return Ended(END, await post.delete(request, admitted, wire))


async def _attend(incoming: Incoming, receive: Receive, send: Send, headers: RawHeaders) -> int:
    """Answer a request whose stream is open until the client disconnects or the server ends it."""
    stream = LongStream(receive, send, options().stream, headers)
    counters.listeners_open.add()
    try:
        answer = await answer_of(incoming, dispatch_long_lived(incoming, stream))
        await stream.finish(*answer)
        return answer[0]
    except asyncio.CancelledError:
        if not stream.lost:
            raise
        stream.uncancel()
        return DISCONNECTED
    finally:
        counters.listeners_open.add(-1)
        stream.end()


async def _refuse(
    request: HttpRequest, send: Send, error: ProtocolError, headers: RawHeaders
) -> int:
    counters.refused(error.code)
    # Not the message: it may quote what the client sent.
    log.info("refused: %s", CODES.get(error.code, OTHER_LABEL), extra={"code": error.code})
    extra = [*errors.headers_of(error, request.headers, request.slug), *headers]
    status = errors.status_of(error)
    await send_json(send, status, error_response(error), extra)
    return status
