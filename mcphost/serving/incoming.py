"""One request that has been admitted: who, where, what."""

from typing import NamedTuple
from uuid import UUID

from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.runtime.call import Principal
from mcphost.tenants.selectors import TenantSnapshot


class Quota(NamedTuple):
    """How much a credential may do, besides what its tenant may. None is no limit."""

    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


NO_QUOTA = Quota()


class Incoming(NamedTuple):
    """An authenticated request of one tenant.

    `leg` names this HTTP request in the records; `source` is the peer's address; `size` is the
    body's length in bytes.
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
