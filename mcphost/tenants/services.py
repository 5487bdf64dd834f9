"""Changes to tenants and members: each one transaction, one entry, one change in the change log.

All raise PermissionDenied if the actor no longer has the right (`access`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.tenants.access import lock_open_tenant, lock_tenant, require_still
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import TenantFields, check_fields, check_slug
from mcphost.tenants.models import Invitation, Membership, Tenant
from mcphost.tenants.roles import COMMON_SCOPES, Permission, Role, may_hold
from mcphost.tenants.selectors import TenantSnapshot, snapshot
from mcphost.tenants.signals import tenant_created

# The entry of an edit names long texts, but does not repeat them.
_UNQUOTED = frozenset({"icon", "instructions"})

SCOPES_LIMIT = 200
ADDED_BY_LIMIT = 200
APPOINTED = "member.appointed"
OWN_ROLE = "You cannot change your own role. Ask another owner."
INVITE_FIRST = "Users become members by accepting an invitation."
LAST_OWNER = "This is the last owner of the tenant. Make another member owner first."
HAS_OWNER = "This tenant already has an owner, who can invite members."
NO_ACCOUNT = "There is no active account with that name."


@transaction.atomic
def create_tenant(slug: str, fields: TenantFields | None = None, *, actor: Actor) -> TenantSnapshot:
    """Create a tenant; its title is its slug unless one is given.

    Raises InvalidError for bad fields and for a slug that is, or ever was, in use.
    """
    require_still(actor, None, Permission.MANAGE_TENANT)
    initial_fields = fields or TenantFields()
    row = Tenant(slug=check_slug(slug))
    columns = _columns(
        check_fields(replace(initial_fields, title=initial_fields.title.strip() or slug))
    )
    _set(row, columns)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise InvalidError({"slug": ["This slug is taken."]}) from None
    record("tenant.created", actor=actor, tenant=row.id, target=slug, facts=_quoted(columns))
    announce("tenant", tenant=row.id, object_id=slug)
    transaction.on_commit(partial(tenant_created.send_robust, sender=Tenant, tenant_id=row.id))
    return snapshot(row)


@transaction.atomic
def update_tenant(tenant_id: UUID, fields: TenantFields, *, actor: Actor) -> TenantSnapshot:
    """Set all editable fields; start from `TenantSnapshot.fields`. Writes only differences.

    Raises InvalidError, and UnknownTenantError if the tenant does not exist or is closed.
    """
    row = lock_open_tenant(tenant_id, actor, Permission.MANAGE_TENANT)
    before, after = _columns(snapshot(row).fields), _columns(check_fields(fields))
    changed = {name: value for name, value in after.items() if value != before[name]}
    if changed:
        _set(row, changed)
        row.save(update_fields=list(changed))
        record(
            "tenant.updated",
            actor=actor,
            tenant=row.id,
            target=row.slug,
            facts={"changed": sorted(changed), **_quoted(changed)},
        )
        announce("tenant", tenant=row.id, object_id=row.slug)
    return snapshot(row)


@transaction.atomic
def close_tenant(tenant_id: UUID, *, actor: Actor) -> TenantSnapshot:
    """Close a tenant for good: its tokens stop working, its history can still be read.

    Raises UnknownTenantError if it does not exist or is closed already.
    """
    row = lock_open_tenant(tenant_id, actor, Permission.MANAGE_TENANT)
    row.closed_at = timezone.now()
    row.save(update_fields=["closed_at"])
    record("tenant.closed", actor=actor, tenant=row.id, target=row.slug)
    announce("tenant", tenant=row.id, object_id=row.slug)
    return snapshot(row)


@transaction.atomic
def set_member(tenant_id: UUID, user: User, role: Role, *, actor: Actor) -> None:
    """Give a user a role, replacing the one they may have. The same role changes nothing.

    A user may change the roles of members only, and never their own: users become members by an
    invitation (`invitations`). Commands of the platform's operator may also add members.
    Raises InvalidError if one of these rules is broken and for the last owner, and
    UnknownTenantError if the tenant does not exist or is closed.
    """
    needed = None if actor.is_person(user.pk) else Permission.MANAGE_MEMBERS
    tenant = lock_open_tenant(tenant_id, actor, needed)
    before = Membership.objects.filter(tenant=tenant, user=user).first()
    if before is not None and before.role == role:
        return
    if actor.is_person(user.pk):
        raise InvalidError({"role": [OWN_ROLE]})
    if before is None and actor.kind == "person":
        raise InvalidError({"username": [INVITE_FIRST]})
    if before is not None and before.role == Role.OWNER:
        _keep_an_owner(tenant, user)
    _set_role(tenant, user, role, before, actor)


@transaction.atomic
def appoint_owner(tenant_id: UUID, username: str, *, actor: Actor) -> User:
    """Make an account owner of a tenant that has none, without its consent; for platform staff.

    Raises InvalidError if the tenant has an active owner or there is no active account of that
    name, and UnknownTenantError if the tenant does not exist or is closed.
    """
    tenant = lock_open_tenant(tenant_id, actor, None)
    require_still(actor, None, Permission.MANAGE_MEMBERS)
    if active_owners(tenant.pk).exists():
        raise InvalidError({"username": [HAS_OWNER]})
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise InvalidError({"username": [NO_ACCOUNT]})
    before = Membership.objects.filter(tenant=tenant, user=user).first()
    _set_role(tenant, user, Role.OWNER, before, actor, action=APPOINTED)
    return user


@transaction.atomic
def grant_scopes(tenant_id: UUID, user: User, scopes: Iterable[str], *, actor: Actor) -> bool:
    """Replace the set of scopes of single tools that the tokens issued by a member may hold.

    Return whether that changed it.

    Raises InvalidError for a scope that is not a tool's, or if the user is not a member, and
    UnknownTenantError if the tenant does not exist or is closed.
    """
    tenant = lock_open_tenant(tenant_id, actor, Permission.MANAGE_MEMBERS)
    tool_scopes = sorted(set(scopes) - COMMON_SCOPES)
    wrong = [scope for scope in tool_scopes if not may_hold(Role.MEMBER, scope)]
    if wrong or len(tool_scopes) > SCOPES_LIMIT:
        problems = [f"{scope!r} is not a scope of a tool." for scope in wrong]
        raise InvalidError({"scopes": problems or [f"Give at most {SCOPES_LIMIT} scopes."]})
    membership = Membership.objects.filter(tenant=tenant, user=user).first()
    if membership is None:
        raise InvalidError({"scopes": ["This person is not a member of this tenant."]})
    if membership.scopes == tool_scopes:
        return False
    facts = {"scopes": tool_scopes, "before": membership.scopes}
    membership.scopes = tool_scopes
    membership.save(update_fields=["scopes"])
    member_changed("member.scopes_set", tenant_id, user, facts, actor)
    return True


@transaction.atomic
def remove_member(tenant_id: UUID, user: User, *, actor: Actor) -> bool:
    """End a membership, and for good the tokens that depend on it. False if there is none.

    Users may remove themselves. Raises InvalidError for the last owner of an open tenant, and
    UnknownTenantError if there is no such tenant.
    """
    needed = None if actor.is_person(user.pk) else Permission.MANAGE_MEMBERS
    tenant = lock_tenant(tenant_id, actor, needed)
    # Locked, so that a token that is being issued meanwhile also ends with the membership.
    memberships = Membership.objects.select_for_update()
    membership = memberships.filter(tenant=tenant, user=user).first()
    if membership is None:
        return False
    if membership.role == Role.OWNER and tenant.closed_at is None:
        _keep_an_owner(tenant, user)
    membership.delete()
    end_invitations(tenant_id, user.get_username(), "the membership ended", actor)
    member_changed("member.removed", tenant_id, user, {"before": membership.role}, actor)
    return True


def keep_owners(user: User) -> None:
    """Lock a user's tenants, and require that each has another active owner.

    Call it in the transaction that deactivates the account, after locking the account. Raises
    InvalidError.
    """
    ids = list(_owned(user).values_list("pk", flat=True))
    # Locked in one order, so that two such changes at once do not deadlock.
    tenants = Tenant.objects.open().select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    alone = [tenant.slug for tenant in tenants if is_last_owner(tenant, user)]
    if alone:
        sentence = f"{user.get_username()} is the last owner of {', '.join(alone)}."
        raise InvalidError({"is_active": [f"{sentence} Make another member owner there first."]})


def owned_alone(user: User) -> list[Tenant]:
    """Return the open tenants that have no other active owner."""
    return [tenant for tenant in _owned(user) if is_last_owner(tenant, user)]


def _owned(user: User) -> QuerySet[Tenant]:
    owned = Tenant.objects.open().filter(memberships__user=user, memberships__role=Role.OWNER)
    return owned.order_by("pk")


def active_owners(tenant_id: UUID) -> QuerySet[Membership]:
    """Return the memberships of the owners whose accounts are active."""
    return Membership.objects.filter(tenant_id=tenant_id, role=Role.OWNER, user__is_active=True)


def end_invitations(tenant_id: UUID, username: str, reason: str, actor: Actor) -> None:
    """Withdraw the open invitations for a name, so no earlier link overrides a later decision."""
    opened = Invitation.objects.filter(tenant_id=tenant_id, username=username, ended_at=None)
    for invitation in opened:
        invitation.outcome = Invitation.Outcome.WITHDRAWN
        invitation.ended_at = timezone.now()
        invitation.save(update_fields=["outcome", "ended_at"])
        facts = {"user": username, "role": invitation.role, "reason": reason}
        target = str(invitation.pk)
        record("invitation.withdrawn", actor=actor, tenant=tenant_id, target=target, facts=facts)


def _set_role(
    tenant: Tenant,
    user: User,
    role: Role,
    before: Membership | None,
    actor: Actor,
    *,
    action: str = "member.set",
) -> None:
    facts = {"role": role.value, "before": before.role if before else None}
    membership = before or Membership(tenant=tenant, user=user)
    if before is None or action == APPOINTED:
        membership.added_by = (actor.label or actor.kind)[:ADDED_BY_LIMIT]
        membership.accepted_at = None
    membership.role = role.value
    membership.save()
    end_invitations(tenant.pk, user.get_username(), "a role was given directly", actor)
    member_changed(action, tenant.pk, user, facts, actor)


def _keep_an_owner(tenant: Tenant, user: User) -> None:
    if is_last_owner(tenant, user):
        raise InvalidError({"role": [LAST_OWNER]})


def is_last_owner(tenant: Tenant, user: User) -> bool:
    """Return whether the user is the only active owner of a tenant."""
    owners = set(active_owners(tenant.pk).values_list("user_id", flat=True))
    return owners == {user.pk}


def member_changed(
    action: str, tenant_id: UUID, user: User, facts: Mapping[str, Any], actor: Actor
) -> None:
    """Record a change of a membership, and have every process read the user again."""
    named = {**facts, "user": user.get_username()}
    record(action, actor=actor, tenant=tenant_id, target=str(user.pk), facts=named)
    announce("member", tenant=tenant_id, object_id=str(user.pk))


def _columns(fields: TenantFields) -> dict[str, Any]:
    lists = {
        "allowed_origins": list(fields.allowed_origins),
        "outgoing_hosts": list(fields.outgoing_hosts),
    }
    return asdict(fields) | lists


def _set(row: Tenant, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(row, name, value)


def _quoted(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name not in _UNQUOTED}
