"""What the console itself keeps: filters that users saved, and the searches of auditors."""

import uuid

from django.conf import settings
from django.db import models

from mcphost.tenants.models import Tenant


class FilteredList(models.TextChoices):
    """A list whose filters can be saved."""

    CALLS = "calls"
    QUESTIONS = "input_requests"


class SavedFilter(models.Model):
    """A filter of a list of calls or questions under a name; `tenant` is None for the list of all tenants.

    Shared ones are seen by all who may read that list. It is only a query string: the rows are
    chosen under the rights of the user who opens it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters"
    )
    tenant = models.ForeignKey(
        Tenant, null=True, on_delete=models.PROTECT, related_name="saved_filters"
    )
    listing = models.CharField(
        max_length=20, choices=FilteredList.choices, default=FilteredList.CALLS
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
                fields=("author", "tenant", "listing", "name"), name="saved_filter_of_tenant"
            ),
            models.UniqueConstraint(
                fields=("author", "listing", "name"),
                condition=models.Q(tenant=None),
                name="saved_filter_of_platform",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class QuestionSearch(models.Model):
    """The search in the texts of questions that an auditor began last: one at a time.

    A part of it runs until `busy_until` at most. It keeps nothing of what is searched or found.
    """

    auditor = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="question_search",
    )
    search = models.UUIDField()
    begun_at = models.DateTimeField()
    busy_until = models.DateTimeField()

    class Meta:
        db_table = "console_question_search"
        ordering = ("auditor",)

    def __str__(self) -> str:
        return str(self.search)
