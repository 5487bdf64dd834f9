"""POST and DELETE of clients of the session-based revisions (spec 2025-11-25: basic/transports).

In a session errors have HTTP status 200, because clients of these revisions treat other statuses as
the end of the connection. The statuses that the revisions require stay: 400 without a session, 404
for one that has ended; so do those that make a client get another credential.

All of a POST is validated before any of it is executed.
"""

from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mcphost.observability import context, counters, tracing
from mcphost.observability.labels import BATCH, NOTIFICATION
from mcphost.protocol.errors import (
    SESSION_MISSING,
    ProtocolError,
    invalid_request,
    shown,
)
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.legacy.capabilities import initialize_result
from mcphost.protocol.legacy.errors import SessionError, in_session, unsupported_revision
from mcphost.protocol.legacy.opening import (
    INITIALIZE,
    LegacyBody,
    LegacyNotification,
    LegacyRequest,
    LegacyResponse,
    fitting,
)
from mcphost.protocol.messages import error_response, response
from mcphost.protocol.params import required
from mcphost.protocol.results import prepared
from mcphost.protocol.revisions import REVISIONS, Era, negotiate
from mcphost.serving.context import ClientSession, Incoming
from mcphost.serving.first_use import with_shapes
from mcphost.serving.legacy import answers, call, cancellation
from mcphost.serving.legacy import session as sessions
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.legacy.session import NoSessionError
from mcphost.serving.replies import error_for, server_info
from mcphost.transport.authentication import Admitted
from mcphost.transport.legacy.stream_response import HttpWire, Shown, answer, answer_batch
from mcphost.transport.request import HttpRequest
from mcphost.transport.response import send_empty, send_json
from mcphost.transport.tracing import in_span

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"
NO_SESSION: Final = (
    "Mcp-Session-Id is missing: send initialize first; "
    "without a session, MCP-Protocol-Version must be 2026-07-28"
)
DEFAULT_LEVEL: Final = "info"
"""The log level of a client that has not set one."""


class Post(NamedTuple):
    """One POST of an admitted session-based client. `size` is its body's length in bytes."""

    request: HttpRequest
    admitted: Admitted
    body: LegacyBody
    size: int


def label(body: LegacyBody) -> str:
    """The label under which a POST is counted in the metrics."""
    if body.batch:
        return BATCH
    return body.requests[0].method if body.requests else NOTIFICATION


async def post(posted: Post, wire: HttpWire) -> int | Shown:
    """Answer a POST; return the HTTP status, or the streams that it shows. Raises SessionError if the whole POST is refused."""
    try:
        if any(request.method == INITIALIZE for request in posted.body.requests):
            return await _initialize(posted, wire)
        answers_only = not (posted.body.requests or posted.body.refused) and all(
            isinstance(message, LegacyResponse) for message in posted.body.messages
        )
        # Responses are stored only in a session that is open: that is part of their commit.
        session = await find(posted.admitted, posted.request.headers, checked=not answers_only)
        body = await with_shapes(fitting, posted.body, REVISIONS[session.revision])
        body = body.without_refused(lambda message: _check_id(session, message))
        await _take(posted, session, body)
    except NoSessionError:
        raise _as_answer(sessions.session_gone(), posted.body) from None
    except Exception as error:
        raise _as_answer(error, posted.body) from error
    if not (body.requests or body.refused):
        await send_empty(wire.send, 202, wire.headers)
        return 202
    return await _answer(posted, session, body, wire)


async def delete(request: HttpRequest, admitted: Admitted, wire: HttpWire) -> int:
    """End the session; return the HTTP status. Raises SessionError if there is none."""
    try:
        await _end_session(await find(admitted, request.headers, checked=False))
    except Exception as error:
        raise in_session(error_for(error)) from error
    await send_empty(wire.send, 204, wire.headers)
    return 204


async def _end_session(session: ClientSession) -> None:
    try:
        await sessions.end(session)
    except NoSessionError:
        raise sessions.session_gone() from None


