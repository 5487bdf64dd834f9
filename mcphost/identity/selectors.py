"""Authenticate bearer tokens from a cache, and list those that people issue.

A token's row is read once and cached until the change log reports a change of the token, of its
connection, of its owner's membership or of its tenant. `cached` never queries the database, so it may run in the event
loop; when it returns MISS, call `load` in a thread.

All refusals are the same (None), so that the caller does not learn the reason.
"""

import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID

from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.identity.models import Connection, RefreshToken, StaffToken, Token
from mcphost.identity.oauth.connection_log import connection_use
from mcphost.identity.pages import ListedRows, page_beside
from mcphost.identity.token_filters import REVOKED, TokenFilter
from mcphost.identity.tokens import ParsedToken, parse
from mcphost.runtime.call import CallUser, Principal, PrincipalKind
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Audience, Role, may_hold, may_take
from mcphost.tenants.selectors import TenantSnapshot

TOKENS_KEPT = 65_536
# Ids of no token, or of one that does not work. They have a cache of their own, so that a flood of
# guesses cannot evict real tokens.
REFUSED_KEPT = 8_192
UNKNOWN_ISSUER = "an unknown issuer"
TOKENS_PER_PAGE = 50
UUID_LENGTH = 36
_NO_QUOTES = str.maketrans("“”„", '"""')


class _CredentialUse(LastUse[str]):
    """The last use of tokens and of connections, by their ids."""

    def write(self, uses: Iterable[tuple[str, datetime]]) -> None:
        by_connection: dict[bool, list[tuple[str, datetime]]] = {False: [], True: []}
        for credential_id, used_at in uses:
            by_connection[_is_connection(credential_id)].append((credential_id, used_at))
        super().write(by_connection[False])
        connection_use.write(by_connection[True])


last_use: Final[LastUse[str]] = _CredentialUse(Token)
"""When tokens and connections were last used."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A live token: its principal, its audience, its expiry, and its own limits.

    `slug` is the tenant's. Limits are None when the token has none of its own.
    """

    principal: Principal
    audience: Audience
    slug: str
    expires_at: datetime | None
    calls_per_minute: int | None
    concurrent_calls: int | None


OwnerState = Literal["live", "disabled", "orphaned"]
"""The state of a token's owner: a service account can be disabled; any owner can be gone."""


