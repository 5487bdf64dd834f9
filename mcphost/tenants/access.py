"""Decide what a user may do; no other module does. Every read of tenant data starts here.

Staff belong to the platform and have their permissions in every tenant. All other users have those
of their role, in the tenants where they have one.
"""

from collections.abc import Collection
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from mcphost.audit.records import Actor
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
    mine = Membership.objects.filter(user_id=user.pk, role__in=roles_with(permission))
    return tenants.filter(pk__in=mine.values("tenant_id"))


def allowed(user: Person, tenant: Tenant | TenantSnapshot | None, permission: Permission) -> bool:
    """Return whether a user has a permission in a tenant; for None, on the platform itself."""
    return permission in permissions(user, tenant)


def permissions(user: Person, tenant: Tenant | TenantSnapshot | None) -> frozenset[Permission]:
    """Return all permissions of a user in a tenant, in one query; for None, on the platform."""
    if not user.is_active or user.pk is None:
        return frozenset()
    given = STAFF_PERMISSIONS if user.is_staff else frozenset[Permission]()
    if tenant is None:
        return given
    found = Membership.objects.filter(user_id=user.pk, tenant_id=tenant.id)
    role = found.values_list("role", flat=True).first()
    if role is not None:
        given |= ROLE_PERMISSIONS[Role(role)]
    return given if tenant.closed_at is None else given & READING


def holders(
    permission: Permission, users: Collection[User], tenants: Collection[UUID]
) -> frozenset[tuple[int, UUID | None]]:
    """Return the pairs of an active user and a tenant in which the user has a permission.

    A pair with None stands for the platform itself. As `allowed`, for many users in two queries.
    """
    active = [user for user in users if user.is_active]
    query = Tenant.objects.all() if permission in READING else Tenant.objects.open()
    found = set(query.filter(pk__in=tenants).values_list("id", flat=True))
    platform = permission in STAFF_PERMISSIONS
    staff = [user.pk for user in active if user.is_staff and platform]
    members = Membership.objects.filter(
        user_id__in=[user.pk for user in active],
        tenant_id__in=found,
        role__in=roles_with(permission),
    )
    return frozenset(
        {
            *((pk, tenant) for pk in staff for tenant in (None, *found)),
            *members.values_list("user_id", "tenant_id"),
        }
    )


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

    Call it in the transaction of the change, after locking the tenant: a change that held the lock
    may have taken away the permission that the user's page was entered with. Raises PermissionDenied.
    """
    if actor.kind == "person":
        user = User.objects.filter(pk=actor.id).first()
        require(user or AnonymousUser(), tenant, permission)


def tenant_for(user: Person, slug: str, permission: Permission) -> Tenant:
    """Return the tenant with a slug.

    Raises PermissionDenied alike if it is unknown, and if the user lacks the permission there.
    """
    tenant = tenants_where(user, permission).filter(slug=slug).first()
    if tenant is None:
        raise PermissionDenied
    return tenant
