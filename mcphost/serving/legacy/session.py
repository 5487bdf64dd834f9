"""Sessions: a sealed token on the client's side, a row on the server's (spec: basic/transports,
Session Management).

The token is bound to the tenant and the principal, so a foreign or invented one is refused without
a query. Whether the session has ended, and what its client has set, is in the row. A process
remembers sessions, but checks the row for every request, together with others' requests: a change
made on one process holds for the very next request to any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import orjson

from mcphost.audit.records import new_id
from mcphost.audit.texts import clean_json, clean_text
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, writer
from mcphost.calls import sessions
from mcphost.calls.sessions import SessionRow, TooManySessionsError, session_uses
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters
from mcphost.observability.availability import availability
from mcphost.protocol.errors import SESSION_GONE, ProtocolError, over_limit, unavailable
from mcphost.protocol.legacy.capabilities import client_capabilities
from mcphost.protocol.revisions import REVISIONS, Revision
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.runtime.ports import SystemClock
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import limits, request_state, sealing
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.options import options

MAX_NAME = 200
MAX_CACHED: Final = 5000
RETRY_SECONDS = 30
"""`retryAfter` for a caller whose sessions are all in use and as many as allowed."""
_CLOCK = SystemClock()


class NoSessionError(Exception):
    """The session is unknown, has ended, or is another caller's. The client has to start anew."""


def session_gone() -> ProtocolError:
    """The error for a session that was not found."""
    return ProtocolError(SESSION_GONE, "Session not found: send initialize again")


async def begin(
    principal: Principal, revision: Revision, params: Mapping[str, Any], source: str = ""
) -> tuple[ClientSession, str]:
    """Create a session from the params of `initialize`; return it with its token.

    `source` is the caller's address. At the limit of sessions the caller's longest idle one ends.
    Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` when none is idle, or when the caller
    has begun too many per minute.
    """
    limits.count_change(principal, source)
    identifier = new_id()
    session = ClientSession(
        id=identifier,
        tenant=principal.tenant,
        principal_key=_principal_key_of(principal, identifier),
        revision=revision.name,
        client=_client(revision, params),
        log_level="",
        expires_at=_CLOCK.now() + _longest(),
        holder=limits.holder(principal, source),
    )
    token = await sealing.seal(Purpose.SESSION, session.tenant, _payload(session))
    await _write(session)
    _remember(session)
    return session, token


async def _write(session: ClientSession) -> None:
    row, max_sessions = _row(session), options().sessions.at_once
    if await _holds(sessions.begin_within(row, max_sessions)):
        return
    try:
        ended = await in_database(sessions.begin, row, max_sessions, cancellations.any_of)
    except TooManySessionsError:
        message = (
            f"This caller has the maximum of {max_sessions} sessions and none is idle: end one"
        )
        raise over_limit(message, RETRY_SECONDS) from None
    counters.sessions_displaced.add(len(ended))


async def find(principal: Principal, token: str, *, checked: bool = True) -> ClientSession:
    """The session of a token, for the caller that began it. Raises NoSessionError.

    If not `checked`, it may have ended, or its log level may have changed, in another process.
    """
    try:
        payload = await sealing.unseal(Purpose.SESSION, principal.tenant, token)
    except SealError:
        raise NoSessionError from None
    identifier = UUID(bytes=payload[:16])
    if payload[16:] != _bound(_principal_key_of(principal, identifier)):
        raise NoSessionError
    session = _cached.get(identifier)
    if session is None:
        session = await _read(identifier, principal.tenant)
    elif checked:
        session = await check(session)
    session_uses.note(identifier)
    return session


async def check(session: ClientSession) -> ClientSession:
    """The session as it is now. Raises NoSessionError if it has ended."""
    if await _holds(sessions.is_open(session.id, session.log_level)):
        return session
    return await _read(session.id, session.tenant)