@dataclass(frozen=True, slots=True)
class TokenListing:
    """A token as shown to users. `owner_name` is the name of a user, or of a service account: then without
    a `user_id`. `owner` says in words which of the two it is."""

    id: str
    name: str
    tenant: UUID
    slug: str
    owner: str
    owner_name: str
    user_id: int | None
    issued_by: str
    without_consent: bool
    audience: Audience
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    owner_state: OwnerState

    def state(self, now: datetime) -> Literal["live", "revoked", "expired", "disabled", "orphaned"]:
        """Return whether it works. An orphaned token is one whose owner is gone for good."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return self.owner_state


@dataclass(frozen=True, slots=True)
class _CachedToken:
    digest: bytes
    authenticated: Authenticated


_cached_tokens: Cache[str, _CachedToken] = Cache(TOKENS_KEPT)
_refused_token_ids: Cache[str, None] = Cache(REFUSED_KEPT)


def cached(
    bearer: str, audience: Audience, slug: str | None, now: datetime
) -> Authenticated | Miss | None:
    """Authenticate a bearer token for an endpoint from the cache, without a query.

    `slug` is the endpoint's tenant; None only where the token itself says which tenant is meant.
    Returns MISS for a token that is not cached, and None for one that this endpoint refuses.
    """
    parsed = parse(bearer)
    if parsed is None:
        return None
    token = _cached_tokens.get(parsed.id)
    if token is not MISS:
        return _admit(token, parsed, audience, slug, now)
    return MISS if _refused_token_ids.get(parsed.id) is MISS else None


def load(bearer: str, audience: Audience, slug: str | None, now: datetime) -> Authenticated | None:
    """Do the same from the database (one query), and cache the row for `cached`."""
    parsed = parse(bearer)
    if parsed is None:
        return None
    mark, refused_mark = _cached_tokens.mark(), _refused_token_ids.mark()
    token = _read_token(parsed.id)
    if token is None:
        _refused_token_ids.put(parsed.id, None, refused_mark)
        return None
    _cached_tokens.put(parsed.id, token, mark)
    credential_id = token.authenticated.principal.token_id
    if credential_id is not None and credential_id != parsed.id:
        _cached_tokens.put(credential_id, token, mark)  # for `cached_principal`
    return _admit(token, parsed, audience, slug, now)


def authenticate(
    bearer: str, audience: Audience, slug: str | None, now: datetime | None = None
) -> Authenticated | None:
    """Call `cached`, or else `load`: for callers that may wait for the database."""
    now = now or timezone.now()
    authenticated = cached(bearer, audience, slug, now)
    return load(bearer, audience, slug, now) if authenticated is MISS else authenticated


def cached_principal(credential_id: str) -> Principal | None:
    """Return the principal of a token or connection, if it is cached; never makes a query."""
    token = _cached_tokens.get(credential_id)
    return None if token is MISS else token.authenticated.principal


def current_principals(credential_ids: Collection[str]) -> dict[str, Principal]:
    """Return the current principals of these tokens and connections by id, from the database.

    That of an expired token is the principal of the newest one that renews it and works. Those that
    do not work are missing. At most three queries; nothing is cached.
    """
    now = timezone.now()
    connection_ids = list(filter(_is_connection, credential_ids))
    rows = list(_live(Q(pk__in=set(credential_ids).difference(connection_ids))))
    expired = [row for row in rows if row.expires_at is not None and row.expires_at <= now]
    principals = {row.pk: _principal_of_token(row) for row in rows if row not in expired}
    if expired:
        lines = {row.principal_id for row in expired}
        renewing = _live(Q(line__in=lines), Q(expires_at=None) | Q(expires_at__gt=now))
        successors = {row.line: row for row in renewing.order_by("created_at", "id")}
        for row in expired:
            if row.principal_id in successors:
                principals[row.pk] = _principal_of_token(successors[row.principal_id])
    if connection_ids:
        for connection in _live_connections(connection_ids):
            principals[str(connection.pk)] = _principal_of_connection(connection)
    return principals


def anonymous(tenant: TenantSnapshot) -> Principal | None:
    """Return the principal of a request without a credential; None unless public and open."""
    if not (tenant.public and tenant.open):
        return None
    scopes = frozenset({LIST_TOOLS, CALL_TOOLS})
    return Principal(PrincipalKind.ANONYMOUS, tenant.id, label="anonymous", scopes=scopes)


def tokens(tenant_id: UUID) -> tuple[TokenListing, ...]:
    """Return all tokens of a tenant, newest first, including those that no longer work."""
    return _listings(_issued().filter(tenant_id=tenant_id))


def token(tenant_id: UUID, token_id: str) -> TokenListing | None:
    """Return one token of a tenant, working or not; None if the tenant has none of that id."""
    return next(iter(_listings(_issued().filter(tenant_id=tenant_id, id=token_id))), None)


def token_names(ids: Iterable[str]) -> dict[str, str]:
    """Return the names of tokens, those of staff too, by id; those that are deleted are left out."""
    listed = set(ids)
    return {
        token_id: name
        for model in (Token, StaffToken)
        for token_id, name in model.objects.filter(pk__in=listed).values_list("pk", "name")
    }


def has_line(token_id: str) -> bool:
    """Return whether more than one token of a token's line is not revoked."""
    return Token.objects.filter(of_line(token_id), revoked_at=None).count() > 1


def of_line(token_id: str) -> Q:
    """Return the condition for the tokens of a token's line, which has itself, too."""
    line = Token.objects.filter(pk=token_id).values_list("line", flat=True).first() or token_id
    return Q(pk=line) | Q(line=line)


class LiveTokens(NamedTuple):
    """How many tokens and connections of MCP clients work, and how many of them have been used."""

    live: int
    used: int


