"""Links to accounts: a person chooses the password of their account, when it is new or the password is lost.

Staff get the link once, to pass on. Owners of a tenant never see one of another person, who may have roles in
other tenants: it is sent to the person. It works once, for two days, and only while the account is active
and the issuer may still issue it. Choosing a password ends all other sessions of the account: Django binds a
session to the password's hash.
"""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.identity.models import AccountLink
from mcphost.tenants.access import allowed, is_active_member, lock_open_tenant, require_still
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

PREFIX: Final = "mcph_account_"
"""The log's redaction recognizes links by its first part."""
SECRET_BYTES: Final = 32
LIFETIME: Final = timedelta(days=2)
MIN_PAUSE: Final = timedelta(minutes=5)
"""Between two links that a tenant's owners have sent to a member."""
NO_ADDRESS: Final = "The account has no e-mail address. Ask the platform's staff for a link."
JUST_SENT: Final = "A link was sent within the last minutes. Wait a little before sending another."


@dataclass(frozen=True, slots=True)
class IssuedAccountLink:
    """A link that was just issued. `link` exists here and nowhere else: show it once."""

    username: str
    expires_at: datetime
    link: str = field(repr=False)


@transaction.atomic
def issue(user: User, *, actor: Actor, lock_out: bool = False) -> IssuedAccountLink:
    """Issue a link to an account; earlier ones stop working.

    With `lock_out`, the present password stops working at once, and all sessions end. Raises
    PermissionDenied unless the actor may change users, and User.DoesNotExist.
    """
    require_still(actor, None, Permission.MANAGE_MEMBERS)
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if lock_out:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return _issued(user, None, actor, {"locked_out": True} if lock_out else {})


@transaction.atomic
def issue_for_member(tenant_id: UUID, user: User, *, actor: Actor) -> IssuedAccountLink:
    """Issue a link to the account of a tenant's member, for its owner to have sent to the member.

    Raises PermissionDenied unless the actor may manage members, UnknownTenantError, and InvalidError if the
    user is no active member, has no e-mail address, or was sent a link within MIN_PAUSE.
    """
    tenant = lock_open_tenant(tenant_id, actor, Permission.MANAGE_MEMBERS)
    if not user.email or not is_active_member(user.pk, tenant_id):
        raise InvalidError({"": [NO_ADDRESS]})
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    since = timezone.now() - MIN_PAUSE
    if AccountLink.objects.filter(user=user, tenant=tenant, created_at__gt=since).exists():
        raise InvalidError({"": [JUST_SENT]})
    return _issued(user, tenant, actor, {})


def _issued(
    user: User, tenant: Tenant | None, actor: Actor, facts: dict[str, object]
) -> IssuedAccountLink:
    """Issue a link to an account that is locked."""
    now = timezone.now()
    AccountLink.objects.filter(user=user, ended_at=None).update(ended_at=now)
    link = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    row = AccountLink.objects.create(
        user=user,
        tenant=tenant,
        digest=_digest(link),
        issuer_id=actor.id if actor.kind == "person" else None,
        issued_by=actor.label,
        expires_at=now + LIFETIME,
    )
    expires = {"expires_at": row.expires_at.isoformat()}
    _record("user.link_issued", user, actor, {**expires, **facts}, tenant)
    return IssuedAccountLink(user.get_username(), row.expires_at, link)


def account_of(link: str, now: datetime) -> User | None:
    """Return the account of a link that works; None alike for unknown, used and expired links."""
    row = _find_by_link(link)
    return row.user if row is not None and _works(row, now) else None


def use(link: str, password: str, now: datetime) -> User | None:
    """Set the account's password, and end the link; None whenever `account_of` returns None."""
    user = account_of(link, now)
    if user is None:
        return None
    hashed = make_password(password)  # takes long, so before the transaction
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=user.pk).first()
        # Read again under the account's lock: another request may have used it meanwhile.
        row = _find_by_link(link)
        if user is None or row is None or not _works(row, now):
            return None
        row.ended_at = now
        row.save(update_fields=["ended_at"])
        user.password = hashed
        user.save(update_fields=["password"])
        actor = Actor.person(user.pk, user.get_username())
        _record("user.password_set", user, actor, {"link_of": row.issued_by})
    return user


def _works(row: AccountLink, now: datetime) -> bool:
    if row.ended_at is not None or row.expires_at <= now or not row.user.is_active:
        return False
    # Without an issuer it was issued by a command, or the issuer's account was deleted.
    return row.issuer is not None and allowed(row.issuer, row.tenant, Permission.MANAGE_MEMBERS)


def _find_by_link(link: str) -> AccountLink | None:
    rows = AccountLink.objects.select_related("user", "issuer", "tenant")
    return rows.filter(digest=_digest(link)).first()


def _record(
    action: str,
    user: User,
    actor: Actor,
    facts: dict[str, object],
    tenant: Tenant | None = None,
) -> None:
    record(
        action,
        actor=actor,
        tenant=tenant.pk if tenant else None,
        target=str(user.pk),
        facts={**facts, "user": user.get_username()},
    )


def _digest(link: str) -> bytes:
    return hashlib.sha256(link.encode(errors="replace")).digest()
