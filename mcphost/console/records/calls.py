"""Pages for calls: lists, one call from its first round to its last, and refusals."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list, selectors
from mcphost.audit.entries import PayloadView
from mcphost.audit.timeline import Timeline
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Crumb, SignedInRequest, of_platform, of_tenant, page_of, show
from mcphost.console.records.entries import step_to_call, view_on_record
from mcphost.console.records.filters import (
    PERIODS,
    QUESTIONS,
    STATES,
    RecordFilter,
    named_calls,
    named_entries,
    tenants_of,
    with_task,
)
from mcphost.console.records.wording import display
from mcphost.runtime.call import Delivery
from mcphost.tasks import listing as tasks
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the calls of one tenant, the latest activity first."""
    rows = catalogue.primitives(Tenant.objects.filter(pk=tenant.pk))
    targets = [row.uri or row.name for row in rows]
    return _listing(request, frozenset({tenant.pk}), "Records", targets)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_calls(request: SignedInRequest) -> HttpResponseBase:
    """List the calls of all tenants, for platform staff."""
    return _listing(request, tenants_of(RecordFilter.of(request.GET)), "All records", [])


def _listing(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str, targets: list[str]
) -> HttpResponseBase:
    asked, now = RecordFilter.of(request.GET), timezone.now()
    page = call_list.calls(asked.within(tenants, now), now, after=asked.after)
    return show(
        request,
        "records/records.html",
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
def call(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one call: what each round asked, what came back, and what ran because of it."""
    found = _call(tenant, call_id)
    kept = selectors.kept([entry.id for entry in found.entries], tenant.pk)
    return _shown(request, found, kept, page_of(tenant, "records", "Records"))


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def call_said(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one call with its payloads. Each payload that is read is recorded in an entry."""
    found = _call(tenant, call_id)
    kept = selectors.payloads([entry.id for entry in found.entries], tenant.pk)
    read = [each for each in found.entries if each.id in kept and not kept[each.id].erased_at]
    view_on_record(request, read)
    said = {each.id: display(each, kept[each.id]) for each in read}
    crumbs = page_of(tenant, "records", "Records"), step_to_call(tenant, found.entries[0])
    return _shown(request, found, kept, *crumbs, said=said, title="Payloads")


def _shown(
    request: SignedInRequest,
    found: Timeline,
    kept: Mapping[UUID, PayloadView],
    *crumbs: Crumb,
    title: str = "",
    **more: Any,
) -> HttpResponseBase:
    first = found.entries[0]
    task = tasks.of_call(first.call, request.tenant.pk) if first.call is not None else None
    return show(
        request,
        "records/call.html",
        title or f"Call of {first.target}",
        *crumbs,
        call=replace(found, state=with_task(found.state, task)),
        task=task,
        became_task=any(each.delivery == Delivery.TASK for each in found.entries),
        first=first,
        kept=kept,
        cut=len(found.entries) == selectors.MOST_ENTRIES,
        **more,
    )


def _call(tenant: Tenant, call_id: UUID) -> Timeline:
    found = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    if found is None:
        raise Http404
    return found


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def refusals(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the request states and answers that were refused, the messages not sent, and why."""
    crumb = page_of(tenant, "records", "Records")
    return _refusals(request, frozenset({tenant.pk}), crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_refusals(request: SignedInRequest) -> HttpResponseBase:
    """List the refusals of all tenants, for platform staff."""
    return _refusals(request, tenants_of(RecordFilter.of(request.GET)))


def _refusals(
    request: SignedInRequest, tenants: frozenset[UUID] | None, *crumbs: Crumb
) -> HttpResponseBase:
    asked = RecordFilter.of(request.GET)
    page = selectors.refusals(asked.within(tenants, timezone.now()), after=asked.after)
    return show(
        request,
        "records/refusals.html",
        "Refusals",
        *crumbs,
        asked=asked,
        entries=named_entries(page.entries),
        older=asked.older(page.after),
        periods=tuple(PERIODS),
    )
