"""POST and DELETE of clients of the session-based revisions (spec 2025-11-25: basic/transports).

In a session errors travel with HTTP 200, because clients of these revisions take another status for
the end of the connection. What the revisions mandate stays: 400 without a session, 404 for one that
is gone; so do the statuses that tell a client to get another credential.

Nothing of a POST is done before all of it has been looked at.
"""

from typing import Final, NamedTuple

from mcphost.observability import context, counters, tracing
from mcphost.observability.labels import BATCH, NOTIFICATION
from mcphost.protocol.eras import Era
from mcphost.protocol.errors import (
    SESSION_GONE,
    SESSION_MISSING,
    ProtocolError,
    invalid_request,
    shown,
)
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.legacy.capabilities import initialize_result
from mcphost.protocol.legacy.errors import SessionError, in_post, unsupported_revision
from mcphost.protocol.legacy.opening import (
    INITIALIZE,
    LegacyBody,
    LegacyNotification,
    LegacyRequest,
    LegacyResponse,
    fitting,
)
from mcphost.protocol.messages import response
from mcphost.protocol.params import required
from mcphost.protocol.revisions import REVISIONS, negotiate
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming, Session
from mcphost.serving.legacy import answers, calls, notifications, sessions
from mcphost.serving.legacy.calls import SessionCall
from mcphost.serving.legacy.cancelling import cancellations
from mcphost.serving.legacy.sessions import NoSession
from mcphost.transport import refusals
from mcphost.transport.admission import Admitted
from mcphost.transport.answering import told
from mcphost.transport.http import HttpRequest
from mcphost.transport.responder import send_empty, send_json
from mcphost.transport.spans import in_span
from mcphost.transport.streaming import Wire, answer, answer_batch

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
DEFAULT_LEVEL: Final = "info"
"""From which level on a client is sent log messages that has not said."""


class Post(NamedTuple):
    """One POST of a session-based client that was let in. `size` is its body's length in bytes."""

    request: HttpRequest
    admitted: Admitted
    body: LegacyBody
    size: int


def label(body: LegacyBody) -> str:
    """What a POST is counted as."""
    if body.batch:
        return BATCH
    return body.requests[0].method if body.requests else NOTIFICATION


async def post(posted: Post, wire: Wire) -> int:
    """Answer it; gives the status. Raises SessionError for what is refused as a whole."""
    try:
        if any(one.method == INITIALIZE for one in posted.body.requests):
            return await _initialize(posted, wire)
        session = await find(posted.admitted, posted.request.headers)
        body = fitting(posted.body, REVISIONS[session.revision])
        body = body.keeping(lambda one: _check_id(session, one))
        await _take(posted, session, body)
    except Exception as error:
        raise _as_answer(error, posted.body) from error
    if not (body.requests or body.refused):
        await send_empty(wire.send, 202, wire.headers)
        return 202
    return await _answer(posted, session, body, wire)


async def delete(request: HttpRequest, admitted: Admitted, wire: Wire) -> int:
    """End the session; gives the status. Raises SessionError if there is none."""
    try:
        session = await find(admitted, request.headers)
        await sessions.end(session)
    except Exception as error:
        raise in_post(told(error), request.headers.get(VERSION_HEADER)) from error
    await send_empty(wire.send, 204, wire.headers)
    return 204


async def find(admitted: Admitted, headers: Headers) -> Session:
    """The session that a request names. Raises ProtocolError: 400 for none, 404 for no such one."""
    version = headers.get(VERSION_HEADER)
    if version is not None and version not in REVISIONS:
        raise unsupported_revision(version)
    token = headers.get(SESSION_HEADER)
    if token is None:
        raise ProtocolError(SESSION_MISSING, "Mcp-Session-Id is missing: send initialize first")
    try:
        return await sessions.find(admitted.principal, token)
    except NoSession:
        raise ProtocolError(SESSION_GONE, "Session not found: send initialize again") from None


async def _initialize(posted: Post, wire: Wire) -> int:
    """Begin a session (spec: basic/lifecycle). It needs no more than a caller that was let in."""
    (request,) = posted.body.requests
    if posted.request.headers.get(SESSION_HEADER) is not None:
        await find(posted.admitted, posted.request.headers)
        raise invalid_request("This session has been initialized")
    requested = required(request.params, "protocolVersion", str, "params")
    revision = negotiate(requested)
    admitted = posted.admitted
    _, token = await sessions.begin(admitted.principal, revision, request.params)
    tenant = admitted.tenant
    result = initialize_result(revision, server_info(tenant), tenant.instructions)
    headers = [*wire.headers, (SESSION_HEADER.encode(), token.encode())]
    await send_json(wire.send, 200, response(request.id, result), headers)
    return 200


def _check_id(session: Session, request: LegacyRequest) -> None:
    """Refuse an id that means another request now. Raises ProtocolError."""
    if cancellations.is_under_way(session.id, request.id):
        raise invalid_request(f"A request with the id {shown(str(request.id))} is under way")


async def _take(posted: Post, session: Session, body: LegacyBody) -> None:
    """Notifications, and answers: whoever gave one is told so when it is kept."""
    principal = sessions.principal_in(session, posted.admitted.principal)
    for message in body.messages:
        if isinstance(message, LegacyNotification):
            await notifications.take(session, message)
        elif isinstance(message, LegacyResponse):
            await answers.take(session, principal, message)


def _as_answer(error: Exception, body: LegacyBody) -> ProtocolError:
    """What kept a POST from being answered, as the answer to its request if it has just one."""
    refusal = in_post(told(error), body.version)
    return refusal.with_id(body.alone) if refusal.request_id is None else refusal


async def _answer(posted: Post, session: Session, body: LegacyBody, wire: Wire) -> int:
    incoming = [_incoming(posted, session, one) for one in body.requests]
    refused = [_refused(error) for error in body.refused]
    wire = wire._replace(polling=REVISIONS[session.revision].polling)
    if body.batch:
        return await answer_batch([_begin(one, session) for one in incoming], refused, wire)
    answering = _answer_one(incoming[0], session, wire)
    if tracing.tracer is not None:
        answering = in_span(tracing.tracer, incoming[0], posted.request.began, answering)
    return await answering


async def _answer_one(incoming: Incoming, session: Session, wire: Wire) -> int:
    return await answer(_begin(incoming, session), wire)


def _begin(incoming: Incoming, session: Session) -> SessionCall:
    context.bind(incoming.leg, incoming.tenant.slug, incoming.trace_id)
    return calls.begin(incoming, session)


def _refused(error: SessionError) -> bytes:
    counters.refused(error.code)
    return refusals.body_of(error)


def _incoming(posted: Post, session: Session, request: LegacyRequest) -> Incoming:
    """The request as all handlers know requests: what the session knows of the client is put in."""
    client = session.client
    meta = request.meta._replace(
        log_level=session.log_level or DEFAULT_LEVEL,
        client_info={"name": client.name, "version": client.version},
        capabilities=client.capabilities,
    )
    exchange = Exchange(
        request.id, request.method, request.params, meta, Era.LEGACY, session.revision
    )
    plain = posted.admitted.incoming(posted.request, exchange, posted.size)
    principal = sessions.principal_in(session, plain.principal)
    return plain._replace(principal=principal, session=session)
