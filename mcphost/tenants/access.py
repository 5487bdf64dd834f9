"""Decide what a user may do; no other module does. Every read of tenant data starts here.

Staff belong to the platform and have their permissions in every tenant. All other users have those
of their role, in the tenants where they have one.

Pages ask once, when they are requested. A service asks again, in the transaction of its change
(`lock_open_tenant`, `lock_tenant`, `require_still`, `lock_account`): the right may have been taken
away since. Each locks the actor's account first, and then the tenant, so no two of them deadlock;
whatever takes a right away holds one of these locks until its commit.
"""

from collections.abc import Collection
from copy import copy
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from mcphost.audit.records import Actor
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import (
    READING,
    ROLE_PERMISSIONS,
    STAFF_PERMISSIONS,
    Permission,
    Role,
    roles_with,
)
from mcphost.tenants.selectors import TenantSnapshot

Person = User | AnonymousUser


def visible_tenants(user: Person) -> QuerySet[Tenant]:
    """Return the tenants that a user may see in the console and the API."""
    return tenants_where(user, Permission.VIEW_TOOLS)


def tenants_where(user: Person, permission: Permission) -> QuerySet[Tenant]:
    """Return the tenants in which a user has a permission. Closed ones can only be read."""
    if not user.is_active or user.pk is None:
        return Tenant.objects.none()
    tenants = Tenant.objects.all() if permission in READING else Tenant.objects.open()
    if user.is_staff and permission in STAFF_PERMISSIONS:
        return tenants
    memberships = Membership.objects.filter(user_id=user.pk, role__in=roles_with(permission))
    return tenants.filter(pk__in=memberships.values("tenant_id"))


def allowed(user: Person, tenant: Tenant | TenantSnapshot | None, permission: Permission) -> bool:
    """Return whether a user has a permission in a tenant; for None, on the platform itself."""
    return permission in permissions(user, tenant)


def permissions(user: Person, tenant: Tenant | TenantSnapshot | None) -> frozenset[Permission]:
    """Return all permissions of a user in a tenant, in one query; for None, on the platform."""
    if not user.is_active or user.pk is None:
        return frozenset()
    granted = STAFF_PERMISSIONS if user.is_staff else frozenset[Permission]()
    if tenant is None:
        return granted
    memberships = Membership.objects.filter(user_id=user.pk, tenant_id=tenant.id)
    role = memberships.values_list("role", flat=True).first()
    if role is not None:
        granted |= ROLE_PERMISSIONS[Role(role)]
    return granted if tenant.closed_at is None else granted & READING


def holders(
    permission: Permission, users: Collection[User], tenants: Collection[UUID]
) -> frozenset[tuple[int, UUID | None]]:
    """Return the pairs of an active user and a tenant in which the user has a permission.

    A pair with None stands for the platform itself. As `allowed`, for many users in two queries.
    """
    active = [user for user in users if user.is_active]
    query = Tenant.objects.all() if permission in READING else Tenant.objects.open()
    tenant_ids = set(query.filter(pk__in=tenants).values_list("id", flat=True))
    platform = permission in STAFF_PERMISSIONS
    staff = [user.pk for user in active if user.is_staff and platform]
    members = Membership.objects.filter(
        user_id__in=[user.pk for user in active],
        tenant_id__in=tenant_ids,
        role__in=roles_with(permission),
    )
    return frozenset(
        {
            *((pk, tenant) for pk in staff for tenant in (None, *tenant_ids)),
            *members.values_list("user_id", "tenant_id"),
        }
    )


def without_staff_rights(user: User) -> User:
    """Return the account as the token of a tenant acts for it: with the rights of its role alone.

    Staff act on the platform by tokens of their own (`identity.staff_tokens`). Never save the copy.
    """
    member = copy(user)
    member.is_staff = member.is_superuser = False
    return member


def is_active_member(user_id: int, tenant_id: UUID) -> bool:
    """Return whether an account is active and has any role in a tenant that is open."""
    return Membership.objects.filter(
        user_id=user_id, user__is_active=True, tenant_id=tenant_id, tenant__closed_at=None
    ).exists()


def require(user: Person, tenant: Tenant | TenantSnapshot | None, permission: Permission) -> None:
    """Raise PermissionDenied, without a reason, unless the user has the permission."""
    if not allowed(user, tenant, permission):
        raise PermissionDenied


def require_still(
    actor: Actor, tenant: Tenant | TenantSnapshot | None, permission: Permission
) -> None:
    """Require a permission of a user who makes a change, as it is stored now; of commands, nothing.

    For None, on the platform itself: call it first in the transaction of the change. A `tenant` must
    be locked, after the actor's account. Raises PermissionDenied.
    """
    user = lock_account(actor)
    if user is not None:
        require(user, tenant, permission)


def lock_account(actor: Actor) -> User | None:
    """Lock and return the account of a user who makes a change; None for the platform itself.

    Enough for changes of what belongs to the user; all others need a permission too. Rows that refer
    to the account can still be added (`no_key`). Raises PermissionDenied unless it is active.
    """
    if actor.kind == "system":
        return None
    accounts = User.objects.select_for_update(no_key=True).filter(is_active=True)
    user = accounts.filter(pk=actor.id).first() if actor.kind == "person" else None
    if user is None:
        raise PermissionDenied
    return user


def lock_tenant(tenant_id: UUID, actor: Actor, permission: Permission | None) -> Tenant:
    """Return a tenant, locked for a change by an actor who has the permission now.

    Without a permission, any active account will do. Changes to a tenant and to its members are
    serialized by this lock. Rows that refer to the tenant can still be added (`no_key`): their
    references are checked when their transaction commits, while it holds the lock of the change log,
    and waiting for this lock there would deadlock. Raises PermissionDenied, and UnknownTenantError if
    there is no such tenant.
    """
    return _lock(Tenant.objects.all(), tenant_id, actor, permission)


def lock_open_tenant(tenant_id: UUID, actor: Actor, permission: Permission | None) -> Tenant:
    """As `lock_tenant`. Raises UnknownTenantError also if the tenant is closed."""
    return _lock(Tenant.objects.open(), tenant_id, actor, permission)


def _lock(
    tenants: QuerySet[Tenant], tenant_id: UUID, actor: Actor, permission: Permission | None
) -> Tenant:
    user = lock_account(actor)
    tenant = tenants.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise UnknownTenantError
    # Read by a statement after the lock: on PostgreSQL it sees what was committed before.
    if user is not None and permission is not None:
        require(user, tenant, permission)
    return tenant


def tenant_for(user: Person, slug: str, permission: Permission) -> Tenant:
    """Return the tenant with a slug.

    Raises PermissionDenied alike if it is unknown, and if the user lacks the permission there.
    """
    tenant = tenants_where(user, permission).filter(slug=slug).first()
    if tenant is None:
        raise PermissionDenied
    return tenant