def live_tokens(tenant_id: UUID, now: datetime) -> LiveTokens:
    """Count the tokens of a tenant for MCP clients whose state is `live`, and its connections."""
    owned = Q(service_account=None, membership__isnull=False) | Q(
        service_account__isnull=False,
        service_account__disabled_at=None,
        service_account__removed_at=None,
    )
    unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
    rows = _issued().filter(
        owned, unexpired, tenant_id=tenant_id, audience=Audience.MCP, revoked_at=None
    )
    signed_in = RefreshToken.objects.filter(connection=OuterRef("pk"), expires_at__gt=now)
    connections = Connection.objects.filter(
        Exists(signed_in), membership__tenant_id=tenant_id, ended_at=None
    )
    numbers = {"live": Count("pk"), "used": Count("last_used_at")}
    tokens, connected = rows.aggregate(**numbers), connections.aggregate(**numbers)
    return LiveTokens(tokens["live"] + connected["live"], tokens["used"] + connected["used"])


@dataclass(frozen=True, slots=True)
class TokenPage:
    """Tokens of a tenant, newest first, and the ids between which the next pages lie.

    `unknown`: the token that the page was to begin beside is none of the tenant.
    """

    tokens: tuple[TokenListing, ...]
    after: str = ""
    before: str = ""
    unknown: bool = False


def successor_counts(tenant_id: UUID, ids: Collection[str]) -> Mapping[str, int]:
    """Return how many tokens of its line were issued after each token of a tenant."""
    later = Token.objects.filter(
        line=OuterRef("first"), created_at__gt=OuterRef("created_at")
    ).order_by()
    counts = later.values("line").annotate(number=Count("pk")).values("number")
    rows = Token.objects.filter(tenant=tenant_id, pk__in=ids).annotate(
        first=Case(When(line="", then=F("id")), default=F("line")),
        successors=Coalesce(Subquery(counts), 0),
    )
    return dict(rows.values_list("id", "successors"))


def token_page(
    tenant_id: UUID,
    *,
    after: str = "",
    before: str = "",
    at: str = "",
    limit: int = TOKENS_PER_PAGE,
) -> TokenPage:
    """Return the tokens that are older than the token `after`, or newer than `before`.

    With `at`, the page that has this token: the first one, or else the page that begins with it.
    """
    rows = _issued().filter(tenant_id=tenant_id)
    return _token_page(ListedRows(rows), after=after, before=before, at=at, limit=limit)


def listed_tokens(
    tenant_id: UUID, token_filter: TokenFilter, now: datetime, **beside: str
) -> TokenPage:
    """Return a page of the tokens that a filter selects, the revoked ones last; `beside` is as of `token_page`."""
    rows = _issued().filter(tenant_id=tenant_id)
    listed = ListedRows(rows.filter(token_filter.condition(now)), rows, REVOKED)
    return _token_page(listed, limit=TOKENS_PER_PAGE, **beside)


def own_token_page(
    user_id: int,
    *,
    after: str = "",
    before: str = "",
    at: str = "",
    limit: int = TOKENS_PER_PAGE,
) -> TokenPage:
    """Return a page of the tokens that act for a user, in every tenant, working or not, as `token_page` does."""
    rows = _issued().filter(owner_id=user_id)
    return _token_page(ListedRows(rows), after=after, before=before, at=at, limit=limit)


def _token_page(
    listed: ListedRows[Token], *, after: str, before: str, at: str, limit: int
) -> TokenPage:
    page = page_beside(listed, after=after, before=before, at=at, limit=limit)
    if page is None:
        return TokenPage((), unknown=True)
    return TokenPage(_listings(page.rows), page.after, page.before)


