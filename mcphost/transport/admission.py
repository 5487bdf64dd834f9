"""Who is calling, at which tenant. Until the caller is known, nothing of a tenant decides.

Unknown, foreign and closed tenants are answered alike: the same 401, the same challenge, the same
look-ups (spec: basic/authorization, Error Handling; RFC 6750).
"""

from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from mcphost.audit.records import new_id
from mcphost.identity import selectors as identity
from mcphost.identity.last_use import last_use
from mcphost.identity.selectors import anonymous
from mcphost.observability.trace import trace_id
from mcphost.protocol.errors import UNAUTHORIZED, ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.runtime.call import Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving import snapshots
from mcphost.serving.incoming import NO_QUOTA, Incoming, Quota
from mcphost.tenants import selectors as tenants
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
            trace_id=trace_id(exchange.meta.traceparent or request.headers.get("traceparent")),
        )


class _Remembered(NamedTuple):
    """Who was admitted with a credential, and what has to be as it was for that to hold."""

    admitted: Admitted
    marks: tuple[int, int]
    expires_at: datetime | None


_CLOCK = SystemClock()
_REMEMBERED_AT_MOST = 16_384

# By the digest of the credential and the slug: the same few callers come again and again.
_remembered: dict[tuple[bytes, str], _Remembered] = {}


async def admit(request: HttpRequest) -> Admitted:
    """The caller and its tenant.

    A credential that does not fit is refused also where nobody needs one. Raises ProtocolError
    (UNAUTHORIZED).
    """
    credential = request.headers.get("authorization")
    if credential is None:
        return await _anybody(request.slug)
    now = _CLOCK.now()
    key = (blake2b(credential.encode("latin-1"), digest_size=32).digest(), request.slug)
    known = _remembered.get(key)
    if known is None or known.marks != _marks() or _is_over(known.expires_at, now):
        known = await _bearer(credential, request.slug, now)
        _remember(key, known)
    last_use.note(known.admitted.principal.id, now)
    return known.admitted


async def _anybody(slug: str) -> Admitted:
    tenant = await snapshots.public_tenant(slug)
    principal = anonymous(tenant) if tenant is not None else None
    if tenant is None or principal is None:
        raise ProtocolError(UNAUTHORIZED, "This needs a bearer token")
    return Admitted(principal, tenant, NO_QUOTA)


async def _bearer(credential: str, slug: str, now: datetime) -> _Remembered:
    marks = _marks()
    scheme, _, token = credential.partition(" ")
    fits = scheme.lower() == "bearer"
    found = await snapshots.authenticated(token.strip(), slug, now) if fits else None
    tenant = None if found is None else await snapshots.tenant(found.principal.tenant)
    if found is None or tenant is None or not tenant.open:
        raise ProtocolError(UNAUTHORIZED, "This token is not good here", {"presented": True})
    quota = Quota(found.calls_per_minute, found.concurrent_calls)
    return _Remembered(Admitted(found.principal, tenant, quota), marks, found.expires_at)


def _remember(key: tuple[bytes, str], known: _Remembered) -> None:
    if len(_remembered) >= _REMEMBERED_AT_MOST:
        _remembered.clear()
    _remembered[key] = known


def _marks() -> tuple[int, int]:
    """Where the caches below stand: what is remembered holds while nothing in them was dropped."""
    return identity.mark(), tenants.mark()


def _is_over(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now
