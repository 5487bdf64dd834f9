"""What the console itself keeps: filters that users saved."""

import uuid

from django.conf import settings
from django.db import models

from mcphost.tenants.models import Tenant


class SavedFilter(models.Model):
    """A filter of a list of calls under a name; `tenant` is None for the list of all tenants.

    Shared ones are seen by all who may read that list. It is only a query string: the calls are
    chosen under the rights of the user who opens it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, on_delete=models.PROTECT, related_name="saved_filters"
    )
    name = models.CharField(max_length=60)
    query = models.TextField()
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "console_saved_filter"
        ordering = ("name", "id")
        constraints = [
            models.UniqueConstraint(
                fields=("author", "tenant", "name"), name="saved_filter_of_tenant"
            ),
            models.UniqueConstraint(
                fields=("author", "name"),
                condition=models.Q(tenant=None),
                name="saved_filter_of_platform",
            ),
        ]

    def __str__(self) -> str:
        return self.name
