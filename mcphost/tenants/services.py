"""Changes to tenants and their members: each one transaction, one record, one change in the feed."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.fields import TenantFields, check_fields, check_slug
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.selectors import TenantSnapshot, snapshot
from mcphost.tenants.signals import tenant_created

# Long texts are named in the record of an edit, not repeated in it.
_UNQUOTED = frozenset({"icon", "instructions"})


@transaction.atomic
def create_tenant(slug: str, fields: TenantFields | None = None, *, actor: Actor) -> TenantSnapshot:
    """Make a tenant; its title is its slug unless one is given.

    Raises InvalidError for bad fields and for a slug that is, or ever was, somebody's.
    """
    given = fields or TenantFields()
    row = Tenant(slug=check_slug(slug))
    columns = _columns(check_fields(replace(given, title=given.title.strip() or slug)))
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
    """Set all editable fields; start from `TenantSnapshot.fields`. No difference changes nothing.

    Raises InvalidError, and UnknownTenantError if the tenant is not there or closed.
    """
    row = _open_tenant(tenant_id)
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
    """Close a tenant for good: its tokens are dead, its history can still be read.

    Raises UnknownTenantError if it is not there or closed already.
    """
    row = _open_tenant(tenant_id)
    row.closed_at = timezone.now()
    row.save(update_fields=["closed_at"])
    record("tenant.closed", actor=actor, tenant=row.id, target=row.slug)
    announce("tenant", tenant=row.id, object_id=row.slug)
    return snapshot(row)


@transaction.atomic
def set_member(tenant_id: UUID, user: User, role: Role, *, actor: Actor) -> None:
    """Give a person a role, in place of the one they may have. The same role changes nothing.

    Raises UnknownTenantError if the tenant is not there or closed.
    """
    tenant = _open_tenant(tenant_id)
    before = Membership.objects.filter(tenant=tenant, user=user).first()
    if before is not None and before.role == role:
        return
    facts = {"role": role.value, "before": before.role if before else None}
    membership = before or Membership(tenant=tenant, user=user)
    membership.role = role.value
    membership.save()
    _member_changed("member.set", tenant_id, user, facts, actor)


@transaction.atomic
def remove_member(tenant_id: UUID, user: User, *, actor: Actor) -> bool:
    """End a membership, and with it for good the tokens that hang on it. False if there is none."""
    membership = Membership.objects.filter(tenant_id=tenant_id, user=user).first()
    if membership is None:
        return False
    membership.delete()
    _member_changed("member.removed", tenant_id, user, {"before": membership.role}, actor)
    return True


def _member_changed(
    action: str, tenant_id: UUID, user: User, facts: Mapping[str, Any], actor: Actor
) -> None:
    named = {**facts, "user": user.get_username()}
    record(action, actor=actor, tenant=tenant_id, target=str(user.pk), facts=named)
    announce("member", tenant=tenant_id, object_id=str(user.pk))


def _open_tenant(tenant_id: UUID) -> Tenant:
    row = Tenant.objects.open().select_for_update().filter(pk=tenant_id).first()
    if row is None:
        raise UnknownTenantError
    return row


def _columns(fields: TenantFields) -> dict[str, Any]:
    return {**asdict(fields), "allowed_origins": list(fields.allowed_origins)}


def _set(row: Tenant, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(row, name, value)


def _quoted(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name not in _UNQUOTED}
