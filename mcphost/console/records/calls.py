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
    named_calls,
    named_entries,
    tenants_of,
    with_task,
)
from mcphost.console.records.pills import OF_REFUSALS, pills, removals
from mcphost.console.records.wording import display
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
    asked, now = RecordFilter.of(request.GET), timezone.now()
    cursor = summaries.newest()  # before the rows, so that no change falls between the two
    page = call_list.calls(asked.within(tenants, now), now, after=asked.after, before=asked.before)
    here: Tenant | None = getattr(request, "tenant", None)
    platform = here is None

    def finds(narrowed: RecordFilter, until: float) -> bool:
        scope = tenants_of(narrowed) if platform else tenants
        chosen = narrowed.within(scope, now)
        return bool(call_list.calls(chosen, now, limit=1, until=until).calls)

    empty = asked.is_narrow and not (page.calls or asked.unknown or asked.after or asked.before)
    return show(
        request,
        "records/call_list.html",
        title,
        asked=asked,
        calls=named_calls(page.calls),
        older=asked.older(page.after),
        newer=asked.newer(page.before),
        is_first=page.before is None,
        cursor=cursor,
        changes_url=_changes_url(request),
        saved=saved_filters.listed(request, here, asked),
        save_url=saved_filters.add_url(here, asked),
        pills=pills(asked, of_all_tenants=platform),
        removals=list(removals(asked, finds, of_all_tenants=platform)) if empty else [],
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
    found = _call(tenant, call_id)
    kept = selectors.kept([entry.id for entry in found.entries], tenant.pk)
    return _shown(request, found, kept, page_of(tenant, "calls", "Calls"))


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def call_payloads(request: SignedInRequest, tenant: Tenant, call_id: UUID) -> HttpResponseBase:
    """Show one call with its payloads. Each payload that is read is recorded in an entry.

    Those that are too large to be shown together are links to pages of their own.
    """
    found = _call(tenant, call_id)
    kept = selectors.payloads([entry.id for entry in found.entries], tenant.pk)
    payloads = [(each, kept[each.id]) for each in found.entries if each.id in kept]
    read = [each for each, of in payloads if not (of.erased_at or of.left_out)]
    view_on_record(request, tenant, read)
    said = {each.id: display(each, kept[each.id]) for each in read}
    crumbs = page_of(tenant, "calls", "Calls"), step_to_call(tenant, found.entries[0])
    sent = wire.of_call(found, kept)
    left_out = sum(each.left_out for each in kept.values())
    more = {"said": said, "wire": sent, "left_out": left_out}
    return _shown(request, found, kept, *crumbs, title="Payloads", **more)


def _shown(
    request: SignedInRequest,
    found: Timeline,
    kept: Mapping[UUID, PayloadView],
    *crumbs: Crumb,
    title: str = "",
    **more: Any,
) -> HttpResponseBase:
    first, now = found.entries[0], timezone.now()
    task = tasks.of_call(first.call, request.tenant.pk) if first.call is not None else None
    repetition = Repetition(
        mcp_url(request, request.tenant.slug),
        found,
        _arguments(found, kept) if "said" in more else None,
        _mirrored(request.tenant, first),
    )
    return show(
        request,
        "records/call.html",
        title or f"Call of {first.target}",
        *crumbs,
        call=replace(found, state=with_task(found.state, task)),
        task=task,
        became_task=any(each.delivery == Delivery.TASK for each in found.entries),
        picture=picture_of(found, task, now),
        curl=call_curl.repeat(repetition),
        related=_related(request.tenant, first),
        first=first,
        kept=kept,
        total=_total(found),
        **more,
    )


def _total(found: Timeline) -> int:
    """How many entries the call has, also those that were not read."""
    read, call = len(found.entries), found.entries[0].call
    if call is None or read < selectors.MAX_ENTRIES:
        return read
    return selectors.count_entries(call)


def picture_of(
    found: Timeline, task: tasks.ListedTask | None, now: datetime
) -> call_picture.CallPicture | None:
    """Draw a call; its task, if it has one, says when responses came."""
    settled: dict[int, datetime] = {}
    for asked in () if task is None else task.questions:
        if asked.settled_at is not None:
            settled[asked.round] = max(asked.settled_at, settled.get(asked.round, asked.settled_at))
    works = task is not None and task.works
    return call_picture.draw(call_picture.parts(found, now, works=works, settled=settled))


def _arguments(found: Timeline, kept: Mapping[UUID, PayloadView]) -> Mapping[str, Any] | None:
    """The arguments of the first round that has any on record."""
    for each in found.entries:
        payload = kept.get(each.id)
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
    return next((each.param_headers for each in offered if each.name == first.target), ())


@dataclass(frozen=True, slots=True)
class Related:
    """A list of calls that have something in common with one call."""

    what: str
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
        Related(what, name or value, f"{calls}?{urlencode({field: value})}")
        for what, name, field, value in common
        if value
    ]


_PRIMITIVES = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}


def _call(tenant: Tenant, call_id: UUID) -> Timeline:
    found = call_list.call(call_id, frozenset({tenant.pk}), timezone.now())
    if found is None:
        raise Http404
    return found


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def refusals(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the request states and answers that were refused, the messages not sent, and why."""
    crumb = page_of(tenant, "calls", "Calls")
    return _refusals(request, frozenset({tenant.pk}), crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_refusals(request: SignedInRequest) -> HttpResponseBase:
    """List the refusals of all tenants, for platform staff."""
    return _refusals(request, tenants_of(RecordFilter.of(request.GET)))


def _refusals(
    request: SignedInRequest, tenants: frozenset[UUID] | None, *crumbs: Crumb
) -> HttpResponseBase:
    asked = RecordFilter.of(request.GET).only(*OF_REFUSALS)
    chosen = asked.within(tenants, timezone.now())
    platform = getattr(request, "tenant", None) is None
    page = selectors.refusals(chosen, after=asked.after, before=asked.before)
    return show(
        request,
        "records/refusals.html",
        "Refusals",
        *crumbs,
        asked=asked,
        entries=named_entries(page.entries),
        older=asked.older(page.after),
        newer=asked.newer(page.before),
        pills=pills(asked, of_all_tenants=platform, names=OF_REFUSALS),
    )
