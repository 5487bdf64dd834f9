"""Bearer tokens, of which only a digest is kept."""

from django.conf import settings
from django.db import models

from mcphost.identity.tokens import ID_LENGTH
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Audience


class Token(models.Model):
    """A credential for one audience of one tenant, with at most its owner's rights there.

    It hangs on the owner's membership: when that ends, `membership` becomes null and the token is
    dead for good, also if its owner returns under a new membership.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="tokens")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens"
    )
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

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"
