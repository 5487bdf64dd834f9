"""Whom a bearer token stands for, and which tokens there are.

A token's row is read once and remembered until the feed says that the token, its owner's
membership or its tenant changed. `cached` never touches the database and so may run in the event
loop; when it answers MISS, `load` has to be asked, in a thread.

Refusals are all alike (None): the caller learns nothing of why.
"""

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.identity.models import Token
from mcphost.identity.tokens import ParsedToken, parse
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Audience, Role, may_hold
from mcphost.tenants.selectors import TenantSnapshot

TOKENS_KEPT = 65_536
# Ids that are no token's, or a dead one's. Apart from the others: no flood of guesses pushes out
# what is known of real tokens.
REFUSED_KEPT = 8_192


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A live token: the principal it stands for, what it is good for, and its own limits.

    `slug` is the tenant's. Limits are None when the token has none of its own.
    """

    principal: Principal
    audience: Audience
    slug: str
    expires_at: datetime | None
    calls_per_minute: int | None
    concurrent_calls: int | None


@dataclass(frozen=True, slots=True)
class TokenListing:
    """A token as it is shown to people."""

    id: str
    name: str
    tenant: UUID
    slug: str
    owner: str
    audience: Audience
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    owner_is_member: bool

    def state(self, now: datetime) -> Literal["live", "revoked", "expired", "orphaned"]:
        """Whether it can be used: orphaned are those whose owner is no member any more."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "live" if self.owner_is_member else "orphaned"


@dataclass(frozen=True, slots=True)
class _Known:
    digest: bytes
    authenticated: Authenticated


_known: Cache[str, _Known] = Cache(TOKENS_KEPT)
_refused: Cache[str, None] = Cache(REFUSED_KEPT)


def cached(
    bearer: str, audience: Audience, slug: str | None, now: datetime
) -> Authenticated | Miss | None:
    """Whom a bearer token stands for at this door, if that is remembered; never a query.

    `slug` is the tenant whose door it is; None only where the token itself says which tenant is
    meant. None is returned for everything that does not open this door.
    """
    parsed = parse(bearer)
    if parsed is None:
        return None
    known = _known.get(parsed.id)
    if known is not MISS:
        return _admit(known, parsed, audience, slug, now)
    return MISS if _refused.get(parsed.id) is MISS else None


def load(bearer: str, audience: Audience, slug: str | None, now: datetime) -> Authenticated | None:
    """The same, from the database (one query), and remembered for `cached`."""
    parsed = parse(bearer)
    if parsed is None:
        return None
    mark, refused_mark = _known.mark(), _refused.mark()
    known = _read(parsed.id)
    if known is None:
        _refused.put(parsed.id, None, refused_mark)
        return None
    _known.put(parsed.id, known, mark)
    return _admit(known, parsed, audience, slug, now)


def authenticate(
    bearer: str, audience: Audience, slug: str | None, now: datetime | None = None
) -> Authenticated | None:
    """`cached`, or else `load`: for callers that may wait for the database."""
    now = now or timezone.now()
    found = cached(bearer, audience, slug, now)
    return load(bearer, audience, slug, now) if found is MISS else found


def remembered(token_id: str) -> Principal | None:
    """The principal of a token, if its row is remembered; never a query."""
    known = _known.get(token_id)
    return None if known is MISS else known.authenticated.principal


def standing(token_ids: Collection[str]) -> dict[str, Principal]:
    """What these tokens stand for now, from the database; those that are worth nothing are missing.

    One query; nothing is remembered.
    """
    now = timezone.now()
    found = (_known_of(row) for row in _live(token_ids))
    return {
        known.authenticated.principal.id: known.authenticated.principal
        for known in found
        if known.authenticated.expires_at is None or known.authenticated.expires_at > now
    }


def anonymous(tenant: TenantSnapshot) -> Principal | None:
    """The principal of a request without a credential: only a public, open tenant has one."""
    if not (tenant.public and tenant.open):
        return None
    scopes = frozenset({LIST_TOOLS, CALL_TOOLS})
    return Principal(PrincipalKind.ANONYMOUS, tenant.id, label="anonymous", scopes=scopes)


def tokens(tenant_id: UUID) -> tuple[TokenListing, ...]:
    """All tokens of a tenant, the newest first, dead ones too."""
    return _listings(Token.objects.filter(tenant_id=tenant_id))


def all_tokens() -> tuple[TokenListing, ...]:
    """The tokens of all tenants, for the platform's own people."""
    return _listings(Token.objects.all())


def mark() -> int:
    """Counts what was forgotten of tokens: while it stays, what `cached` said still holds."""
    return _known.mark()


def forget_token(token_id: str) -> None:
    _known.forget(token_id)
    _refused.forget(token_id)


def forget_person(user_id: int) -> None:
    """Forget all of a person's tokens, and the refused ones: whose those are is not remembered."""
    _known.forget_where(lambda known: known.authenticated.principal.user_id == user_id)
    _refused.clear()


def forget_tenant(tenant_id: UUID) -> None:
    _known.forget_where(lambda known: known.authenticated.principal.tenant == tenant_id)
    _refused.clear()


def forget_all() -> None:
    _known.clear()
    _refused.clear()


def _admit(
    known: _Known, parsed: ParsedToken, audience: Audience, slug: str | None, now: datetime
) -> Authenticated | None:
    if not hmac.compare_digest(known.digest, parsed.digest):
        return None
    found = known.authenticated
    if found.audience is not audience or (slug is not None and found.slug != slug):
        return None
    if found.expires_at is not None and found.expires_at <= now:
        return None
    return found


def _live(token_ids: Collection[str]) -> QuerySet[Token]:
    """The rows of those that are not revoked, of active members of open tenants."""
    return Token.objects.select_related("membership__user", "membership__tenant").filter(
        pk__in=token_ids,
        revoked_at=None,
        membership__user__is_active=True,
        membership__tenant__closed_at=None,
    )


def _read(token_id: str) -> _Known | None:
    row = _live([token_id]).first()
    return None if row is None else _known_of(row)


def _known_of(row: Token) -> _Known:
    membership = row.membership
    assert membership is not None
    role = Role(membership.role)
    principal = Principal(
        PrincipalKind.TOKEN,
        membership.tenant_id,
        id=row.id,
        label=f"{membership.user.get_username()} ({row.name})",
        scopes=frozenset(scope for scope in row.scopes if may_hold(role, scope)),
        user_id=membership.user_id,
        token_id=row.id,
        expires_at=row.expires_at,
    )
    authenticated = Authenticated(
        principal,
        Audience(row.audience),
        membership.tenant.slug,
        row.expires_at,
        row.calls_per_minute,
        row.concurrent_calls,
    )
    return _Known(bytes(row.digest), authenticated)


def _listings(rows: QuerySet[Token]) -> tuple[TokenListing, ...]:
    return tuple(
        TokenListing(
            id=row.id,
            name=row.name,
            tenant=row.tenant_id,
            slug=row.tenant.slug,
            owner=row.owner.get_username(),
            audience=Audience(row.audience),
            scopes=tuple(row.scopes),
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            last_used_at=row.last_used_at,
            owner_is_member=row.membership_id is not None,
        )
        for row in rows.select_related("tenant", "owner")
    )
