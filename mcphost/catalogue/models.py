"""Tools as data: the working copy that operators edit, and the versions that were published."""

import uuid
from typing import Any

from django.db import models
from django.db.models import Q

from mcphost.catalogue.states import State
from mcphost.tenants.models import Tenant


class Tool(models.Model):
    """A tool of one tenant: its working copy, its state, and the version that is served."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="tools")
    name = models.CharField(max_length=64)
    kind = models.CharField(max_length=32)
    config = models.JSONField(default=dict)
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    scopes = models.JSONField(default=list, blank=True)
    time_limit_seconds = models.FloatField(null=True, blank=True)
    icons = models.JSONField(default=list, blank=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.DRAFT)
    live = models.ForeignKey(
        "catalogue.ToolVersion", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "catalogue_tool"
        ordering = ["tenant_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="catalogue_tool_name"),
            models.CheckConstraint(
                condition=Q(state__in=State.values), name="catalogue_tool_known_state"
            ),
            models.CheckConstraint(
                condition=Q(state=State.DRAFT, live__isnull=True)
                | (~Q(state=State.DRAFT) & Q(live__isnull=False)),
                name="catalogue_tool_live_unless_draft",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ToolVersion(models.Model):
    """What was published, once: written at publication and never changed.

    `function` is the Python function that the version runs (empty for kinds that need no grant).
    `snapshot` is the operators' part of what is served, `code` what the code said at that time:
    history, which no request reads.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    function = models.CharField(max_length=200, blank=True)
    snapshot = models.JSONField()
    code = models.JSONField()
    published_by = models.CharField(max_length=200)
    published_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "catalogue_toolversion"
        ordering = ["tool_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["tool", "number"], name="catalogue_toolversion_number")
        ]

    def __str__(self) -> str:
        return f"{self.number}+{self.digest[:8]}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new version. Raises TypeError for one that exists: versions never change."""
        if not self._state.adding:
            raise TypeError("a published version never changes")
        super().save(*args, **kwargs)


class Grant(models.Model):
    """Platform staff let a tenant use a Python function."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="grants")
    function = models.CharField(max_length=200)
    granted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "catalogue_grant"
        ordering = ["tenant_id", "function"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "function"], name="catalogue_grant_once")
        ]

    def __str__(self) -> str:
        return self.function
