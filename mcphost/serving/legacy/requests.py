"""A request of a session as it is kept beside its stream, for a process that has to go on with it."""

from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from mcphost.protocol.eras import Era
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.headers import Headers
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.serving.incoming import Incoming, Quota, Session
from mcphost.tenants.selectors import TenantSnapshot


def write(incoming: Incoming) -> bytes:
    """The request as it is sealed. Who made it is in there to be held against what holds by then."""
    exchange, principal, session = incoming.exchange, incoming.principal, incoming.session
    assert session is not None
    client = session.client
    written = {
        "id": exchange.id,
        "method": exchange.method,
        "params": exchange.params,
        "meta": exchange.meta._asdict(),
        "principal": [principal.kind, principal.id, principal.token_id, sorted(principal.scopes)],
        "session": {
            "id": session.id,
            "who": session.who,
            "revision": session.revision,
            "client": [client.name, client.version, client.capabilities],
            "log_level": session.log_level,
            "expires_at": session.expires_at,
        },
        "quota": list(incoming.quota),
        "leg": incoming.leg,
        "source": incoming.source,
        "size": incoming.size,
        "trace_id": incoming.trace_id,
    }
    return orjson.dumps(written, default=dict)


def read(written: bytes, tenant: TenantSnapshot) -> Incoming:
    """What `write` wrote: its principal is as it was, by what it is known by."""
    said: dict[str, Any] = orjson.loads(written)
    kind, id, token_id, scopes = said["principal"]
    session = _session(said["session"], tenant.id)
    return Incoming(
        UUID(said["leg"]),
        Exchange(
            said["id"],
            said["method"],
            said["params"],
            Meta(**said["meta"]),
            Era.LEGACY,
            session.revision,
        ),
        Headers([]),
        Principal(
            PrincipalKind(kind), tenant.id, id=id, token_id=token_id, scopes=frozenset(scopes)
        ),
        tenant,
        Quota(*said["quota"]),
        said["source"],
        said["size"],
        said["trace_id"],
        session,
    )


def _session(said: dict[str, Any], tenant: UUID) -> Session:
    return Session(
        UUID(said["id"]),
        tenant,
        said["who"],
        said["revision"],
        Client(*said["client"]),
        said["log_level"],
        initialized=True,
        expires_at=datetime.fromisoformat(said["expires_at"]),
    )
