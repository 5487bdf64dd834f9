"""Connections: what members let clients do for them, from consent to the end.

Each change is one transaction, with one entry, announced to all processes. All of them, and the
token endpoint, lock the membership first, so that no two deadlock, and a member who is removed in
the middle of a flow gets nothing.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.identity.models import (
    AuthorizationCode,
    Connection,
    OAuthClient,
    RefreshToken,
    Token,
)
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth.connection_log import StepKind
from mcphost.identity.pages import ListedRows, page_beside
from mcphost.tenants.access import lock_account, lock_tenant
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Permission, Role, may_take

CODE_LIFETIME: Final = timedelta(seconds=60)
PER_PAGE: Final = 50
AUTHORIZATION_SERVER: Final = Actor.system("authorization server")
"""The actor of what no person does."""


class Consent(NamedTuple):
    """What a member consents to: a client's checked authorization request."""

    client: OAuthClient
    redirect_uri: str
    code_challenge: str
    scopes: tuple[str, ...]


_SAME_CONSENT: Final = timedelta(minutes=1)


class ConnectionListing(NamedTuple):
    """A connection as shown to users. `ended_at` is null while it lives.

    `document_host` is the host of the client's metadata document, empty if it registered itself.
    `expires_at` is when its last refresh token expires, null some time after that.
    """

    id: UUID
    tenant: UUID
    slug: str
    owner: str
    client: str
    document_host: str
    scopes: tuple[str, ...]
    created_at: datetime
    consented_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    ended_at: datetime | None

    @property
    def renewed_at(self) -> datetime | None:
        """When the member consented again; None if the first consent, which connected it, is the last."""
        return self.consented_at if self.consented_at - self.created_at > _SAME_CONSENT else None

    def state(self, now: datetime) -> Literal["live", "expired", "ended"]:
        """Return whether its client can still act. After it expired, the client needs a new consent."""
        if self.ended_at is not None:
            return "ended"
        return "live" if self.expires_at is not None and self.expires_at > now else "expired"


class ConnectionPage(NamedTuple):
    """Connections of a tenant, newest first, and the ids between which the next pages lie.

    `unknown`: the connection that the page was to begin beside is none of the tenant.
    """

    connections: tuple[ConnectionListing, ...]
    after: str = ""
    before: str = ""
    unknown: bool = False


@transaction.atomic
def consent(membership_id: UUID, consented: Consent, *, actor: Actor) -> str:
    """Record a member's consent; return the code for the client, which is valid for a minute.

    The actor is the member. Scopes that the member's role may not take are left out. Raises
    PermissionDenied if the membership is not the actor's, has ended, or none of the scopes is left,
    and if the client is gone.
    """
    user = lock_account(actor)
    membership = live_membership(membership_id)
    if membership is None or user is None or membership.user_id != user.pk:
        raise PermissionDenied
    scopes = takeable(membership, consented.scopes)
    # Locked, so that it is not pruned meanwhile.
    client = OAuthClient.objects.select_for_update().filter(pk=consented.client.pk).first()
    if client is None or not scopes:
        raise PermissionDenied
    code = secrets.token_urlsafe(32)
    AuthorizationCode.objects.create(
        id=digest(code),
        membership=membership,
        client=client,
        redirect_uri=consented.redirect_uri,
        code_challenge=consented.code_challenge,
        scopes=list(scopes),
        # By the database's clock: another process may redeem it, and their clocks differ.
        expires_at=Now() + CODE_LIFETIME,
    )
    facts = {
        "client": consented.client.name,
        "scopes": list(scopes),
        "redirect_uri": consented.redirect_uri,
    }
    _record("connection.consented", membership, consented.client.pk, actor, facts)
    connection_log.write([connection_log.of_person(membership, client, StepKind.CONSENTED)])
    return code


def takeable(membership: Membership, scopes: Collection[str]) -> tuple[str, ...]:
    """Return those of the scopes that the member may give to a client today, sorted."""
    role = Role(membership.role)
    return tuple(sorted({scope for scope in scopes if may_take(role, scope, membership.scopes)}))


def live_membership(membership_id: UUID) -> Membership | None:
    """Lock and return the membership of an active account in an open tenant; None if there is none."""
    rows = Membership.objects.select_for_update(of=("self",)).select_related("user", "tenant")
    return rows.filter(pk=membership_id, user__is_active=True, tenant__closed_at=None).first()


def connect(membership: Membership, code: AuthorizationCode) -> Connection:
    """Make or find the connection of a redeemed code, whose membership is locked.

    It has the scopes of this consent from now on.
    """
    connection = Connection.objects.filter(
        membership=membership, client_id=code.client_id, ended_at=None
    ).first()
    now = timezone.now()
    if connection is None:
        connection = Connection.objects.create(
            membership=membership, client_id=code.client_id, scopes=code.scopes, consented_at=now
        )
        actor = Actor.person(membership.user_id, membership.user.get_username())
        facts = {"client": connection.client.name, "scopes": code.scopes}
        _record("connection.made", membership, str(connection.pk), actor, facts)
        return connection
    changed = connection.scopes != code.scopes
    connection.scopes, connection.consented_at = code.scopes, now
    connection.save(update_fields=["scopes", "consented_at"])
    if changed:
        announce("token", tenant=membership.tenant_id, object_id=str(connection.pk))
    return connection


