"""The messages of a live list over HTTP, for clients that cannot open a socket."""

from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit.summaries import selectors
from mcphost.console.base import SignedInRequest, of_platform, of_tenant, query_text
from mcphost.console.live.views import MAX_CHANGES, LiveView, beat, cursor_of, messages
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter, tenants_of
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def changes(request: SignedInRequest, tenant: Tenant, listing: FilteredList) -> HttpResponseBase:
    """Return the rows of one tenant's list that changed after the cursor."""
    return _changes(request, frozenset({tenant.pk}), listing, of_platform=False)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_changes(request: SignedInRequest, listing: FilteredList) -> HttpResponseBase:
    """Return the rows of the list of all tenants that changed after the cursor."""
    return _changes(request, tenants_of(RecordFilter.of(request.GET)), listing, of_platform=True)


def _changes(
    request: SignedInRequest,
    tenants: frozenset[UUID] | None,
    listing: FilteredList,
    *,
    of_platform: bool,
) -> HttpResponseBase:
    cursor = cursor_of(query_text(request.GET, "cursor"))
    if cursor is None:
        return JsonResponse({"error": "The cursor is missing or is no number."}, status=400)
    view = LiveView(tenants, RecordFilter.of(request.GET), of_platform, listing)
    changes = selectors.changed(tenants, cursor, MAX_CHANGES)
    text = messages(changes, [view], timezone.now()).get(view) or beat(changes.cursor)
    return HttpResponse(text, content_type="application/json")
