"""Pages for calls: lists, one call from its first round to its last, and refusals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list, selectors
from mcphost.audit.call_times import times_of
from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.timeline import Timeline
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    mcp_url,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.records import call_curl, call_picture, saved_filters, wire
from mcphost.console.records.call_curl import Repetition
from mcphost.console.records.entries import step_to_call, view_on_record
from mcphost.console.records.filters import (
    RecordFilter,
    named_entries,
    tenants_of,
)
from mcphost.console.records.pills import OF_REFUSALS, pills, removals
from mcphost.console.records.wording import display
from mcphost.listings.calls import named_calls, with_task
from mcphost.protocol.schemas import ParamHeader
from mcphost.runtime.call import Delivery
from mcphost.tasks import listing as tasks
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the calls of one tenant, the latest activity first."""
    targets = list(catalogue.target_names(tenant.pk))
    return _listing(request, frozenset({tenant.pk}), "Calls", targets)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_calls(request: SignedInRequest) -> HttpResponseBase:
    """List the calls of all tenants, for platform staff."""
    return _listing(request, tenants_of(RecordFilter.of(request.GET)), "All calls", [])


def _listing(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str, targets: list[str]
) -> HttpResponseBase:
    record_filter, now = RecordFilter.of(request.GET), timezone.now()
    cursor = summaries.newest()  # before the rows, so that no change falls between the two
    page = call_list.calls(
        record_filter.within(tenants, now),
        now,
        after=record_filter.after,
        before=record_filter.before,
    )
    here: Tenant | None = getattr(request, "tenant", None)
    platform = here is None

    def finds(narrowed: RecordFilter, deadline: float) -> bool:
        scope = tenants_of(narrowed) if platform else tenants
        entry_filter = narrowed.within(scope, now)
        return bool(call_list.calls(entry_filter, now, limit=1, deadline=deadline).calls)

    empty = record_filter.is_narrow and not (
        page.calls or record_filter.unknown or record_filter.after or record_filter.before
    )
    return show(
        request,
        "records/call_list.html",
        title,
        record_filter=record_filter,
        calls=named_calls(page.calls),
        older=record_filter.older(page.after),
        newer=record_filter.newer(page.before),
        is_first=page.before is None,
        cursor=cursor,
        changes_url=_changes_url(request),
        saved=saved_filters.visible_filters(request, here, record_filter),
        save_url=saved_filters.add_url(here, record_filter),
        pills=pills(record_filter, of_all_tenants=platform),
        removals=list(removals(record_filter, finds, of_all_tenants=platform)) if empty else [],
        targets=targets,
    )


