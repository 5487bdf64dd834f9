"""One request that has been admitted: who, where, what."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.runtime.call import Client, Principal
from mcphost.serving.held import Held
from mcphost.tenants.selectors import TenantSnapshot


class Quota(NamedTuple):
    """How much a credential may do, besides what its tenant may. None is no limit."""

    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


NO_QUOTA = Quota()


class Session(NamedTuple):
    """A session of a client that speaks a session-based revision, as its row was when it was read.

    `who` is the principal it is bound to (`serving.states.who`; in an anonymous session the session
    itself). `log_level` is what the client set, empty if it set none.
    """

    id: UUID
    tenant: UUID
    who: str
    revision: str
    client: Client
    log_level: str
    initialized: bool
    expires_at: datetime


class Incoming(NamedTuple):
    """An authenticated request of one tenant.

    `leg` names this HTTP request in the records; `source` is the peer's address; `size` is the
    body's length in bytes. `session` is set where the request belongs to one; `held` where its call
    lasts longer than the request.
    """

    leg: UUID
    exchange: Exchange
    headers: Headers
    principal: Principal
    tenant: TenantSnapshot
    quota: Quota
    source: str
    size: int
    trace_id: str
    session: Session | None = None
    held: Held | None = None
