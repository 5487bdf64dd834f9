"""Encode a request for a row, so that another process can go on with its call.

Rows are sealed by the code that writes them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.headers import Headers
from mcphost.protocol.revisions import REVISION, Era
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.serving.context import ClientSession, Incoming, Quota
from mcphost.serving.request_state import InvalidStateError
from mcphost.tenants.selectors import TenantSnapshot


class TenantGoneError(Exception):
    """The tenant of a stored request no longer exists."""


def write(incoming: Incoming) -> bytes:
    """Encode a request for sealing.

    It includes the principal, which is compared with the current one when the call goes on.
    """
    exchange, principal, session = incoming.exchange, incoming.principal, incoming.session
    written = {
        "id": exchange.id,
        "method": exchange.method,
        "params": exchange.params,
        "meta": exchange.meta._asdict(),
        "principal": [principal.kind, principal.id, principal.token_id, sorted(principal.scopes)],
        "session": None if session is None else _written_session(session),
        "quota": list(incoming.quota),
        "leg": incoming.http_request_id,
        "source": incoming.source,
        "size": incoming.size,
        "trace_id": incoming.trace_id,
        "host": incoming.headers.get("host"),
    }
    return orjson.dumps(written, default=dict)


def read(written: bytes, tenant: TenantSnapshot) -> Incoming:
    """Decode what `write` wrote. The principal has the scopes of that time, and no label.

    Raises InvalidStateError for an unknown format.
    """
    try:
        return _read(orjson.loads(written), tenant)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InvalidStateError("not written as requests are") from None


def _read(fields: Mapping[str, Any], tenant: TenantSnapshot) -> Incoming:
    kind, id, token_id, scopes = fields["principal"]
    session = None if fields["session"] is None else _session(fields["session"], tenant.id)
    host = fields.get("host")
    era, revision = (Era.MODERN, REVISION) if session is None else (Era.LEGACY, session.revision)
    return Incoming(
        UUID(fields["leg"]),
        Exchange(
            fields["id"], fields["method"], fields["params"], Meta(**fields["meta"]), era, revision
        ),
        Headers([] if host is None else [(b"host", host.encode("latin-1"))]),
        Principal(
            PrincipalKind(kind), tenant.id, id=id, token_id=token_id, scopes=frozenset(scopes)
        ),
        tenant,
        Quota(*fields["quota"]),
        fields["source"],
        fields["size"],
        fields["trace_id"],
        session,
    )


def _written_session(session: ClientSession) -> dict[str, Any]:
    client = session.client
    return {
        "id": session.id,
        "who": session.principal_key,
        "revision": session.revision,
        "client": [client.name, client.version, client.capabilities],
        "log_level": session.log_level,
        "expires_at": session.expires_at,
    }


def _session(fields: dict[str, Any], tenant: UUID) -> ClientSession:
    return ClientSession(
        UUID(fields["id"]),
        tenant,
        fields["who"],
        fields["revision"],
        Client(*fields["client"]),
        fields["log_level"],
        expires_at=datetime.fromisoformat(fields["expires_at"]),
    )
