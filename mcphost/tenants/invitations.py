"""Invitations: how a user becomes a member of a tenant, with their own consent.

An owner names an account and a role and gets a link, once, to pass on. Neither creating nor listing
an invitation looks up whether the account exists, so owners learn nothing about other users. Only
that account can accept, and only while everything that the link offers still holds.

For a person without an account, an owner makes an invitation that sets one up: the link then lets the
person choose a password, and become a member under the name that the owner typed.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.tenants.access import allowed, lock_open_tenant, lock_tenant
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.models import Invitation, Membership
from mcphost.tenants.roles import Permission, Role
from mcphost.tenants.services import end_invitations, member_changed

PREFIX = "mcph_invitation_"
SETUP_PREFIX = "mcph_setup_"
"""Links that set up an account: all others lead to the sign-in without a query. The log's redaction
recognizes both by their first part."""
SECRET_BYTES = 32
DAYS = 7
MAX_DAYS = 30
MAX_OPEN = 100
MAX_LISTED = 200
NAME_LIMIT = 150
NAME_TAKEN = "There is an account with that name already. Sign in with it to accept the invitation."


class InvitationState(StrEnum):
    """The state of an invitation. `void`: its inviter may no longer manage members."""

    OPEN = "open"
    EXPIRED = "expired"
    VOID = "void"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class IssuedInvitation:
    """An invitation that was just created. `link` exists here and nowhere else: show it once."""

    id: UUID
    username: str
    role: Role
    expires_at: datetime
    sets_up: bool
    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class InvitationListing:
    """An invitation as the tenant's owners see it; `username` is as the inviter typed it."""

    id: UUID
    username: str
    role: str
    invited_by: str
    created_at: datetime
    expires_at: datetime
    state: InvitationState
    sets_up: bool


@dataclass(frozen=True, slots=True)
class InvitationOffer:
    """An invitation as the invited user sees it."""

    slug: str
    title: str
    username: str
    role: Role
    invited_by: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewAccount:
    """What a person who sets up an account chooses."""

    password: str = field(repr=False)
    first_name: str = ""
    last_name: str = ""


@transaction.atomic
def invite(
    tenant_id: UUID,
    username: str,
    role: Role,
    *,
    actor: Actor,
    days: int = DAYS,
    sets_up: bool = False,
) -> IssuedInvitation:
    """Let a person invite a user name to a role, in place of an open invitation for that name.

    Raises InvalidError for a bad user name or number of days, for members (they are changed in the
    list of members), and when 100 invitations are open; PermissionDenied if the actor no longer
    manages members, and UnknownTenantError if the tenant does not exist or is closed.
    """
    tenant = lock_open_tenant(tenant_id, actor, Permission.MANAGE_MEMBERS)
    inviter = User.objects.get(pk=actor.id)
    name = _check_username(username)
    if not 1 <= days <= MAX_DAYS:
        raise InvalidError({"days": [f"Give 1 to {MAX_DAYS} days."]})
    if Membership.objects.filter(tenant=tenant, user__username=name).exists():
        sentence = f"{name} already has a role here, which an invitation does not change."
        raise InvalidError({"username": [f"{sentence} Change it in the list of members."]})
    end_invitations(tenant_id, name, "another invitation took its place", actor)
    now = timezone.now()
    still_open = Invitation.objects.filter(tenant=tenant, ended_at=None, expires_at__gt=now)
    if still_open.count() >= MAX_OPEN:
        sentence = f"At most {MAX_OPEN} invitations can be open. Withdraw some first."
        raise InvalidError({"username": [sentence]})
    link = (SETUP_PREFIX if sets_up else PREFIX) + secrets.token_urlsafe(SECRET_BYTES)
    row = Invitation.objects.create(
        tenant=tenant,
        username=name,
        role=role.value,
        digest=_digest(link),
        inviter=inviter,
        invited_by=inviter.get_username(),
        sets_up=sets_up,
        expires_at=now + timedelta(days=days),
    )
    facts = {"user": name, "role": role.value, "expires_at": row.expires_at.isoformat()}
    if sets_up:
        facts["account"] = "the link may create it"
    record("member.invited", actor=actor, tenant=tenant_id, target=str(row.pk), facts=facts)
    return IssuedInvitation(row.pk, name, role, row.expires_at, sets_up, link)


