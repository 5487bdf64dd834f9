"""Sessions: what a client holds is a sealed token, what we know of it is a row (spec: basic/transports,
Session Management).

The token says for whom it is, of which revision and until when, so that a foreign or invented one
costs no look-up; whether the session still goes on, and what its client has set, the row says, which
is read for every request: what one process was told holds for the very next request to any other.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson

from mcphost.audit.records import new_id
from mcphost.calls import sessions
from mcphost.calls.sessions import SessionRow
from mcphost.protocol.legacy.capabilities import client_capabilities
from mcphost.protocol.revisions import REVISIONS, Revision
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.runtime.ports import SystemClock
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import opening, states
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session
from mcphost.serving.options import options

LONGEST_NAME = 200
_CLOCK = SystemClock()


class NoSession(Exception):  # noqa: N818 - a refusal that says what happened
    """There is no such session, not any more, or not for this caller: the client starts anew."""


async def begin(
    principal: Principal, revision: Revision, params: Mapping[str, Any]
) -> tuple[Session, str]:
    """A new session as `initialize` asks for it, with the token that stands for it."""
    identifier = new_id()
    session = Session(
        id=identifier,
        tenant=principal.tenant,
        who=_who(principal, identifier),
        revision=revision.name,
        client=_client(revision, params),
        log_level="",
        initialized=False,
        expires_at=_CLOCK.now() + timedelta(seconds=options().session_seconds),
    )
    token = await opening.seal(Purpose.SESSION, session.tenant, _payload(session))
    await in_database(sessions.begin, _row(session))
    return session, token


async def find(principal: Principal, token: str) -> Session:
    """The session of a token, for whoever it was begun by. Raises NoSession."""
    try:
        payload = await opening.unseal(Purpose.SESSION, principal.tenant, token)
    except SealError:
        raise NoSession from None
    identifier = UUID(bytes=payload[:16])
    if payload[16:] != _bound(_who(principal, identifier)):
        raise NoSession
    row = await in_database(sessions.find, identifier, principal.tenant)
    if row is None or row.revision not in REVISIONS:
        raise NoSession
    return Session(
        row.id,
        row.tenant,
        row.who,
        row.revision,
        Client(row.client["name"], row.client["version"], row.client["capabilities"]),
        row.log_level,
        row.initialized,
        row.expires_at,
    )


async def end(session: Session) -> None:
    """End it for good, on every process."""
    await in_database(sessions.end, session.id, session.tenant)


def principal_in(session: Session, principal: Principal) -> Principal:
    """The caller as its calls are bound: who has no name is known by the session."""
    if principal.kind is not PrincipalKind.ANONYMOUS:
        return principal
    return Principal(principal.kind, principal.tenant, id=str(session.id), scopes=principal.scopes)


def _who(principal: Principal, session: UUID) -> str:
    if principal.kind is PrincipalKind.ANONYMOUS:
        return f"{principal.kind}:{session}"
    return states.who(principal)


def _payload(session: Session) -> bytes:
    return session.id.bytes + _bound(session.who)


def _bound(who: str) -> bytes:
    return who.encode()


def _row(session: Session) -> SessionRow:
    client = session.client
    said = {
        "name": client.name,
        "version": client.version,
        "capabilities": dict(client.capabilities),
    }
    return SessionRow(
        session.id, session.tenant, session.who, session.revision, said, session.expires_at
    )


def _client(revision: Revision, params: Mapping[str, Any]) -> Client:
    """What the client says of itself, cut to what is kept; what is odd is not believed."""
    info = params.get("clientInfo")
    said = info if isinstance(info, Mapping) else {}
    can = params.get("capabilities")
    capabilities = client_capabilities(revision, can if isinstance(can, Mapping) else {})
    if len(orjson.dumps(capabilities)) > 16_384:
        capabilities = {name: {} for name in capabilities}
    return Client(
        str(said.get("name", ""))[:LONGEST_NAME],
        str(said.get("version", ""))[:LONGEST_NAME],
        capabilities,
    )
