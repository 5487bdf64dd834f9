"""What was changed, and what was said in one entry: read, and erased."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import selectors, services
from mcphost.audit.models import Payload
from mcphost.audit.views import EntryView, PayloadView
from mcphost.console.base import Crumb, Visit, actor, of_platform, of_tenant, page_of, show
from mcphost.console.record_views import PERIODS, Asked, named_entries, tenants_of
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

PAYLOAD_VIEWED = "payload.viewed"


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def changes(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Who changed what in one tenant."""
    return _changes(request, frozenset({tenant.pk}), "Changes")


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_changes(request: Visit) -> HttpResponseBase:
    """Who changed what anywhere, the platform itself too."""
    return _changes(request, tenants_of(Asked.of(request.GET)), "All changes")


def _changes(request: Visit, tenants: frozenset[UUID] | None, title: str) -> HttpResponseBase:
    asked = replace(Asked.of(request.GET), outcome="", questions="", client="", call="")
    page = selectors.verbs(asked.within(tenants, timezone.now()), after=asked.after)
    return show(
        request,
        "changes.html",
        title,
        asked=asked,
        entries=named_entries(page.entries),
        older=asked.older(page.after),
        periods=tuple(PERIODS),
    )


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def payload(request: Visit, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """What was said in one entry. Looking at it leaves an entry."""
    entry, found = _payload(tenant, entry_id)
    view_on_record(request, [entry])
    return show(
        request,
        "payload.html",
        "What was said",
        page_of(tenant, "records", "Records"),
        step_to_call(tenant, entry),
        entry=entry,
        payload=found,
    )


@of_tenant(Permission.MANAGE_TENANT)
def erase(request: Visit, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """Erasing what was said, for good, confirmed. The proof that it was said stays."""
    entry = _entry(tenant, entry_id)
    if not Payload.objects.filter(tenant=tenant.pk, entry=entry_id).exists():
        raise Http404
    back = step_to_call(tenant, entry)
    if request.method == "POST":
        services.erase_payload(entry_id, actor(request))
        messages.success(request, "What was said is erased. That it was said stays on record.")
        return redirect(back.url)
    return show(
        request,
        "confirm.html",
        "Erase what was said",
        page_of(tenant, "records", "Records"),
        back,
        explanation=(
            "The arguments and the result are erased for good, and nobody can bring them back. "
            "The record that the call was made, and its commitment, stay."
        ),
        verb="Erase for good",
        back=back.url,
    )


@transaction.atomic
def view_on_record(request: Visit, entries: Sequence[EntryView]) -> None:
    """Put on record that somebody reads what was said in these entries, before they do."""
    for entry in entries:
        services.record(
            PAYLOAD_VIEWED,
            actor=actor(request),
            tenant=entry.tenant,
            target=str(entry.id),
            facts={"tool": entry.target, "call": str(entry.call or "")},
        )


def _payload(tenant: Tenant, entry_id: UUID) -> tuple[EntryView, PayloadView]:
    entry = _entry(tenant, entry_id)
    found = selectors.payload(entry_id, tenant.pk)
    if found is None:
        raise Http404
    return entry, found


def _entry(tenant: Tenant, entry_id: UUID) -> EntryView:
    entry = selectors.entry(entry_id, frozenset({tenant.pk}))
    if entry is None:
        raise Http404
    return entry


def step_to_call(tenant: Tenant, entry: EntryView) -> Crumb:
    """The call that an entry is of; a state that was refused may be of none."""
    if entry.call is None:
        return page_of(tenant, "refusals", "Refusals")
    url = reverse("admin:call", args=[tenant.slug, entry.call])
    return Crumb(f"Call of {entry.target}", url)
