"""Who is calling, at which tenant. Until the caller is known, nothing of a tenant decides.

Unknown, foreign and closed tenants are answered alike: the same 401, the same challenge, the same
look-ups (spec: basic/authorization, Error Handling; RFC 6750).
"""

from typing import NamedTuple

from django.utils import timezone

from mcphost.audit.records import new_id
from mcphost.identity.last_use import last_use
from mcphost.identity.selectors import anonymous
from mcphost.observability.trace import trace_id
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.runtime.call import Principal
from mcphost.serving import snapshots
from mcphost.serving.incoming import NO_QUOTA, Incoming, Quota
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.transport.http import HttpRequest


class Admitted(NamedTuple):
    """A caller that may speak to a tenant, with the limits of its credential."""

    principal: Principal
    tenant: TenantSnapshot
    quota: Quota

    def incoming(self, request: HttpRequest, exchange: Exchange, size: int) -> Incoming:
        """The caller's request, once its body of `size` bytes has been opened."""
        return Incoming(
            leg=new_id(),
            exchange=exchange,
            headers=request.headers,
            principal=self.principal,
            tenant=self.tenant,
            quota=self.quota,
            source=request.source,
            size=size,
            trace_id=trace_id(exchange.meta.traceparent),
        )


async def admit(request: HttpRequest) -> Admitted:
    """The caller and its tenant.

    A credential that does not fit is refused also where nobody needs one. Raises ProtocolError
    (UNAUTHORIZED).
    """
    credential = request.headers.get("authorization")
    if credential is None:
        return await _anybody(request.slug)
    return await _bearer(credential, request.slug)


async def _anybody(slug: str) -> Admitted:
    tenant = await snapshots.public_tenant(slug)
    principal = anonymous(tenant) if tenant is not None else None
    if tenant is None or principal is None:
        raise ProtocolError(UNAUTHORIZED, "This needs a bearer token")
    return Admitted(principal, tenant, NO_QUOTA)


async def _bearer(credential: str, slug: str) -> Admitted:
    scheme, _, token = credential.partition(" ")
    now = timezone.now()
    fits = scheme.lower() == "bearer"
    found = await snapshots.authenticated(token.strip(), slug, now) if fits else None
    tenant = None if found is None else await snapshots.tenant(found.principal.tenant)
    if found is None or tenant is None or not tenant.open:
        raise ProtocolError(UNAUTHORIZED, "This token is not good here", {"presented": True})
    last_use.note(found.principal.id, now)
    return Admitted(found.principal, tenant, Quota(found.calls_per_minute, found.concurrent_calls))
