"""Tenants and their members."""

import uuid
from collections.abc import Iterable
from typing import Any, NoReturn

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from mcphost.feed.services import announce
from mcphost.tenants.roles import Role


class DeletionError(RuntimeError):
    """Somebody tried to delete a tenant. Tenants are closed: the row keeps the slug from reuse."""

    def __init__(self) -> None:
        super().__init__("tenants are closed, never deleted")


class TenantQuerySet(models.QuerySet["Tenant"]):
    """Tenants, which no query deletes."""

    def delete(self) -> NoReturn:
        raise DeletionError

    def open(self) -> "TenantQuerySet":
        return self.filter(closed_at=None)


class Tenant(models.Model):
    """Somebody's own MCP server. Closed tenants keep their row, so that a slug is never reused."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(max_length=40, unique=True)
    title = models.CharField(max_length=120)
    icon = models.TextField(blank=True, default="")
    instructions = models.TextField(blank=True, default="")
    allowed_origins = models.JSONField(blank=True, default=list)
    public = models.BooleanField(default=False)
    calls_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrent_calls = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = TenantQuerySet.as_manager()

    class Meta:
        db_table = "tenants_tenant"
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise DeletionError


class Membership(models.Model):
    """A person's one role in a tenant. A person who leaves and returns has a new membership."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "tenants_membership"
        ordering = ("tenant_id", "user_id")
        constraints = (
            models.UniqueConstraint(fields=("user", "tenant"), name="tenants_membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in Role]),
                name="tenants_membership_role",
            ),
        )

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.tenant_id}"


# People are Django's, and are changed by code that is not ours (the admin, the shell). Wherever
# that happens, the feed tells of it, so these two are connected as soon as there are models.


@receiver(post_save, sender=User, dispatch_uid="mcphost.tenants.person_saved")
def person_saved(
    instance: User, created: bool, update_fields: Iterable[str] | None, **_: Any
) -> None:
    """A person who is known already may have been switched off; a mere log-in is no news."""
    if created or (update_fields is not None and "is_active" not in update_fields):
        return
    _announce_person(instance)


@receiver(post_delete, sender=User, dispatch_uid="mcphost.tenants.person_deleted")
def person_deleted(instance: User, **_: Any) -> None:
    """With a person go their memberships."""
    _announce_person(instance)


def _announce_person(person: User) -> None:
    with transaction.atomic():
        announce("member", object_id=str(person.pk))
