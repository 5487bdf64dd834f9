"""The key ring and the tenants' secrets, wrapped. Only this package reads these tables."""

import uuid

from django.db import models

from mcphost.vault.states import KeyState

BY_LIMIT = 200
"""How much is kept of the name of who made or rotated a secret."""


class RingKey(models.Model):
    """One key of the platform's ring. `wrapped` is emptied when the key is destroyed."""

    id = models.CharField(max_length=16, primary_key=True)
    state = models.CharField(max_length=16, choices=KeyState.choices, default=KeyState.STANDBY)
    wrapped = models.TextField(blank=True)
    created_at = models.DateTimeField()
    activated_at = models.DateTimeField(null=True, blank=True)
    state_since = models.DateTimeField()
    last_sealed_at = models.DateTimeField(null=True, blank=True)
    last_opened_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "vault_ring_key"
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("state",),
                condition=models.Q(state=KeyState.ACTIVE),
                name="vault_one_active_key",
            ),
            models.UniqueConstraint(
                fields=("state",),
                condition=models.Q(state=KeyState.STANDBY),
                name="vault_one_standby_key",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=KeyState.values), name="vault_key_state_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class TenantSecret(models.Model):
    """A tenant's secret salt, for its tokens, and its payload key, for its records.

    An empty `wrapped_salt` means that the salt was destroyed. The row stays, so no new one is made.
    """

    tenant = models.UUIDField(primary_key=True)
    wrapped_salt = models.TextField(blank=True)
    wrapped_payload_key = models.TextField()
    payload_key_id = models.CharField(max_length=16)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "vault_tenant_secret"
        ordering = ("created_at", "tenant")

    def __str__(self) -> str:
        return str(self.tenant)


class StoredSecret(models.Model):
    """A secret of a tenant, for its tools: its rules, and its value, encrypted and bound to the row.

    `version` counts the values that it has had.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.UUIDField()
    name = models.CharField(max_length=64)
    sealed = models.BinaryField()
    version = models.PositiveIntegerField(default=1)
    hosts = models.JSONField()
    places = models.JSONField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=BY_LIMIT)
    rotated_at = models.DateTimeField(null=True, blank=True)
    rotated_by = models.CharField(max_length=BY_LIMIT, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "vault_secret"
        ordering = ("tenant", "name")
        constraints = (
            models.UniqueConstraint(fields=("tenant", "name"), name="vault_secret_name"),
        )

    def __str__(self) -> str:
        return self.name


class FormerValue(models.Model):
    """A value that a secret had until it was rotated or deleted, encrypted as it was.

    It is only masked in responses, until `expires_at`. `secret` is the id of its row, which may be gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.UUIDField()
    secret = models.UUIDField()
    name = models.CharField(max_length=64)
    version = models.PositiveIntegerField()
    sealed = models.BinaryField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "vault_former_value"
        ordering = ("tenant", "expires_at")
        indexes = (
            models.Index(fields=("tenant",), name="vault_former_tenant"),
            models.Index(fields=("expires_at",), name="vault_former_expires"),
        )

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def location_of(row: models.Model, field: str) -> str:
    """The location of a wrapped secret, which is authenticated together with it."""
    return f"{row._meta.label_lower}:{field}:{row.pk}"
