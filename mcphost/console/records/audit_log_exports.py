"""Export the filtered audit log."""

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
from mcphost.console.records.pills import OF_CHANGES, PRINCIPAL_LABELS
from mcphost.listings.audit_log import ENTRY_COLUMNS, count_entries, exported_entries
from mcphost.listings.exports import RowCount, Rows
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that exports the audit log of one tenant, with progress."""
    return _page(request, tenant, page_of(tenant, "audit_log", "Audit log"))


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def page_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show the page that exports the audit log of the platform and all tenants, with progress."""
    return _page(request, None, Crumb("Platform audit log", reverse("admin:all_audit_log")))


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def part(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Return the next part of an export of one tenant's audit log."""
    return export_part(request, _ENTRIES, _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def part_of_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Return the next part of an export of the audit log of the platform and all tenants."""
    return export_part(request, _ENTRIES, _scope(request, None), form)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def export(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Export the audit log of one tenant."""
    return export_file(request, _ENTRIES, _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def export_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Export the audit log of the platform and all tenants, for platform staff."""
    return export_file(request, _ENTRIES, _scope(request, None), form)


def _page(request: SignedInRequest, tenant: Tenant | None, crumb: Crumb) -> HttpResponseBase:
    scope = _scope(request, tenant)
    chips = pills_of(scope, names=OF_CHANGES, labels=PRINCIPAL_LABELS)
    return export_page(request, _ENTRIES, scope, crumb, chips)


def _scope(request: SignedInRequest, tenant: Tenant | None) -> ExportScope:
    scope = scope_of(request, tenant)
    return replace(scope, record_filter=scope.record_filter.only(*OF_CHANGES))


def _read(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    return exported_entries(scope.record_filter.within(scope.tenants, scope.now), after, limit)


def _count(scope: ExportScope, after: UUID | None, limit: int) -> RowCount:
    return count_entries(scope.record_filter.within(scope.tenants, scope.now), after, limit)


_ENTRIES: Final = ExportedList(
    "entries", "entries.exported", ENTRY_COLUMNS, _read, _count, singular="entry"
)
