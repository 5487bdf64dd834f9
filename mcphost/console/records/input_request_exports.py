"""Export a filtered list of questions; for auditors with the questions and answers in words."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from mcphost.console.base import Crumb, SignedInRequest, of_platform, of_tenant, page_of
from mcphost.console.records.exports import (
    ExportedList,
    ExportScope,
    export_file,
    export_page,
    export_part,
    pills_of,
    scope_of,
)
from mcphost.console.records.input_request_rows import filter_of, question_filter
from mcphost.console.records.pills import OF_QUESTIONS, QUESTION_LABELS
from mcphost.listings.exports import RowCount, Rows
from mcphost.listings.input_requests import (
    INPUT_REQUEST_COLUMNS,
    TEXT_COLUMNS,
    count_input_requests,
    exported_input_requests,
    exported_with_texts,
)
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that exports the questions of one tenant, with progress."""
    crumb = page_of(tenant, "input_requests", "Questions")
    return _page(request, tenant, crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def page_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show the page that exports the questions of all tenants, with progress."""
    return _page(request, None, Crumb("All questions", reverse("admin:all_input_requests")))


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def part(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Return the next part of an export of one tenant's questions."""
    return export_part(request, _exported(request, tenant), _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def part_of_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Return the next part of an export of the questions of all tenants."""
    return export_part(request, _exported(request, None), _scope(request, None), form)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def export(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Export the questions of one tenant."""
    return export_file(request, _exported(request, tenant), _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def export_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Export the questions of all tenants, for platform staff."""
    return export_file(request, _exported(request, None), _scope(request, None), form)


def _page(request: SignedInRequest, tenant: Tenant | None, crumb: Crumb) -> HttpResponseBase:
    scope = _scope(request, tenant)
    chips = pills_of(scope, names=OF_QUESTIONS, labels=QUESTION_LABELS)
    return export_page(request, _exported(request, tenant), scope, crumb, chips)


def _scope(request: SignedInRequest, tenant: Tenant | None) -> ExportScope:
    scope = scope_of(request, tenant)
    return replace(scope, record_filter=filter_of(scope.record_filter))


def _exported(request: SignedInRequest, tenant: Tenant | None) -> ExportedList:
    """The list as the user may read it: with texts only for auditors of the tenant."""
    if tenant is not None and allowed(request.user, tenant, Permission.VIEW_PAYLOADS):
        return _WITH_TEXTS
    return _PLAIN


def _read(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    filters = question_filter(scope.record_filter, scope.tenants, scope.now)
    return exported_input_requests(filters, scope.record_filter.state, after, limit)


def _count(scope: ExportScope, after: UUID | None, limit: int) -> RowCount:
    filters = question_filter(scope.record_filter, scope.tenants, scope.now)
    return count_input_requests(filters, scope.record_filter.state, after, limit)


def _read_texts(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    assert scope.tenant is not None
    filters = question_filter(scope.record_filter, scope.tenants, scope.now)
    return exported_with_texts(filters, scope.record_filter.state, scope.tenant, after, limit)


_PLAIN: Final = ExportedList(
    "questions", "questions.exported", INPUT_REQUEST_COLUMNS, _read, _count, singular="question"
)
_WITH_TEXTS: Final = replace(
    _PLAIN, columns=(*INPUT_REQUEST_COLUMNS, *TEXT_COLUMNS), read=_read_texts
)
