"""The MCP endpoint, `/t/<tenant>/mcp`: a plain ASGI application.

Not a Channels consumer: that one sees neither a hang-up nor a channel-layer message while it
handles a request.
"""

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcphost.observability import context, counters, tracing
from mcphost.observability.labels import END, NO_METHOD, NOTIFICATION, STREAM
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.opening import LegacyBody
from mcphost.protocol.opening import open_post
from mcphost.protocol.subscriptions import lasting
from mcphost.serving.dispatch import STANDING, attend, dispatch
from mcphost.serving.incoming import Incoming
from mcphost.serving.lifecycle import ensure_started
from mcphost.transport import cors, guard, refusals, sessions
from mcphost.transport.admission import Admitted, admit
from mcphost.transport.answering import AWAY, NOBODY, answer_of, converse, unavailable
from mcphost.transport.bodies import ClientGoneError, Receive, read_body
from mcphost.transport.get import get
from mcphost.transport.http import HttpRequest
from mcphost.transport.options import options
from mcphost.transport.responder import (
    RawHeaders,
    Send,
    send_empty,
    send_json,
)
from mcphost.transport.sessions import Post
from mcphost.transport.spans import in_span
from mcphost.transport.standing import StandingStream
from mcphost.transport.streaming import Wire

PATH = re.compile(r"/t/([^/]+)/mcp")

log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """A request that was answered, by the label of its method and the status; 0 is nobody there."""

    method: str
    status: int


async def endpoint(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one HTTP request below `/t/`. Everything there is answered here, in JSON."""
    ensure_started()
    match = PATH.fullmatch(scope["path"])
    if match is None:
        await send_json(send, 404, b'{"error":"not_found"}', cors.ANYONE)
        return
    counters.requests.add()
    request = HttpRequest.from_scope(scope, match[1])
    method, status = NO_METHOD, NOBODY
    try:
        entered = await _enter(request, receive, send)
        if isinstance(entered, Ended):
            method, status = entered
            return
        incoming, headers = entered
        method = incoming.exchange.method
        if incoming.exchange.id is None:
            method = NOTIFICATION
            await send_empty(send, 202, headers)
            status = 202
            return
        context.bind(incoming.leg, incoming.tenant.slug, incoming.trace_id)
        if method in STANDING:
            answering = _attend(incoming, receive, send, headers)
        else:
            answering = converse(incoming, dispatch, receive, send, headers)
        if tracing.tracer is not None:
            answering = in_span(tracing.tracer, incoming, request.began, answering)
        status = await answering
    finally:
        counters.request_ended(time.perf_counter() - request.began, method, status)


async def _enter(
    request: HttpRequest, receive: Receive, send: Send
) -> tuple[Incoming, RawHeaders] | Ended:
    """The request of somebody who may speak here, with the headers that its answer needs; or how it
    was answered already."""
    headers: RawHeaders = cors.ANYONE
    try:
        guard.check_host(request)
        if request.method == "OPTIONS":
            asked = request.headers.get("access-control-request-headers") or ""
            await send_empty(send, 204, cors.preflight(asked))
            return Ended(NO_METHOD, 204)
        guard.check_request(request)
        admitted = await admit(request)
        headers = ()
        headers = cors.allow(request.headers.get("origin"), admitted.tenant.allowed_origins)
        wire = Wire(receive, send, headers)
        if request.method == "GET":
            return Ended(STREAM, await get(request, admitted, wire))
        if request.method == "DELETE":
            return Ended(END, await sessions.delete(request, admitted, wire))
        opened = await _open(request, admitted, receive)
        if isinstance(opened, Post):
            return Ended(sessions.label(opened.body), await sessions.post(opened, wire))
        return opened, headers
    except ClientGoneError:
        return Ended(NO_METHOD, NOBODY)
    except ProtocolError as error:
        return Ended(NO_METHOD, await _refuse(send, error, headers))
    except AWAY as error:
        return Ended(NO_METHOD, await _refuse(send, unavailable(error), headers))


async def _open(request: HttpRequest, admitted: Admitted, receive: Receive) -> Incoming | Post:
    body, waited = await read_body(receive, options().body_limit, options().body_seconds)
    if waited:  # for half a minute, perhaps: the caller must still be one that is let in
        admitted = await admit(request)
    exchange = open_post(request.headers, body)
    if isinstance(exchange, LegacyBody):
        return Post(request, admitted, exchange, len(body))
    if exchange.method in STANDING:
        exchange = lasting(exchange)
    return admitted.incoming(request, exchange, len(body))


async def _attend(incoming: Incoming, receive: Receive, send: Send, headers: RawHeaders) -> int:
    """Answer a request whose stream stays open until its client hangs up or we end it."""
    stream = StandingStream(receive, send, options().stream, headers)
    counters.listeners_open.add()
    try:
        answer = await answer_of(incoming, attend(incoming, stream))
        await stream.finish(*answer)
        return answer[0]
    except asyncio.CancelledError:
        if not stream.lost:
            raise
        stream.forgive()
        return NOBODY
    finally:
        counters.listeners_open.add(-1)
        stream.end()


async def _refuse(send: Send, error: ProtocolError, headers: RawHeaders) -> int:
    counters.refused(error.code)
    log.info("refused: %s", error.message, extra={"code": error.code})
    extra = [*refusals.headers_of(error), *headers]
    status = refusals.status_of(error)
    body = refusals.body_of(error)
    await (send_json(send, status, body, extra) if body else send_empty(send, status, extra))
    return status
