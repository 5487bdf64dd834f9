"""The page of one question: its text, the person who was asked, each answer, and what ran because of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list, question_list, selectors
from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.question_list import RecordedQuestion
from mcphost.audit.timeline import Timeline, TimelineQuestion
from mcphost.console.base import SignedInRequest, of_tenant, page_of, show
from mcphost.console.records.entries import view_on_record
from mcphost.console.records.wording import display
from mcphost.console.templatetags.questions import question_title
from mcphost.listings.input_requests import listed_rows
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def detail(request: SignedInRequest, tenant: Tenant, question_id: UUID) -> HttpResponseBase:
    """Show one question."""
    row, timeline = _read(tenant, question_id, timezone.now())
    question = _of_timeline(tenant, row, timeline)
    kept = selectors.kept([entry.id for entry in _entries(question)], tenant.pk)
    return _show(request, row, timeline, question, kept)


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def payloads(request: SignedInRequest, tenant: Tenant, question_id: UUID) -> HttpResponseBase:
    """Show one question with the texts of itself and its answers. Each that is read is recorded."""
    row, timeline = _read(tenant, question_id, timezone.now())
    question = _of_timeline(tenant, row, timeline)
    entries = _entries(question)
    kept = selectors.payloads([entry.id for entry in entries], tenant.pk)
    read = [
        entry
        for entry in entries
        if entry.id in kept and not (kept[entry.id].erased_at or kept[entry.id].left_out)
    ]
    view_on_record(request, tenant, read)
    texts = {entry.id: display(entry, kept[entry.id]) for entry in read}
    return _show(request, row, timeline, question, kept, displayed_payloads=texts)


def _read(tenant: Tenant, question_id: UUID, now: datetime) -> tuple[RecordedQuestion, Timeline]:
    own = frozenset({tenant.pk})
    row = question_list.question(question_id, own, now)
    timeline = None if row is None else call_list.call(row.call, own, now)
    if row is None or timeline is None:
        raise Http404
    return row, timeline


def _of_timeline(tenant: Tenant, row: RecordedQuestion, timeline: Timeline) -> TimelineQuestion:
    """The question in the timeline of its call. Of a call with very many entries it may not be among those read."""
    for question in timeline.questions:
        if question.entry.id == row.id:
            return question
    entry = selectors.entry(row.id, frozenset({tenant.pk}))
    if entry is None:
        raise Http404
    return TimelineQuestion(entry, row.state, row.expires_at)


def _entries(question: TimelineQuestion) -> list[EntryView]:
    return [question.entry, *(answer.entry for answer in question.answers)]


def _show(
    request: SignedInRequest,
    row: RecordedQuestion,
    timeline: Timeline,
    question: TimelineQuestion,
    kept: Mapping[UUID, PayloadView],
    **more: Any,
) -> HttpResponseBase:
    tenant = request.tenant
    (listed,) = listed_rows([row], timezone.now())
    numbers = {answer.entry.round for answer in question.answers}  # of what ran because of them
    return show(
        request,
        "records/input_request.html",
        question_title(row.key),
        page_of(tenant, "input_requests", "Questions"),
        row=listed,
        question=question,
        entry=question.entry,
        call=timeline,
        call_url=reverse("admin:call", args=[tenant.slug, row.call]),
        rounds=[round for round in timeline.rounds if round.number in numbers and round.attempts],
        kept=kept,
        **more,
    )