@transaction.atomic
def end(tenant_id: UUID, connection_id: UUID, *, actor: Actor) -> bool:
    """End a connection of this tenant for good; False if it has ended, or does not exist.

    Members end their own. Raises PermissionDenied if the actor no longer manages tokens, and
    UnknownTenantError if there is no such tenant.
    """
    rows = Connection.objects.filter(pk=connection_id, membership__tenant_id=tenant_id)
    owner_id = rows.values_list("membership__user_id", flat=True).first()
    if owner_id is not None and actor.is_person(owner_id):
        lock_account(actor)
    else:
        lock_tenant(tenant_id, actor, Permission.MANAGE_TOKENS)
    # As the token endpoint does: what it issues meanwhile also ends.
    Membership.objects.select_for_update().filter(connections=connection_id).first()
    connection = rows.select_related("membership", "client").first()
    if connection is None or not end_now(connection, "revoked", actor):
        return False
    # Nor does a code make another connection that its client has got, but not redeemed.
    codes = AuthorizationCode.objects.filter(membership_id=connection.membership_id)
    codes.filter(client_id=connection.client_id).delete()
    return True


def end_now(connection: Connection, reason: str, actor: Actor) -> bool:
    """End a connection in the caller's transaction, with its codes and tokens; False if it has ended.

    What its client has open ends in every process once this is announced.
    """
    ended = Connection.objects.filter(pk=connection.pk, ended_at=None)
    if not ended.update(ended_at=timezone.now()):
        return False
    AuthorizationCode.objects.filter(connection=connection).delete()
    RefreshToken.objects.filter(connection=connection).delete()
    Token.objects.filter(connection=connection).delete()
    membership = connection.membership
    facts = {"client": connection.client.name, "reason": reason}
    _record("connection.ended", membership, str(connection.pk), actor, facts)
    connection_log.write(
        [connection_log.of_person(membership, connection.client, StepKind.ENDED, reason)]
    )
    announce("token", tenant=membership.tenant_id, object_id=str(connection.pk))
    return True


def connection_page(
    tenant_id: UUID, *, after: str = "", before: str = "", at: str = ""
) -> ConnectionPage:
    """Return the connections of a tenant that have not ended, in pages as `page_beside` makes them."""
    return _connection_page(_of_tenant(tenant_id), after, before, at, PER_PAGE)


def own_connection_page(
    user_id: int, *, after: str = "", before: str = "", at: str = "", limit: int = PER_PAGE
) -> ConnectionPage:
    """Return a page of the connections of a user in open tenants that have not ended, the newest first."""
    return _connection_page(_of_user(user_id), after, before, at, limit)


def _connection_page(
    rows: QuerySet[Connection], after: str, before: str, at: str, limit: int
) -> ConnectionPage:
    listed = ListedRows(rows.filter(ended_at=None), among=rows)
    page = page_beside(listed, after=after, before=before, at=at, limit=limit)
    if page is None:
        return ConnectionPage((), unknown=True)
    return ConnectionPage(_listings(page.rows), page.after, page.before)


def connection(tenant_id: UUID, connection_id: UUID) -> ConnectionListing | None:
    """Return one connection of a tenant, ended or not; None if the tenant has none of that id."""
    return next(iter(_listings(_of_tenant(tenant_id).filter(pk=connection_id))), None)


def connection_of(user_id: int, connection_id: UUID) -> ConnectionListing | None:
    """Return one connection of a user in an open tenant, ended or not; None if there is none."""
    return next(iter(_listings(_of_user(user_id).filter(pk=connection_id))), None)


def matching_connections(
    managed: QuerySet[Tenant], user_id: int, text: str, limit: int
) -> tuple[ConnectionListing, ...]:
    """Return connections that have not ended by a part of the client's name.

    Only those of the tenants `managed`, and the user's.
    """
    own = Q(membership__user_id=user_id, membership__tenant__closed_at=None)
    rows = _described().filter(
        Q(membership__tenant__in=managed) | own, client__name__icontains=text, ended_at=None
    )
    return _listings(rows.order_by("client__name", "pk")[:limit])


def _of_tenant(tenant_id: UUID) -> QuerySet[Connection]:
    return _described().filter(membership__tenant_id=tenant_id)


def _of_user(user_id: int) -> QuerySet[Connection]:
    return _described().filter(membership__user_id=user_id, membership__tenant__closed_at=None)


def _described() -> QuerySet[Connection]:
    """Return all connections, with what a listing shows of each."""
    return Connection.objects.select_related("membership__tenant", "membership__user", "client")


def digest(secret: str) -> str:
    """Return what is stored of a code or a refresh token: its SHA-256 in hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _record(
    action: str, membership: Membership, target: str, actor: Actor, facts: dict[str, Any]
) -> None:
    record(action, actor=actor, tenant=membership.tenant_id, target=target, facts=facts)


def _listings(rows: Iterable[Connection]) -> tuple[ConnectionListing, ...]:
    read = list(rows)
    refresh_tokens = RefreshToken.objects.filter(connection__in=[row.pk for row in read])
    expiries = refresh_tokens.values_list("connection").annotate(last=Max("expires_at"))
    expires_at = dict(expiries.order_by())
    return tuple(
        ConnectionListing(
            id=row.pk,
            tenant=row.membership.tenant_id,
            slug=row.membership.tenant.slug,
            owner=row.membership.user.get_username(),
            client=row.client.name,
            document_host=row.client.document_host,
            scopes=takeable(row.membership, row.scopes),
            created_at=row.created_at,
            consented_at=row.consented_at,
            last_used_at=row.last_used_at,
            expires_at=expires_at.get(row.pk),
            ended_at=row.ended_at,
        )
        for row in read
    )