def token_of(user_id: int, token_id: str) -> TokenListing | None:
    """Return one token that acts for a user, working or not; None if none of that id does."""
    return next(iter(_listings(_issued().filter(owner_id=user_id, id=token_id))), None)


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A token that was searched for. `own`: it acts for the user who searched."""

    id: str
    name: str
    slug: str
    own: bool


def matching_tokens(
    managed: QuerySet[Tenant], user_id: int, text: str, limit: int
) -> tuple[TokenMatch, ...]:
    """Return tokens by a part of the name or the beginning of the id.

    Only of the tenants `managed`, and those that act for the user.
    """
    named = Q(name__icontains=text) | Q(id__startswith=text)
    rows = _issued().filter(named, Q(tenant__in=managed) | Q(owner_id=user_id))
    values = rows.order_by("name", "id").values_list("id", "name", "tenant__slug", "owner_id")
    return tuple(
        TokenMatch(id, name, slug, owner == user_id) for id, name, slug, owner in values[:limit]
    )


def all_tokens() -> tuple[TokenListing, ...]:
    """Return the tokens of all tenants, for the platform's operators."""
    return _listings(_issued())


def expiring(
    tenants: frozenset[UUID] | None, now: datetime, until: datetime, limit: int
) -> tuple[TokenListing, ...]:
    """Return tokens of these tenants that work and expire before `until`, the first to expire first.

    None means all tenants. At most `limit` rows are read.
    """
    rows = _issued().filter(revoked_at=None, expires_at__gt=now, expires_at__lte=until)
    if tenants is not None:
        rows = rows.filter(tenant__in=tenants)
    soonest = rows.filter(tenant__closed_at=None).order_by("expires_at", "id")[:limit]
    return tuple(token for token in _listings(soonest) if token.state(now) == "live")


mark = _cached_tokens.mark
"""Return a count of cache drops: while it is unchanged, results of `cached` are still valid."""


def forget_token(credential_id: str) -> None:
    """Drop a token, or a connection with all of its tokens."""
    if _is_connection(credential_id):
        _cached_tokens.forget_where(
            lambda token: token.authenticated.principal.token_id == credential_id
        )
    else:
        _cached_tokens.forget(credential_id)
    _refused_token_ids.forget(credential_id)


def forget_person(user_id: int) -> None:
    """Drop a user's tokens, and all refused ids, because their owners are not cached."""
    _cached_tokens.forget_where(lambda token: token.authenticated.principal.user_id == user_id)
    _refused_token_ids.clear()


def forget_tenant(tenant_id: UUID) -> None:
    _cached_tokens.forget_where(lambda token: token.authenticated.principal.tenant == tenant_id)
    _refused_token_ids.clear()


def forget_all() -> None:
    _cached_tokens.clear()
    _refused_token_ids.clear()


def _admit(
    token: _CachedToken, parsed: ParsedToken, audience: Audience, slug: str | None, now: datetime
) -> Authenticated | None:
    if not hmac.compare_digest(token.digest, parsed.digest):
        return None
    authenticated = token.authenticated
    if authenticated.audience is not audience or (slug is not None and authenticated.slug != slug):
        return None
    if authenticated.expires_at is not None and authenticated.expires_at <= now:
        return None
    return authenticated


def _issued() -> QuerySet[Token]:
    """Return the tokens that people issue, with what a listing shows of each.

    Those of connections come and go by themselves.
    """
    rows = Token.objects.filter(connection=None)
    return rows.select_related("tenant", "owner", "service_account")


def _is_connection(credential_id: str) -> bool:
    """Whether it is the id of a connection, a UUID: those of tokens are shorter."""
    return len(credential_id) == UUID_LENGTH


def _live_connections(connection_ids: Collection[str]) -> QuerySet[Connection]:
    """Return the connections of active members of open tenants that have not ended."""
    rows = Connection.objects.select_related("membership__user", "membership__tenant", "client")
    return rows.filter(
        pk__in=connection_ids,
        ended_at=None,
        membership__user__is_active=True,
        membership__tenant__closed_at=None,
    )


def _live(*conditions: Q) -> QuerySet[Token]:
    """Return the unrevoked rows of active members and service accounts of open tenants."""
    member = Q(membership__user__is_active=True)
    service = Q(
        service_account__isnull=False,
        service_account__disabled_at=None,
        service_account__removed_at=None,
    )
    rows = Token.objects.select_related(
        "membership__user",
        "owner",
        "service_account",
        "tenant",
        "connection__client",
        "connection__membership__user",
    )
    return rows.filter(
        member | service,
        *conditions,
        revoked_at=None,
        tenant__closed_at=None,
        connection__ended_at=None,
    )


