"""What was called and what was changed: lists, one call, what was said in it."""

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
from mcphost.audit.selectors import EntryView, PayloadView
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Crumb, Visit, actor, of_platform, of_tenant, page_of, show
from mcphost.console.record_views import (
    OUTCOMES,
    PERIODS,
    Asked,
    named_entries,
    named_rounds,
)
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

PAYLOAD_VIEWED = "payload.viewed"


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def rounds(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """The rounds of one tenant, newest first."""
    rows = catalogue.primitives(Tenant.objects.filter(pk=tenant.pk))
    targets = [row.uri or row.name for row in rows]
    return _rounds(request, frozenset({tenant.pk}), "Records", targets)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_rounds(request: Visit) -> HttpResponseBase:
    """The rounds of every tenant, for the platform's people."""
    return _rounds(request, _chosen_tenants(request), "All records", [])


def _rounds(
    request: Visit, tenants: frozenset[UUID] | None, title: str, tools: list[str]
) -> HttpResponseBase:
    asked = Asked.of(request.GET)
    page = selectors.rounds(asked.within(tenants, timezone.now()), after=asked.after)
    return show(
        request,
        "records.html",
        title,
        asked=asked,
        rounds=named_rounds(page.rounds),
        older=asked.older(page.after),
        outcomes=OUTCOMES,
        periods=tuple(PERIODS),
        tools=tools,
    )


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def changes(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Who changed what in one tenant."""
    return _changes(request, frozenset({tenant.pk}), "Changes")


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_changes(request: Visit) -> HttpResponseBase:
    """Who changed what anywhere, the platform itself too."""
    return _changes(request, _chosen_tenants(request), "All changes")


def _changes(request: Visit, tenants: frozenset[UUID] | None, title: str) -> HttpResponseBase:
    asked = replace(Asked.of(request.GET), outcome="", call="")
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


def _chosen_tenants(request: Visit) -> frozenset[UUID] | None:
    """The tenant that the filter names; None for all of them."""
    slug = Asked.of(request.GET).tenant
    if not slug:
        return None
    return frozenset(Tenant.objects.filter(slug=slug).values_list("id", flat=True))


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def call(request: Visit, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """One call: its rounds, each with all of its entries."""
    entries = selectors.call_entries(call_id, frozenset({tenant.pk}))
    if not entries:
        raise Http404
    ids = [entry.id for entry in entries]
    kept = Payload.objects.filter(tenant=tenant.pk, entry__in=ids)
    return show(
        request,
        "call.html",
        f"Call of {entries[0].target}",
        page_of(tenant, "records", "Records"),
        call=call_id,
        first=entries[0],
        last=entries[-1],
        finished=any(entry.outcome for entry in entries),
        entries=entries,
        payloads={row.entry: row for row in kept.defer("ciphertext")},
    )


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def payload(request: Visit, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """What was said in one entry. Looking at it leaves an entry."""
    entry, found = _payload(tenant, entry_id)
    return show(
        request,
        "payload.html",
        "What was said",
        page_of(tenant, "records", "Records"),
        _step_to_call(tenant, entry),
        entry=entry,
        payload=_viewed(request, entry, found),
    )


@of_tenant(Permission.MANAGE_TENANT)
def erase(request: Visit, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """Erasing what was said, for good, confirmed. The proof that it was said stays."""
    entry = _entry(tenant, entry_id)
    if not Payload.objects.filter(tenant=tenant.pk, entry=entry_id).exists():
        raise Http404
    back = _step_to_call(tenant, entry)
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
def _viewed(request: Visit, entry: EntryView, found: PayloadView) -> PayloadView:
    """The payload, once it is on record that somebody looked at it."""
    facts = {"tool": entry.target, "call": str(entry.call)}
    services.record(
        PAYLOAD_VIEWED,
        actor=actor(request),
        tenant=entry.tenant,
        target=str(entry.id),
        facts=facts,
    )
    return found


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


def _step_to_call(tenant: Tenant, entry: EntryView) -> Crumb:
    url = reverse("admin:call", args=[tenant.slug, entry.call])
    return Crumb(f"Call of {entry.target}", url)
