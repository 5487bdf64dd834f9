"""Models of what tenants offer: working copies, published versions, grants, and stored values."""

import uuid
from typing import Any

from django.db import models
from django.db.models import Q, Value

from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Membership, Tenant

MAX_URI = 2048
"""Longer URIs would not fit PostgreSQL's index."""
MAX_KEY = 200
MAX_NOTE = 500
"""Characters of the note that says why a version was published."""
MAX_SAVED_NAME = 100
"""Characters of the name of a saved call."""
NO_ORDER = Value([], models.JSONField())
"""Rows of releases that did not store `config_order`."""


class Primitive(models.Model):
    """A tool, prompt, resource or resource template of one tenant.

    The row is the working copy, its state, and a reference to the version that is served. `uri` is
    None for primitives that clients request by name. `config_order` is that of the members of
    `config` (`catalogue.ordering`).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="primitives")
    primitive_type = models.CharField(
        max_length=16,
        choices=[(primitive_type.value, primitive_type.value) for primitive_type in PrimitiveType],
    )
    name = models.CharField(max_length=64)
    uri = models.CharField(max_length=MAX_URI, null=True, blank=True)  # noqa: DJ001 - unique, where there is one
    kind = models.CharField(max_length=32)
    config = models.JSONField(default=dict)
    config_order = models.JSONField(default=list, db_default=NO_ORDER)
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    scopes = models.JSONField(default=list, blank=True)
    time_limit_seconds = models.FloatField(null=True, blank=True)
    answer_within_seconds = models.FloatField(null=True, blank=True)
    icons = models.JSONField(default=list, blank=True)
    target_seconds = models.FloatField(null=True, blank=True)
    state = models.CharField(
        max_length=16, choices=PrimitiveState.choices, default=PrimitiveState.DRAFT
    )
    live = models.ForeignKey(
        "catalogue.PrimitiveVersion",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "catalogue_primitive"
        ordering = ["tenant_id", "primitive_type", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "primitive_type", "name"], name="catalogue_primitive_name"
            ),
            models.UniqueConstraint(fields=["tenant", "uri"], name="catalogue_primitive_uri"),
            models.CheckConstraint(
                condition=Q(
                    primitive_type__in=[
                        primitive_type.value
                        for primitive_type in PrimitiveType
                        if primitive_type.has_uri
                    ],
                    uri__isnull=False,
                )
                | Q(
                    primitive_type__in=[
                        primitive_type.value
                        for primitive_type in PrimitiveType
                        if not primitive_type.has_uri
                    ],
                    uri__isnull=True,
                ),
                name="catalogue_primitive_has_uri",
            ),
            models.CheckConstraint(
                condition=Q(state__in=PrimitiveState.values), name="catalogue_primitive_known_state"
            ),
            models.CheckConstraint(
                condition=Q(state=PrimitiveState.DRAFT, live__isnull=True)
                | (~Q(state=PrimitiveState.DRAFT) & Q(live__isnull=False)),
                name="catalogue_primitive_live_unless_draft",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PrimitiveVersion(models.Model):
    """A published version: written once, at publication, and never changed.

    `function` is the Python function that the version runs (empty for kinds that need no grant).
    `snapshot` is the operator's part of what is served. `config_order` is the order of its
    configuration. `code` is what the code declared at that time: history, which no request reads. `note` says why it was published.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    primitive = models.ForeignKey(Primitive, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    function = models.CharField(max_length=200, blank=True)
    snapshot = models.JSONField()
    config_order = models.JSONField(default=list, db_default=NO_ORDER)
    code = models.JSONField()
    note = models.CharField(max_length=MAX_NOTE, blank=True, db_default="")
    published_by = models.CharField(max_length=200)
    published_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "catalogue_primitiveversion"
        ordering = ["primitive_id", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["primitive", "number"], name="catalogue_primitiveversion_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.number}+{self.digest[:8]}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new version. Raises TypeError for one that exists: versions never change."""
        if not self._state.adding:
            raise TypeError("a published version never changes")
        super().save(*args, **kwargs)


class ImportedOperation(models.Model):
    """What an OpenAPI document said of the operation that a tool was imported from, at the last
    import: from it the next one knows what the operator has changed since."""

    primitive = models.OneToOneField(
        Primitive, on_delete=models.CASCADE, primary_key=True, related_name="imported"
    )
    definition = models.JSONField()

    class Meta:
        db_table = "catalogue_importedoperation"
        ordering = ["primitive_id"]

    def __str__(self) -> str:
        return str(self.primitive_id)


class KeptDocument(models.Model):
    """An OpenAPI document between its preview and the creation of tools, sealed.

    It belongs to one user, who is named by id only. `location` is the URL that it was fetched from.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    user = models.BigIntegerField()
    location = models.TextField(blank=True)
    content = models.TextField()
    kept_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "catalogue_keptdocument"
        ordering = ["kept_at", "id"]
        indexes = [models.Index(fields=["tenant", "user"], name="catalogue_keptdocument_owner")]

    def __str__(self) -> str:
        return str(self.id)


class SavedCall(models.Model):
    """A call of a tool with what is expected of it, saved in the console.

    `content` is encrypted under the payload key `key_id` of the tool's tenant. `ran_at`, `passed` and
    `ran_call` are of its last run: when, whether it gave what is expected, and the id of the recorded call.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    primitive = models.ForeignKey(Primitive, on_delete=models.CASCADE, related_name="saved_calls")
    name = models.CharField(max_length=MAX_SAVED_NAME)
    key_id = models.CharField(max_length=64)
    content = models.BinaryField()
    saved_by = models.CharField(max_length=200)
    saved_at = models.DateTimeField(auto_now=True)
    ran_at = models.DateTimeField(null=True)
    passed = models.BooleanField(null=True)
    ran_call = models.UUIDField(null=True)

    class Meta:
        db_table = "catalogue_savedcall"
        ordering = ["primitive_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["primitive", "name"], name="catalogue_savedcall_name")
        ]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """Permission of a tenant to use a Python function, granted by platform staff."""

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


class StoredValue(models.Model):
    """A JSON value that a tenant's tools store under a key, for all callers or for one `member`.

    The values of a member are deleted with the membership.

    `revision` increases by one with each write. It starts above every earlier revision of the key,
    so that a reader of a value that was deleted does not mistake a later value for the same.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    member = models.ForeignKey(Membership, null=True, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=MAX_KEY)
    value = models.TextField()
    revision = models.PositiveBigIntegerField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "catalogue_storedvalue"
        ordering = ["tenant_id", "key"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "key"],
                condition=models.Q(member=None),
                name="catalogue_storedvalue_key",
            ),
            models.UniqueConstraint(
                fields=["member", "key"], name="catalogue_storedvalue_member_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} ({self.revision})"
