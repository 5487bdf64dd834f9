"""The MCP endpoint, `/t/<tenant>/mcp`: a plain ASGI application.

Not a Channels consumer: that one sees neither a hang-up nor a channel-layer message while it
handles a request.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from django.db import InterfaceError, OperationalError

from mcphost.observability import context, counters, tracing
from mcphost.observability.labels import NO_METHOD, NOTIFICATION
from mcphost.protocol import messages
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.protocol.opening import open_message
from mcphost.serving.dispatch import STANDING, attend, dispatch
from mcphost.serving.incoming import Incoming
from mcphost.serving.lifecycle import ensure_started
from mcphost.transport import cors, guard, refusals
from mcphost.transport.admission import Admitted, admit
from mcphost.transport.bodies import ClientGoneError, Receive, read_body
from mcphost.transport.conversation import Conversation
from mcphost.transport.http import HttpRequest
from mcphost.transport.options import options
from mcphost.transport.responder import (
    RawHeaders,
    Send,
    send_empty,
    send_json,
)
from mcphost.transport.spans import in_span
from mcphost.transport.standing import StandingStream

AWAY = (OperationalError, InterfaceError)
"""What the ORM raises when there is no database to ask."""
RETRY_SECONDS = 2
NOBODY = 0
"""Stands for the status of an answer that nobody was there for."""

Answer = tuple[int, bytes, RawHeaders]

PATH = re.compile(r"/t/([^/]+)/mcp")

log = logging.getLogger(__name__)


async def endpoint(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one HTTP request below `/t/`. Everything there is answered here, in JSON."""
    ensure_started()
    match = PATH.fullmatch(scope["path"])
    if match is None:
        await send_json(send, 404, b'{"error":"not_found"}', cors.ANYONE)
        return
    counters.requests.add()
    began, method, status = time.perf_counter(), NO_METHOD, NOBODY
    try:
        entered = await _enter(HttpRequest.from_scope(scope, match[1]), receive, send)
        if isinstance(entered, int):
            status = entered
            return
        incoming, headers = entered
        method = incoming.exchange.method
        if incoming.exchange.id is None:
            method = NOTIFICATION
            await send_empty(send, 202, headers)
            status = 202
            return
        context.bind(incoming.leg, incoming.tenant.slug, incoming.trace_id)
        answer = _attend if method in STANDING else _converse
        answering = answer(incoming, receive, send, headers)
        if tracing.tracer is not None:
            answering = in_span(tracing.tracer, incoming, began, answering)
        status = await answering
    finally:
        counters.request_ended(time.perf_counter() - began, method, status)


async def _enter(
    request: HttpRequest, receive: Receive, send: Send
) -> tuple[Incoming, RawHeaders] | int:
    """The request of somebody who may speak here, with the headers that its answer needs; or the
    status of the answer that it got at once."""
    headers: RawHeaders = cors.ANYONE
    try:
        guard.check_host(request)
        if request.method == "OPTIONS":
            asked = request.headers.get("access-control-request-headers") or ""
            await send_empty(send, 204, cors.preflight(asked))
            return 204
        guard.check_post(request)
        admitted = await admit(request)
        headers = ()
        headers = cors.allow(request.headers.get("origin"), admitted.tenant.allowed_origins)
        return await _open(request, admitted, receive), headers
    except ClientGoneError:
        return NOBODY
    except ProtocolError as error:
        return await _refuse(send, error, headers)
    except AWAY as error:
        return await _refuse(send, _unavailable(error), headers)


async def _open(request: HttpRequest, admitted: Admitted, receive: Receive) -> Incoming:
    body, waited = await read_body(receive, options().body_limit, options().body_seconds)
    if waited:  # for half a minute, perhaps: the caller must still be one that is let in
        admitted = await admit(request)
    exchange = open_message(request.headers, body)
    return admitted.incoming(request, exchange, len(body))


async def _converse(incoming: Incoming, receive: Receive, send: Send, headers: RawHeaders) -> int:
    """Answer a request, and cancel its work when the client hangs up or reads too slowly, or when
    its authority is taken away. Gives the status of the answer."""
    conversation = Conversation(receive, send, options().stream, headers, incoming.principal)
    status = NOBODY
    try:
        answer = await _answer(incoming, dispatch(incoming, conversation))
        if conversation.refusal is None:
            await conversation.finish(*answer)
            status = answer[0]
    except asyncio.CancelledError:
        if not conversation.lost and conversation.refusal is None:
            raise
    finally:
        status = await _conclude(incoming, conversation) or status
    return status


async def _conclude(incoming: Incoming, conversation: Conversation) -> int:
    """Tell a caller that may not go on why, if it is still there, and let go of everything."""
    status = NOBODY
    try:
        if conversation.lost or conversation.refusal is not None:
            conversation.forgive()
        if conversation.refusal is not None and not conversation.lost:
            answer = _refusal(incoming, conversation.refusal)
            status = answer[0]
            await conversation.finish(*answer)
    except asyncio.CancelledError:  # servers tell of a hang-up also when all has been sent
        if not conversation.lost:
            raise
        conversation.forgive()
    finally:
        conversation.end()
    return status


async def _attend(incoming: Incoming, receive: Receive, send: Send, headers: RawHeaders) -> int:
    """Answer a request whose stream stays open until its client hangs up or we end it."""
    stream = StandingStream(receive, send, options().stream, headers)
    counters.listeners_open.add()
    try:
        answer = await _answer(incoming, attend(incoming, stream))
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


async def _answer(incoming: Incoming, work: Awaitable[Mapping[str, Any]]) -> Answer:
    identifier = incoming.exchange.id
    assert identifier is not None
    try:
        return 200, messages.response(identifier, await work), ()
    except ProtocolError as error:
        return _refusal(incoming, error)
    except AWAY as error:
        return _refusal(incoming, _unavailable(error))
    except Exception:
        log.exception("a request failed")
        return _refusal(incoming, ProtocolError(INTERNAL_ERROR, "Internal error"))


def _unavailable(error: Exception) -> ProtocolError:
    """What to say when something is not remembered and cannot be read now."""
    log.error("the database is away: %s", type(error).__name__)
    again = {"retryAfter": RETRY_SECONDS}
    return ProtocolError(UNAVAILABLE, "The database is away; try again soon", again)


def _refusal(incoming: Incoming, error: ProtocolError) -> Answer:
    counters.refused(error.code)
    tracing.refused(error.code)
    named = error.with_id(incoming.exchange.id)
    return refusals.status_of(named), refusals.body_of(named), refusals.headers_of(named)


async def _refuse(send: Send, error: ProtocolError, headers: RawHeaders) -> int:
    counters.refused(error.code)
    log.info("refused: %s", error.message, extra={"code": error.code})
    extra = [*refusals.headers_of(error), *headers]
    status = refusals.status_of(error)
    await send_json(send, status, refusals.body_of(error), extra)
    return status
