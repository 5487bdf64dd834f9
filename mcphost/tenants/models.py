"""Models of tenants, their members and invitations."""

import uuid
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.functions import Lower
from django.db.models.signals import post_delete, post_save, pre_delete
from django.dispatch import receiver

from mcphost.feed.services import announce
from mcphost.tenants.roles import Role

TENANTS_BY_TITLE: Final = (Lower("title"), "slug")
"""The order of tenants in lists; pages show the titles."""
ROLES_BY_TITLE: Final = (Lower("tenant__title"), "tenant__slug")
"""The order of a user's memberships, by the tenant of each."""


class DeletionError(RuntimeError):
    """A tenant was to be deleted. Tenants are only closed: the row keeps the slug from reuse."""

    def __init__(self) -> None:
        super().__init__("tenants are closed, never deleted")


class TenantQuerySet(models.QuerySet["Tenant"]):
    """Tenants, which cannot be deleted by a query."""

    def delete(self) -> NoReturn:
        raise DeletionError

    def open(self) -> "TenantQuerySet":
        return self.filter(closed_at=None)


class Tenant(models.Model):
    """A customer's own MCP server. Closed tenants keep their row, so a slug is never reused."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(max_length=40, unique=True)
    title = models.CharField(max_length=120)
    icon = models.TextField(blank=True, default="")
    instructions = models.TextField(blank=True, default="")
    allowed_origins = models.JSONField(blank=True, default=list)
    outgoing_hosts = models.JSONField(blank=True, default=list, db_default=[])
    public = models.BooleanField(default=False)
    metadata_documents_only = models.BooleanField(default=False, db_default=False)
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
    """A user's one role in a tenant. A user who leaves and returns has a new membership.

    `accepted_at` is when the user accepted an invitation; None for a role that was given directly.
    `added_by` names the account or the command that gave the role, as it was then. `scopes` are the
    scopes of single tools that owners let this user's own tokens hold.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    scopes = models.JSONField(blank=True, default=list, db_default=[])
    added_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    accepted_at = models.DateTimeField(null=True, blank=True, editable=False)

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


class Invitation(models.Model):
    """An offer of a role to a user name, made without checking whether the account exists.

    `sets_up`: the holder of the link may create the account of that name, if there is none. Only the
    SHA-256 of the link is stored. `ended_at` is None while the invitation is open; after
    that, `outcome` says how it ended.
    """

    class Outcome(models.TextChoices):
        ACCEPTED = "accepted"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="invitations")
    username = models.CharField(max_length=150)
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    inviter = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="invitations"
    )
    invited_by = models.CharField(max_length=200)
    sets_up = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, editable=False)
    outcome = models.CharField(max_length=16, blank=True, default="", choices=Outcome.choices)

    class Meta:
        db_table = "tenants_invitation"
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "username"),
                condition=models.Q(ended_at=None),
                name="tenants_invitation_once",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in Role]),
                name="tenants_invitation_role",
            ),
            models.CheckConstraint(
                condition=models.Q(ended_at=None, outcome="")
                | models.Q(
                    ended_at__isnull=False, outcome__in=["accepted", "declined", "withdrawn"]
                ),
                name="tenants_invitation_outcome",
            ),
        )

    def __str__(self) -> str:
        return f"{self.username} may become {self.role} of {self.tenant_id}"


# Users are Django's model, and other code (the console, the shell) can change them. The change log
# must report each such change, so these receivers are connected as soon as the models are loaded.


_ANNOUNCED: Final = frozenset({"is_active", "username", "first_name", "last_name"})
"""Fields of a user that other processes have cached."""


@receiver(post_save, sender=User, dispatch_uid="mcphost.tenants.person_saved")
def person_saved(
    instance: User, created: bool, update_fields: Iterable[str] | None, **_: Any
) -> None:
    """Announce that an existing user may have been deactivated or renamed; ignore mere sign-ins."""
    if created or (update_fields is not None and not _ANNOUNCED.intersection(update_fields)):
        return
    _announce_person(instance)


@receiver(pre_delete, sender=User, dispatch_uid="mcphost.tenants.person_goes")
def person_goes(instance: User, **_: Any) -> None:
    """Delete the memberships of a user who is being deleted first, locked as all others lock them.

    The account comes before its memberships, and these before what depends on them. Django deletes
    in the opposite order, and only what it found before: a token that was issued meanwhile would
    be left over, or wait for the membership while the deletion waits for it.
    """
    User.objects.select_for_update(no_key=True).filter(pk=instance.pk).first()
    memberships = Membership.objects.select_for_update().filter(user=instance).order_by("pk")
    for membership in list(memberships):
        membership.delete()


@receiver(post_delete, sender=User, dispatch_uid="mcphost.tenants.person_deleted")
def person_deleted(instance: User, **_: Any) -> None:
    """Announce that a user was deleted, and with them their memberships."""
    _announce_person(instance)


def _announce_person(person: User) -> None:
    with transaction.atomic():
        announce("member", object_id=str(person.pk))