@transaction.atomic
def withdraw(tenant_id: UUID, invitation_id: UUID, *, actor: Actor) -> bool:
    """Withdraw an invitation of this tenant; False if it has ended, or does not exist.

    Raises PermissionDenied if the actor no longer manages members, and UnknownTenantError.
    """
    lock_tenant(tenant_id, actor, Permission.MANAGE_MEMBERS)
    row = Invitation.objects.filter(pk=invitation_id, tenant_id=tenant_id, ended_at=None).first()
    if row is None:
        return False
    end_invitations(tenant_id, row.username, "an owner withdrew it", actor)
    return True


def listing(
    tenant_id: UUID, now: datetime, *, after: UUID | None = None, limit: int = MAX_LISTED
) -> tuple[InvitationListing, ...]:
    """Return invitations of a tenant, the latest first: those after the invitation `after`, at most `limit`.

    Reads no accounts except the inviters'.
    """
    rows = Invitation.objects.filter(tenant_id=tenant_id).order_by("-created_at", "-id")
    if after is not None:
        position = rows.filter(pk=after).values_list("created_at", "id").first()
        if position is None:
            return ()
        created_at, last = position
        rows = rows.filter(Q(created_at__lt=created_at) | Q(created_at=created_at, id__lt=last))
    return _listings(rows[:limit], now)


def invitation(tenant_id: UUID, invitation_id: UUID, now: datetime) -> InvitationListing | None:
    """Return one invitation of a tenant; None if it has none of that id."""
    rows = Invitation.objects.filter(tenant_id=tenant_id, pk=invitation_id)
    return next(iter(_listings(rows, now)), None)


def _listings(rows: "QuerySet[Invitation]", now: datetime) -> tuple[InvitationListing, ...]:
    inviting: dict[int | None, bool] = {None: False}
    listings = []
    for row in rows.select_related("inviter", "tenant"):
        if row.inviter_id not in inviting:
            inviting[row.inviter_id] = _may_invite(row)
        state = _state(row, inviting[row.inviter_id], now)
        listings.append(
            InvitationListing(
                id=row.pk,
                username=row.username,
                role=row.role,
                invited_by=row.invited_by,
                created_at=row.created_at,
                expires_at=row.expires_at,
                state=state,
                sets_up=row.sets_up,
            )
        )
    return tuple(listings)


def offer(link: str, user: User, now: datetime) -> InvitationOffer | None:
    """Return what a link offers to a user; None alike for unknown, ended and other users' links.

    More than the one row of the link is read only for the invited account.
    """
    row = _find_by_link(link)
    if row is None or not _acceptable(row, user, now):
        return None
    return _offer_of(row)


def set_up_offer(link: str, now: datetime) -> InvitationOffer | None:
    """Return what a link offers to a person without an account; None unless it sets one up.

    Reads no account but the inviter's.
    """
    row = _find_by_link(link) if link.startswith(SETUP_PREFIX) else None
    return _offer_of(row) if row is not None and _is_open(row, now) else None


def set_up(link: str, account: NewAccount, now: datetime) -> User | None:
    """Create the account that an invitation names, and make it a member; None if it sets up none.

    Raises InvalidError if there is such an account by now.
    """
    password = make_password(account.password)  # takes long, so before the transaction
    with transaction.atomic():
        invitation = _find_by_link(link)
        if invitation is None or not invitation.sets_up or not _is_open(invitation, now):
            return None
        user = User(
            username=invitation.username,
            password=password,
            first_name=account.first_name,
            last_name=account.last_name,
        )
        _save_new(user)
        actor = Actor.person(user.pk, user.get_username())
        facts = {"user": user.get_username(), "invitation": str(invitation.pk)}
        record("user.created", actor=actor, target=str(user.pk), facts=facts)
        if not _end_invitation(link, user, now, _join):
            transaction.set_rollback(True)
            return None
        return user


def _save_new(user: User) -> None:
    refusal = InvalidError({"username": [NAME_TAKEN]})
    if User.objects.filter(username__iexact=user.username).exists():
        raise refusal
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise refusal from None