async def find(admitted: Admitted, headers: Headers, *, checked: bool = True) -> ClientSession:
    """Find the session; `checked` as in `serving.legacy.session.find`.

    Raises ProtocolError: 400 without an id, 404 for an unknown session.
    """
    version = headers.get(VERSION_HEADER)
    if version is not None and version not in REVISIONS:
        raise unsupported_revision(version)
    token = headers.get(SESSION_HEADER)
    if token is None:
        raise ProtocolError(SESSION_MISSING, NO_SESSION)
    try:
        return await sessions.find(admitted.principal, token, checked=checked)
    except NoSessionError:
        raise sessions.session_gone() from None


async def _initialize(posted: Post, wire: HttpWire) -> int:
    """Begin a session (spec: basic/lifecycle). Any admitted caller may."""
    (request,) = posted.body.requests
    if posted.request.headers.get(SESSION_HEADER) is not None:
        await find(posted.admitted, posted.request.headers)
        raise invalid_request("This session is already initialized")
    requested = required(request.params, "protocolVersion", str, "params")
    revision = negotiate(requested)
    admitted = posted.admitted
    source = posted.request.source
    _, token = await sessions.begin(admitted.principal, revision, request.params, source)
    tenant = admitted.tenant
    result = _initialized(revision.name, tenant.title, tenant.icon, tenant.instructions)
    headers = [*wire.headers, (SESSION_HEADER.encode(), token.encode())]
    await send_json(wire.send, 200, response(request.id, result), headers)
    return 200


@lru_cache(maxsize=512)
def _initialized(revision: str, title: str, icon: str, instructions: str) -> Mapping[str, Any]:
    """The result of `initialize`, encoded once for all sessions of a tenant."""
    server = server_info(title, icon)
    return prepared(initialize_result(REVISIONS[revision], server, instructions))


def _check_id(session: ClientSession, request: LegacyRequest) -> None:
    """Refuse an id that another request in progress has. Raises ProtocolError."""
    if cancellations.is_under_way(session.id, request.id):
        raise invalid_request(f"A request with the id {shown(str(request.id))} is in progress")


async def _take(posted: Post, session: ClientSession, body: LegacyBody) -> None:
    """Handle notifications and input responses. Returns once input responses are stored."""
    principal = sessions.principal_in(session, posted.admitted.principal)
    for message in body.messages:
        if isinstance(message, LegacyNotification):
            await cancellation.take(session, message)
        elif isinstance(message, LegacyResponse):
            await answers.take(session, principal, message)


def _as_answer(error: Exception, body: LegacyBody) -> ProtocolError:
    """The error of a refused POST, with the id of its request if it has just one."""
    refusal = in_session(error_for(error))
    return refusal.with_id(body.alone) if refusal.request_id is None else refusal


def _answer(
    posted: Post, session: ClientSession, body: LegacyBody, wire: HttpWire
) -> Awaitable[int | Shown]:
    incoming = [_incoming(posted, session, request) for request in body.requests]
    refused = [_refused(error) for error in body.refused]
    wire = wire._replace(polling=REVISIONS[session.revision].polling)
    if body.batch:
        return answer_batch([_begin(request, session) for request in incoming], refused, wire)
    if tracing.tracer is None:
        return answer(_begin(incoming[0], session), wire)
    answering = _answer_one(incoming[0], session, wire)
    return in_span(tracing.tracer, incoming[0], posted.request.began, answering)


async def _answer_one(incoming: Incoming, session: ClientSession, wire: HttpWire) -> int:
    """Begin the call in the span of its request, and show it there."""
    answered = await answer(_begin(incoming, session), wire)
    return await answered.until_end() if isinstance(answered, Shown) else answered


def _begin(incoming: Incoming, session: ClientSession) -> SessionCall:
    context.bind(incoming.http_request_id, incoming.tenant.slug, incoming.trace_id)
    return call.begin(incoming, session)


def _refused(error: SessionError) -> bytes:
    counters.refused(error.code)
    return error_response(error)


def _incoming(posted: Post, session: ClientSession, request: LegacyRequest) -> Incoming:
    """Make the request as handlers expect it, with the client's data from the session."""
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
