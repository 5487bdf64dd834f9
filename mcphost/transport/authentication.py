"""Authenticate the caller and find its tenant.

Requests to unknown, foreign and closed tenants get the same 401, with the same challenge, after the
same look-ups (spec: basic/authorization, Error Handling; RFC 6750).
"""

from datetime import datetime
from typing import Final, NamedTuple

from mcphost.audit.records import new_id
from mcphost.identity import selectors as identity
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth.connection_log import StepKind
from mcphost.identity.selectors import anonymous, last_use
from mcphost.observability.trace import trace_id
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.runtime.call import Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving import lookups
from mcphost.serving.context import NO_QUOTA, Incoming, Quota
from mcphost.tenants import selectors as tenants
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.transport.request import HttpRequest


class Admitted(NamedTuple):
    """A caller admitted to a tenant, with the limits of its credential."""

    principal: Principal
    tenant: TenantSnapshot
    quota: Quota

    def incoming(self, request: HttpRequest, exchange: Exchange, size: int) -> Incoming:
        """Make the caller's request from its parsed body of `size` bytes."""
        return Incoming(
            http_request_id=new_id(),
            exchange=exchange,
            headers=request.headers,
            principal=self.principal,
            tenant=self.tenant,
            quota=self.quota,
            source=request.source,
            size=size,
            trace_id=trace_id(exchange.meta.traceparent or request.headers.get("traceparent")),
        )


class Admission(NamedTuple):
    """An admitted caller, and until when the admission is valid.

    `marks` are `marks()` when it was made: while they are equal, nothing was dropped from the caches.
    """

    admitted: Admitted
    marks: tuple[int, int]
    expires_at: datetime | None


_CLOCK = SystemClock()
CONNECT: Final = "The page Connect of the tenant in the console says how to set up a client"


async def admit(request: HttpRequest) -> Admission:
    """Authenticate the caller and find its tenant.

    An invalid credential is refused even where none is needed. Raises ProtocolError (UNAUTHORIZED).
    """
    before = marks()
    credential = request.headers.get("authorization")
    if credential is None:
        return Admission(await _anonymous(request.slug), before, None)
    now = _CLOCK.now()
    scheme, _, token = credential.partition(" ")
    fits = scheme.lower() == "bearer"
    access = await lookups.authenticated(token.strip(), request.slug, now) if fits else None
    tenant = None if access is None else await lookups.tenant(access.principal.tenant)
    if access is None or tenant is None or not tenant.open:
        connection_log.note_refused_token(request.slug, token.strip() if fits else None)
        message = (
            "The access token is not valid here: sign in with a browser again, or send another token. "
            f"{CONNECT}"
        )
        raise ProtocolError(UNAUTHORIZED, message, {"presented": True})
    quota = Quota(access.calls_per_minute, access.concurrent_calls)
    if access.principal.token_id is not None:
        last_use.note(access.principal.token_id, now)
    return Admission(Admitted(access.principal, tenant, quota), before, access.expires_at)


async def _anonymous(slug: str) -> Admitted:
    tenant = await lookups.public_tenant(slug)
    principal = anonymous(tenant) if tenant is not None else None
    if tenant is None or principal is None:
        connection_log.note(StepKind.CHALLENGED, slug)
        message = (
            f"Authorization is missing: sign in with a browser, or send a bearer token. {CONNECT}"
        )
        raise ProtocolError(UNAUTHORIZED, message)
    return Admitted(principal, tenant, NO_QUOTA)


def marks() -> tuple[int, int]:
    """The invalidation counts of the token and tenant caches."""
    return identity.mark(), tenants.mark()