def _changes_url(request: SignedInRequest) -> str:
    if getattr(request, "tenant", None) is None:
        return reverse("admin:all_calls_changes")
    return reverse("admin:calls_changes", args=[request.tenant.slug])


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def call(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one call: what each round asked, what came back, and what ran because of it."""
    timeline = _call(tenant, call_id)
    kept = selectors.kept([entry.id for entry in timeline.entries], tenant.pk)
    return _show_call(request, timeline, kept, page_of(tenant, "calls", "Calls"))


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def call_payloads(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one call with its payloads. Each payload that is read is recorded in an entry.

    Those that are too large to be shown together are links to pages of their own.
    """
    timeline = _call(tenant, call_id)
    kept = selectors.payloads([entry.id for entry in timeline.entries], tenant.pk)
    payloads = [(entry, kept[entry.id]) for entry in timeline.entries if entry.id in kept]
    read = [entry for entry, of in payloads if not (of.erased_at or of.left_out)]
    view_on_record(request, tenant, read)
    displayed_payloads = {entry.id: display(entry, kept[entry.id]) for entry in read}
    crumbs = page_of(tenant, "calls", "Calls"), step_to_call(tenant, timeline.entries[0])
    sent = wire.messages_of_call(timeline, kept)
    left_out = sum(payload.left_out for payload in kept.values())
    more = {"displayed_payloads": displayed_payloads, "wire": sent, "left_out": left_out}
    return _show_call(request, timeline, kept, *crumbs, title="Payloads", **more)


def _show_call(
    request: SignedInRequest,
    timeline: Timeline,
    kept: Mapping[UUID, PayloadView],
    *crumbs: Crumb,
    title: str = "",
    **more: Any,
) -> HttpResponseBase:
    first, now = timeline.entries[0], timezone.now()
    task = tasks.of_call(first.call, request.tenant.pk) if first.call is not None else None
    repetition = Repetition(
        mcp_url(request, request.tenant.slug),
        timeline,
        _arguments(timeline, kept) if "displayed_payloads" in more else None,
        _mirrored(request.tenant, first),
    )
    return show(
        request,
        "records/call.html",
        title or f"Call of {first.target}",
        *crumbs,
        call=replace(timeline, state=with_task(timeline.state, task)),
        task=task,
        became_task=any(entry.delivery == Delivery.TASK for entry in timeline.entries),
        picture=picture_of(timeline, task, now),
        curl=call_curl.repeat(repetition),
        related=_related(request.tenant, first),
        first=first,
        times=times_of(timeline, now),
        kept=kept,
        total=_total(timeline),
        **more,
    )


def _total(timeline: Timeline) -> int:
    """How many entries the call has, also those that were not read."""
    read, call = len(timeline.entries), timeline.entries[0].call
    if call is None or read < selectors.MAX_ENTRIES:
        return read
    return selectors.count_entries(call)


def picture_of(
    timeline: Timeline, task: tasks.ListedTask | None, now: datetime
) -> call_picture.CallPicture | None:
    """Draw a call; its task, if it has one, says when responses came."""
    settled: dict[int, datetime] = {}
    for question in () if task is None else task.questions:
        if question.settled_at is not None:
            settled[question.round] = max(
                question.settled_at, settled.get(question.round, question.settled_at)
            )
    works = task is not None and task.works
    return call_picture.draw(call_picture.parts(timeline, now, works=works, settled=settled))


def _arguments(timeline: Timeline, kept: Mapping[UUID, PayloadView]) -> Mapping[str, Any] | None:
    """The arguments of the first round that has any on record."""
    for entry in timeline.entries:
        payload = kept.get(entry.id)
        if payload is not None and isinstance(payload.content, Mapping):
            arguments = payload.content.get("arguments")
            if isinstance(arguments, Mapping):
                return arguments
    return None


def _mirrored(tenant: Tenant, first: EntryView) -> Sequence[ParamHeader]:
    """The arguments that the tool, as it is published now, wants in headers too."""
    if first.method != "tools/call":
        return ()
    offered = catalogue.offering(tenant.pk).tools
    return next((tool.param_headers for tool in offered if tool.name == first.target), ())


@dataclass(frozen=True, slots=True)
class Related:
    """A list of calls that have something in common with one call."""

    kind: str
    name: str
    url: str


def _related(tenant: Tenant, first: EntryView) -> list[Related]:
    """Return the lists of all calls of the same caller, client, target and trace."""
    calls = reverse("admin:calls", args=[tenant.slug])
    common = (
        ("caller", first.actor_label, "principal", first.token_id or first.actor_id),
        ("client", first.client_name, "client", first.client_name),
        (_PRIMITIVES.get(first.method, "target"), first.target, "tool", first.target),
        ("trace", first.trace_id, "trace", first.trace_id),
    )
    return [
        Related(kind, name or value, f"{calls}?{urlencode({field: value})}")
        for kind, name, field, value in common
        if value
    ]


_PRIMITIVES = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}


def _call(tenant: Tenant, call_id: UUID) -> Timeline:
    timeline = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    if timeline is None:
        raise Http404
    return timeline


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def refusals(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the request states and answers that were refused, the messages not sent, and why."""
    crumb = page_of(tenant, "calls", "Calls")
    return _refusals(request, frozenset({tenant.pk}), "Refusals", crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_refusals(request: SignedInRequest) -> HttpResponseBase:
    """List the refusals of all tenants, for platform staff."""
    crumb = Crumb("All calls", reverse("admin:all_calls"))
    tenants = tenants_of(RecordFilter.of(request.GET))
    return _refusals(request, tenants, "All refusals", crumb)


def _refusals(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str, crumb: Crumb
) -> HttpResponseBase:
    record_filter = RecordFilter.of(request.GET).only(*OF_REFUSALS)
    entry_filter = record_filter.within(tenants, timezone.now())
    platform = getattr(request, "tenant", None) is None
    page = selectors.refusals(entry_filter, after=record_filter.after, before=record_filter.before)
    return show(
        request,
        "records/refusals.html",
        title,
        crumb,
        record_filter=record_filter,
        entries=named_entries(page.entries),
        older=record_filter.older(page.after),
        newer=record_filter.newer(page.before),
        pills=pills(record_filter, of_all_tenants=platform, names=OF_REFUSALS),
    )
