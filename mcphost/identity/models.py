"""Models of bearer tokens (only digests are stored), service accounts, and sign-in attempts."""

import uuid

from django.conf import settings
from django.db import models

from mcphost.identity.tokens import ID_LENGTH
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Audience


class ServiceAccount(models.Model):
    """A program that calls a tenant in its own name, with at most the rights of a member.

    The row stays after removal, so that a name in the records never refers to another account.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="service_accounts")
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=200, blank=True)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    disabled_at = models.DateTimeField(null=True, editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "identity_service_account"
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "name"), name="identity_service_account_name"
            ),
        )

    def __str__(self) -> str:
        return f"service account {self.name}"


class Token(models.Model):
    """A credential for one audience of one tenant, with at most its owner's rights there.

    A user's token depends on the user's membership: when that ends, `membership` becomes null and
    the token stops working for good, even if the owner returns with a new membership. `consented`
    says whether the owner issued it, or ran the command that did. `issued_by` names the issuer as
    it was then; it is empty if no entry names one. A service account's token has no owner.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="tokens")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="tokens"
    )
    service_account = models.ForeignKey(
        ServiceAccount, null=True, on_delete=models.PROTECT, related_name="tokens"
    )
    issued_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    consented = models.BooleanField(default=False, db_default=False)
    membership = models.ForeignKey(
        Membership, null=True, on_delete=models.SET_NULL, related_name="tokens"
    )
    audience = models.CharField(
        max_length=8, choices=[(audience.value, audience.value) for audience in Audience]
    )
    name = models.CharField(max_length=100)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    calls_per_minute = models.PositiveIntegerField(null=True, blank=True)
    concurrent_calls = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = "identity_token"
        ordering = ("-created_at", "id")
        constraints = (
            models.CheckConstraint(
                condition=models.Q(owner__isnull=False, service_account=None)
                | models.Q(owner=None, service_account__isnull=False),
                name="identity_token_one_holder",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def without_consent(self) -> bool:
        """Whether it acts for a user who did not issue it."""
        return self.owner_id is not None and not self.consented


class SignInAttempts(models.Model):
    """The number of passwords tried under one key since its window began (`attempts`).

    `id` is a keyed digest: neither names nor addresses are stored. The times are the database's;
    `previous_at` is the attempt before the last one of the window, null if there was none.
    """

    id = models.CharField(primary_key=True, max_length=64, editable=False)
    count = models.PositiveIntegerField()
    last_at = models.DateTimeField()
    previous_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "identity_sign_in_attempts"
        ordering = ("id",)
        verbose_name_plural = "sign-in attempts"

    def __str__(self) -> str:
        return f"{self.count} until {self.expires_at}"
