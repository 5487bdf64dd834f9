"""Pages for the audit log, and for the payload of one entry: reading it and erasing it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import selectors, services
from mcphost.audit.entries import EntryView
from mcphost.audit.models import Payload
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED, REFUSALS, Actor
from mcphost.console.base import (
    Can,
    Crumb,
    SignedInRequest,
    actor,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.records.filters import RecordFilter, named_entries, tenants_of
from mcphost.console.records.pills import OF_CHANGES, PRINCIPAL_LABELS, pills
from mcphost.console.templatetags.console import format_sentence
from mcphost.identity.selectors import token_names
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

PAYLOAD_VIEWED = "payload.viewed"
READINGS: Final = frozenset({PAYLOAD_VIEWED, "questions.viewed", "questions.searched"})
"""Actions that change nothing: many in a row are folded."""
OF_TOKENS: Final = ("token.", "staff_token.")
MIN_FOLDED: Final = 2
"""Rows that are folded; fewer are shown."""


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """An entry of the audit log with the slug of its tenant; `rest` are further ones of the same user and action that
    follow it directly, which the page folds."""

    entry: EntryView
    slug: str
    rest: Sequence[tuple[EntryView, str]] = ()


def grouped(entries: Sequence[tuple[EntryView, str]]) -> Iterator[EntryGroup]:
    """Yield the entries of a page in their order, with those that only read folded into the first of their kind."""
    for (action, *_), run in groupby(entries, key=lambda pair: _kind_of(pair[0])):
        first, *rest = run
        if action in READINGS and len(rest) >= MIN_FOLDED:
            yield EntryGroup(*first, tuple(rest))
        else:
            yield from (EntryGroup(*pair) for pair in (first, *rest))


def _kind_of(entry: EntryView) -> tuple[str, UUID | None, str, str]:
    return entry.action, entry.tenant, entry.actor_id, entry.actor_label


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def audit_log(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List who changed or viewed what in one tenant."""
    return _audit_log(request, frozenset({tenant.pk}), "Audit log")


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_audit_log(request: SignedInRequest) -> HttpResponseBase:
    """List who changed or viewed what in all tenants and in the platform itself."""
    return _audit_log(request, tenants_of(RecordFilter.of(request.GET)), "Platform audit log")


def _audit_log(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str
) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET).only(*OF_CHANGES)
    entry_filter = record_filter.within(tenants, timezone.now())
    page = selectors.verbs(entry_filter, after=record_filter.after, before=record_filter.before)
    tenant = getattr(request, "tenant", None)
    platform = tenant is None
    entries = named_entries(page.entries)
    can = Can(request.user, tenant)
    return show(
        request,
        "records/audit_log.html",
        title,
        record_filter=record_filter,
        entries=entries,
        groups=list(grouped(entries)),
        token_names=token_names(
            entry.target for entry, _ in entries if entry.action.startswith(OF_TOKENS)
        ),
        target_urls={entry.id: _target_url(entry, slug, can) for entry, slug in entries},
        older=record_filter.older(page.after),
        newer=record_filter.newer(page.before),
        pills=pills(
            record_filter, of_all_tenants=platform, names=OF_CHANGES, labels=PRINCIPAL_LABELS
        ),
    )


def _target_url(entry: EntryView, slug: str, can: Can) -> str:
    """Return the page of an entry's target; empty without one that the user may open."""
    area = entry.action.partition(".")[0]
    if slug and area == "token" and can["manage_tokens"]:
        return f"{reverse('admin:tokens', args=[slug])}?at={entry.target}#token-{entry.target}"
    if slug and area == "member" and can["manage_members"]:
        return reverse("admin:members", args=[slug])
    if not slug and area == "user" and entry.target.isdecimal() and can["manage_members"]:
        return reverse("admin:user", args=[entry.target])
    return ""


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def payload(request: SignedInRequest, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """Show the payload of one entry. Reading it is recorded in an entry."""
    entry = _entry(tenant, entry_id)
    payload_view = selectors.payload(entry_id, tenant.pk)
    if payload_view is None:
        raise Http404
    view_on_record(request, tenant, [entry])
    back = step_to_call(tenant, entry)
    return show(
        request,
        "records/payload.html",
        f"Payload of {entry.target}" if entry.target else "Payload",
        page_of(tenant, "calls", "Calls"),
        back,
        entry=entry,
        payload=payload_view,
        back=back,
    )


_CONTENT: Final = "The content (arguments, a result, or both) of one step of a call"
_CONTENTS: Final[Mapping[str, str]] = {
    QUESTION_ASKED: "A question",
    ANSWER_RECEIVED: "An answer to a question",
}


@of_tenant(Permission.MANAGE_TENANT)
def erase(request: SignedInRequest, tenant: Tenant, entry_id: UUID) -> HttpResponseBase:
    """Erase a payload for good, after confirmation. The entry and its commitment stay."""
    entry = _entry(tenant, entry_id)
    if not Payload.objects.filter(tenant=tenant.pk, entry=entry_id).exists():
        raise Http404
    back = step_to_call(tenant, entry)
    if request.method == "POST":
        erase_payload(tenant.pk, entry_id, actor(request))
        messages.success(request, "The payload is erased. Its entry stays.")
        return redirect(back.url)
    return show(
        request,
        "confirm.html",
        f"Erase a payload of “{entry.target}”",
        page_of(tenant, "calls", "Calls"),
        back,
        final=True,
        points=(
            format_sentence(
                "{} of `{}`, recorded at {} UTC, will be erased from this server.",
                _CONTENTS.get(entry.action, _CONTENT),
                entry.target,
                f"{entry.at:%Y-%m-%d %H:%M:%S}",
            ),
            "No auditor will be able to read it, and no search will find it.",
            "The entry will stay, with its commitment: the keyed checksum that shows whether the content was changed.",
        ),
        verb="Erase the payload",
        back=back.url,
    )


@transaction.atomic
def erase_payload(tenant_id: UUID, entry_id: UUID, actor: Actor) -> bool:
    """As `audit.services.erase_payload`, if the actor still manages the tenant.

    Raises PermissionDenied, and UnknownTenantError if the tenant is closed.
    """
    lock_open_tenant(tenant_id, actor, Permission.MANAGE_TENANT)
    return services.erase_payload(entry_id, actor)


def view_on_record(request: SignedInRequest, tenant: Tenant, entries: Sequence[EntryView]) -> None:
    """Record that the user reads the payloads of these entries of one call, before they are shown.

    It is one entry, which names them all.
    """
    if not entries:
        return
    first = entries[0]
    ids = [str(entry.id) for entry in entries]
    services.record(
        PAYLOAD_VIEWED,
        actor=actor(request),
        tenant=tenant.pk,
        target=ids[0] if len(ids) == 1 else str(first.call or ""),
        facts={"tool": first.target, "call": str(first.call or ""), "payloads": ids},
    )


def _entry(tenant: Tenant, entry_id: UUID) -> EntryView:
    entry = selectors.entry(entry_id, frozenset({tenant.pk}))
    if entry is None:
        raise Http404
    return entry


def step_to_call(tenant: Tenant, entry: EntryView) -> Crumb:
    """Return the breadcrumb to an entry's call, or to the list that has it if it belongs to no call.

    A refused request state may belong to no call, and so does a search in questions.
    """
    if entry.call is None and entry.action not in REFUSALS:
        return page_of(tenant, "audit_log", "Audit log")
    if entry.call is None:
        return page_of(tenant, "refusals", "Refusals")
    url = reverse("admin:call", args=[tenant.slug, entry.call])
    return Crumb(f"Call of {entry.target}", url)