def _read_token(token_id: str) -> _CachedToken | None:
    row = _live(Q(pk=token_id)).first()
    return None if row is None else _cached_token_of(row)


def person_of(membership: Membership) -> CallUser:
    """Return the person of a membership, as tools see them."""
    user = membership.user
    return CallUser(membership.pk, user.get_full_name() or user.get_username())


def person_in(tenant_id: UUID, user_id: int) -> CallUser | None:
    """Return a user as a member of the tenant; None for one that is no member."""
    rows = Membership.objects.select_related("user").filter(tenant_id=tenant_id, user_id=user_id)
    return next(map(person_of, rows), None)


def _cached_token_of(row: Token) -> _CachedToken:
    principal = (
        _principal_of_token(row)
        if row.connection is None
        else _principal_of_connection(row.connection)
    )
    authenticated = Authenticated(
        principal,
        Audience(row.audience),
        row.tenant.slug,
        row.expires_at,
        row.calls_per_minute,
        row.concurrent_calls,
    )
    return _CachedToken(bytes(row.digest), authenticated)


def _principal_of_token(row: Token) -> Principal:
    manner = "issued without consent by" if row.without_consent else "issued by"
    issuer = row.issued_by or UNKNOWN_ISSUER
    return Principal(
        PrincipalKind.TOKEN if row.service_account is None else PrincipalKind.SERVICE,
        row.tenant_id,
        id=row.principal_id,
        label=f"{_owner(row)} ({quoted(row.name)}, {manner} {issuer})",
        scopes=frozenset(scope for scope in row.scopes if _holds(row, scope)),
        user_id=row.owner_id,
        token_id=row.id,
        expires_at=row.expires_at,
        user=None if row.membership is None else person_of(row.membership),
    )


def _principal_of_connection(row: Connection) -> Principal:
    """Return the principal of all access tokens of a connection. It does not expire with them."""
    membership = row.membership
    role = Role(membership.role)
    scopes = (scope for scope in row.scopes if may_take(role, scope, membership.scopes))
    return Principal(
        PrincipalKind.TOKEN,
        membership.tenant_id,
        id=str(row.pk),
        label=f"{membership.user.get_username()} ({quoted(row.client.name)}, connected)",
        scopes=frozenset(scopes),
        user_id=membership.user_id,
        token_id=str(row.pk),
        user=person_of(membership),
    )


def quoted(name: str) -> str:
    """Quote a name whose own quotation marks are replaced, so that it cannot end the quotation."""
    return f"“{name.translate(_NO_QUOTES)}”"


def _holds(row: Token, scope: str) -> bool:
    """Return whether the owner may hold a scope today.

    A token without consent keeps every scope that its issuer chose and the owner's role may hold.
    """
    if row.membership is None:
        return may_hold(Role.MEMBER, scope)
    role = Role(row.membership.role)
    if row.without_consent:
        return may_hold(role, scope)
    return may_take(role, scope, row.membership.scopes)


def _owner(row: Token) -> str:
    return _owner_name(row) if row.service_account is None else str(row.service_account)


def _owner_name(row: Token) -> str:
    if row.service_account is not None:
        return row.service_account.name
    assert row.owner is not None
    return row.owner.get_username()


def _owner_state(row: Token) -> OwnerState:
    account = row.service_account
    if account is None:
        return "orphaned" if row.membership_id is None else "live"
    if account.removed_at is not None:
        return "orphaned"
    return "live" if account.disabled_at is None else "disabled"


def _listings(rows: Iterable[Token]) -> tuple[TokenListing, ...]:
    return tuple(
        TokenListing(
            id=row.id,
            name=row.name,
            tenant=row.tenant_id,
            slug=row.tenant.slug,
            owner=_owner(row),
            owner_name=_owner_name(row),
            user_id=row.owner_id,
            issued_by=row.issued_by or UNKNOWN_ISSUER,
            without_consent=row.without_consent,
            audience=Audience(row.audience),
            scopes=tuple(row.scopes),
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            last_used_at=row.last_used_at,
            owner_state=_owner_state(row),
        )
        for row in rows
    )