async def _read(session: UUID, tenant: UUID) -> ClientSession:
    _cached.pop(session, None)
    row = await in_database(sessions.find, session, tenant)
    if row is None and session_uses.has(session):  # it was used, and that is not written yet
        await in_database(session_uses.flush)
        row = await in_database(sessions.find, session, tenant)
    if row is None or row.revision not in REVISIONS:
        raise NoSessionError
    client = Client(row.client["name"], row.client["version"], row.client["capabilities"])
    client_session = ClientSession(
        row.id,
        row.tenant,
        row.principal_key,
        row.revision,
        client,
        row.log_level,
        (row.created_at or _CLOCK.now()) + _longest(),
        row.holder,
    )
    _remember(client_session)
    return client_session


async def end(session: ClientSession) -> None:
    """End the session on every process. Raises NoSessionError if it has ended before."""
    _cached.pop(session.id, None)
    if not await _holds(sessions.end(session.id, session.tenant)):
        await check(session)
        raise unavailable("The session could not be ended; try again soon")


async def set_log_level(session: ClientSession, level: str) -> None:
    """Set the lowest level of log messages that the client wants, for its next requests."""
    _cached.pop(session.id, None)
    await in_database(sessions.set_log_level, session.id, level)


async def open_stream(session: ClientSession, stream: UUID) -> bool:
    """Register a GET stream of a session that has no subscriptions and not too many streams.

    False if it was not registered, because of that or because the session has ended.
    """
    max_streams = options().sessions.streams
    opening = sessions.open_stream(session.id, session.tenant, stream, heartbeat.id, max_streams)
    return await _holds(opening)


async def _holds(condition: Condition) -> bool:
    """Whether a condition takes hold; False also if it could not be committed."""
    if availability.unreachable:
        return False
    try:
        return await writer.submit_if(condition)
    except RecordLostError:
        return False


_cached: Final[dict[UUID, ClientSession]] = {}
"""Sessions that this process has served, the latest last: all but their log levels never change, and
those are checked."""


def _remember(session: ClientSession) -> None:
    _cached.pop(session.id, None)
    _cached[session.id] = session
    if len(_cached) > MAX_CACHED:
        del _cached[next(iter(_cached))]


def principal_in(session: ClientSession, principal: Principal) -> Principal:
    """The principal to which the session's calls are bound: if anonymous, with the session's id."""
    if principal.kind is not PrincipalKind.ANONYMOUS:
        return principal
    return replace(principal, id=str(session.id))


def _longest() -> timedelta:
    return timedelta(seconds=options().sessions.max_seconds)


def _principal_key_of(principal: Principal, session: UUID) -> str:
    if principal.kind is PrincipalKind.ANONYMOUS:
        return f"{principal.kind}:{session}"
    return request_state.principal_key(principal)


def _payload(session: ClientSession) -> bytes:
    return session.id.bytes + _bound(session.principal_key)


def _bound(principal_key: str) -> bytes:
    return principal_key.encode()


def _row(session: ClientSession) -> SessionRow:
    client = session.client
    client_fields = {
        "name": client.name,
        "version": client.version,
        "capabilities": dict(client.capabilities),
    }
    return SessionRow(
        session.id,
        session.tenant,
        session.principal_key,
        session.revision,
        client_fields,
        min(_CLOCK.now() + timedelta(seconds=options().sessions.idle_seconds), session.expires_at),
        holder=session.holder,
    )


def _client(revision: Revision, params: Mapping[str, Any]) -> Client:
    """The client's name, version and capabilities, limited in size; malformed ones are dropped."""
    info = params.get("clientInfo")
    fields = info if isinstance(info, Mapping) else {}
    can = params.get("capabilities")
    capabilities = client_capabilities(revision, can if isinstance(can, Mapping) else {})
    if len(orjson.dumps(capabilities)) > 16_384:
        capabilities = {name: {} for name in capabilities}
    return Client(
        _text(fields.get("name", "")),
        _text(fields.get("version", "")),
        clean_json(capabilities),
    )


def _text(field: Any) -> str:
    """The first MAX_NAME characters of a name or version.

    A list or an object becomes an empty text: formatting a large one takes several times as long as
    reading its request.
    """
    return "" if isinstance(field, list | dict) else clean_text(str(field)[:MAX_NAME])