def _offer_of(row: Invitation) -> InvitationOffer:
    tenant = row.tenant
    return InvitationOffer(
        tenant.slug, tenant.title, row.username, Role(row.role), row.invited_by, row.expires_at
    )


def accept(link: str, user: User, now: datetime) -> bool:
    """Make the user a member; False whenever `offer` returns None.

    Repeated by a user who accepted before and is still a member, it returns True without a change.
    """
    return _end_invitation(link, user, now, _join)


def decline(link: str, user: User, now: datetime) -> bool:
    """End an invitation without a membership; False whenever `offer` returns None."""
    return _end_invitation(link, user, now, _refuse)


@transaction.atomic
def _end_invitation(
    link: str, user: User, now: datetime, verb: Callable[[Invitation, User, datetime], None]
) -> bool:
    actor = Actor.person(user.pk, user.get_username())
    invitation = _find_by_link(link)
    if invitation is None or invitation.username != user.get_username():
        return False
    try:
        lock_open_tenant(invitation.tenant_id, actor, None)
    except (PermissionDenied, UnknownTenantError):  # closed, or the account is no longer active
        return False
    # Read again under the tenant's lock: another request may have ended it meanwhile.
    row = Invitation.objects.select_related("tenant", "inviter").get(pk=invitation.pk)
    member = Membership.objects.filter(tenant_id=row.tenant_id, user=user).exists()
    if verb is _join and row.outcome == Invitation.Outcome.ACCEPTED and member:
        return True
    if member or not _acceptable(row, user, now):
        return False
    verb(row, user, now)
    return True


def _join(row: Invitation, user: User, now: datetime) -> None:
    _save_outcome(row, Invitation.Outcome.ACCEPTED, now)
    Membership.objects.create(
        tenant_id=row.tenant_id,
        user=user,
        role=row.role,
        added_by=row.invited_by,
        accepted_at=now,
    )
    facts = {"role": row.role, "invited_by": row.invited_by, "invitation": str(row.pk)}
    actor = Actor.person(user.pk, user.get_username())
    member_changed("invitation.accepted", row.tenant_id, user, facts, actor)


def _refuse(row: Invitation, user: User, now: datetime) -> None:
    _save_outcome(row, Invitation.Outcome.DECLINED, now)
    record(
        "invitation.declined",
        actor=Actor.person(user.pk, user.get_username()),
        tenant=row.tenant_id,
        target=str(row.pk),
        facts={"user": row.username, "role": row.role, "invited_by": row.invited_by},
    )


def _save_outcome(row: Invitation, outcome: Invitation.Outcome, now: datetime) -> None:
    row.outcome, row.ended_at = outcome, now
    row.save(update_fields=["outcome", "ended_at"])


def _find_by_link(link: str) -> Invitation | None:
    rows = Invitation.objects.select_related("tenant", "inviter")
    return rows.filter(digest=_digest(link)).first()


def _acceptable(row: Invitation, user: User, now: datetime) -> bool:
    # Compared exactly, as Django compares user names at sign-in.
    if row.username != user.get_username() or not user.is_active:
        return False
    return _is_open(row, now)


def _is_open(row: Invitation, now: datetime) -> bool:
    """Whether an invitation can be accepted at this moment."""
    return (
        _state(row, True, now) is InvitationState.OPEN
        and row.tenant.closed_at is None
        and _may_invite(row)
    )


def _may_invite(row: Invitation) -> bool:
    inviter = row.inviter
    return inviter is not None and allowed(inviter, row.tenant, Permission.MANAGE_MEMBERS)


def _state(row: Invitation, may_invite: bool, now: datetime) -> InvitationState:
    if row.ended_at is not None:
        return InvitationState(row.outcome)
    if row.expires_at <= now:
        return InvitationState.EXPIRED
    return InvitationState.OPEN if may_invite else InvitationState.VOID


def _check_username(username: str) -> str:
    name = User.normalize_username(username.strip())
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        name = ""
    if not 0 < len(name) <= NAME_LIMIT:
        raise InvalidError({"username": ["Give the user name exactly as the person signs in."]})
    return name


def _digest(link: str) -> bytes:
    return hashlib.sha256(link.encode(errors="replace")).digest()
