"""What was called: lists, one call from its first round to its last, what was refused."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import calls, selectors
from mcphost.audit.timelines import Timeline
from mcphost.audit.views import PayloadView
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Crumb, Visit, of_platform, of_tenant, page_of, show
from mcphost.console.record_views import (
    PERIODS,
    QUESTIONS,
    STATES,
    Asked,
    named_calls,
    named_entries,
    tenants_of,
)
from mcphost.console.records import step_to_call, view_on_record
from mcphost.console.spoken import spoken
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """The calls of one tenant, those first in which something happened last."""
    rows = catalogue.primitives(Tenant.objects.filter(pk=tenant.pk))
    targets = [row.uri or row.name for row in rows]
    return _listing(request, frozenset({tenant.pk}), "Records", targets)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_calls(request: Visit) -> HttpResponseBase:
    """The calls of every tenant, for the platform's people."""
    return _listing(request, tenants_of(Asked.of(request.GET)), "All records", [])


def _listing(
    request: Visit, tenants: frozenset[UUID] | None, title: str, targets: list[str]
) -> HttpResponseBase:
    asked, now = Asked.of(request.GET), timezone.now()
    page = calls.calls(asked.within(tenants, now), now, after=asked.after)
    return show(
        request,
        "records.html",
        title,
        asked=asked,
        calls=named_calls(page.calls),
        older=asked.older(page.after),
        states=STATES,
        questions=QUESTIONS,
        periods=tuple(PERIODS),
        targets=targets,
    )


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def call(request: Visit, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """One call: what each round asked, what came back, and what ran because of it."""
    found = _call(tenant, call_id)
    kept = selectors.kept([entry.id for entry in found.entries], tenant.pk)
    return _shown(request, found, kept, page_of(tenant, "records", "Records"))


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def call_said(request: Visit, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """The same with all that was said. Each payload that is read leaves an entry."""
    found = _call(tenant, call_id)
    kept = selectors.payloads([entry.id for entry in found.entries], tenant.pk)
    read = [each for each in found.entries if each.id in kept and not kept[each.id].erased_at]
    view_on_record(request, read)
    said = {each.id: spoken(each, kept[each.id]) for each in read}
    crumbs = page_of(tenant, "records", "Records"), step_to_call(tenant, found.entries[0])
    return _shown(request, found, kept, *crumbs, said=said, title="What was said")


def _shown(
    request: Visit,
    found: Timeline,
    kept: Mapping[UUID, PayloadView],
    *crumbs: Crumb,
    title: str = "",
    **more: Any,
) -> HttpResponseBase:
    first, last = found.entries[0], found.entries[-1]
    return show(
        request,
        "call.html",
        title or f"Call of {first.target}",
        *crumbs,
        call=found,
        first=first,
        last=last,
        kept=kept,
        cut=len(found.entries) == selectors.MOST_ENTRIES,
        **more,
    )


def _call(tenant: Tenant, call_id: UUID) -> Timeline:
    found = calls.call(call_id, frozenset({tenant.pk}), timezone.now())
    if found is None:
        raise Http404
    return found


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def refusals(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """What came back to one tenant and was not taken, what did not leave, and why."""
    crumb = page_of(tenant, "records", "Records")
    return _refusals(request, frozenset({tenant.pk}), crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_refusals(request: Visit) -> HttpResponseBase:
    """The same of every tenant, for the platform's people."""
    return _refusals(request, tenants_of(Asked.of(request.GET)))


def _refusals(request: Visit, tenants: frozenset[UUID] | None, *crumbs: Crumb) -> HttpResponseBase:
    asked = Asked.of(request.GET)
    page = selectors.refusals(asked.within(tenants, timezone.now()), after=asked.after)
    return show(
        request,
        "refusals.html",
        "Refusals",
        *crumbs,
        asked=asked,
        entries=named_entries(page.entries),
        older=asked.older(page.after),
        periods=tuple(PERIODS),
    )
