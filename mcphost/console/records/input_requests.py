"""Pages for questions: the list of all that tools asked, and what became of each."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import question_list
from mcphost.audit import services as audit
from mcphost.audit.question_list import Questions
from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.timeline import OPEN
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.models import FilteredList
from mcphost.console.records import saved_filters
from mcphost.console.records.filters import RecordFilter, tenants_of
from mcphost.console.records.input_request_rows import (
    filter_of,
    is_shown,
    question_filter,
    with_texts,
)
from mcphost.console.records.pills import OF_QUESTIONS, QUESTION_LABELS, pills, removals
from mcphost.listings.input_requests import ListedInputRequest, count_overdue, listed_rows
from mcphost.listings.question_texts import texts_of
from mcphost.listings.stages import EXPIRING, OVERDUE
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

QUESTIONS_VIEWED = "questions.viewed"
TITLE, ALL_TITLE = "Questions", "All questions"
OPEN_STATES: Final = (OPEN, OVERDUE, EXPIRING)
"""The states whose lists have only open questions."""
MAX_OPEN: Final = 100
"""Open questions that are counted above the list."""


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the questions that tools of one tenant asked, the latest first."""
    return _listing(request, frozenset({tenant.pk}), TITLE)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def all_questions(request: SignedInRequest) -> HttpResponseBase:
    """List the questions of all tenants, for platform staff."""
    return _listing(request, tenants_of(RecordFilter.of(request.GET)), ALL_TITLE)


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def payloads(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """The same list with the texts of questions and answers. One entry records which were read."""
    record_filter, now = filter_of(RecordFilter.of(request.GET)), timezone.now()
    page = _page(record_filter, frozenset({tenant.pk}), now)
    texts = texts_of(page.questions, tenant.pk)
    if texts:
        facts = {**record_filter.active_filters, "questions": [str(id) for id in texts]}
        audit.record(
            QUESTIONS_VIEWED,
            actor=actor(request),
            tenant=tenant.pk,
            target="questions",
            facts=facts,
        )
    rows = with_texts(_rows(page, record_filter, now), texts)
    crumb = page_of(tenant, "input_requests", TITLE)
    return _show(request, record_filter, page, rows, "Questions and answers", crumb)


def _listing(
    request: SignedInRequest, tenants: frozenset[UUID] | None, title: str
) -> HttpResponseBase:
    record_filter, now = filter_of(RecordFilter.of(request.GET)), timezone.now()
    cursor = summaries.newest()  # before the rows, so that no change falls between the two
    page = _page(record_filter, tenants, now)
    rows = _rows(page, record_filter, now)
    is_platform = getattr(request, "tenant", None) is None

    def finds(narrowed: RecordFilter, deadline: float) -> bool:
        scope = tenants_of(narrowed) if is_platform else tenants
        filters = question_filter(narrowed, scope, now)
        return bool(question_list.questions(filters, now, limit=1, deadline=deadline).questions)

    empty = record_filter.is_narrow and not (
        rows or record_filter.unknown or record_filter.after or record_filter.before
    )
    chips = removals(record_filter, finds, of_all_tenants=is_platform, names=OF_QUESTIONS)
    return _show(
        request,
        record_filter,
        page,
        rows,
        title,
        cursor=cursor,
        may_cancel=allowed(request.user, getattr(request, "tenant", None), Permission.CANCEL_CALLS),
        open_count="" if record_filter.state in OPEN_STATES else _open_count(tenants, now),
        late=0 if record_filter.state == OVERDUE else count_overdue(tenants, now),
        now=now,
        removals=list(chips) if empty else [],
    )


def _open_count(tenants: frozenset[UUID] | None, now: datetime) -> str:
    """Count the rows that the list of open questions has; empty if it has none."""
    filters = question_filter(RecordFilter(state=OPEN), tenants, now)
    page = question_list.questions(filters, now, limit=MAX_OPEN)
    count = sum(row.is_open for row in listed_rows(page.questions, now))
    return f"{count}+" if page.after else str(count or "")


def _page(record_filter: RecordFilter, tenants: frozenset[UUID] | None, now: datetime) -> Questions:
    return question_list.questions(
        question_filter(record_filter, tenants, now),
        now,
        after=record_filter.after,
        before=record_filter.before,
    )


def _rows(page: Questions, record_filter: RecordFilter, now: datetime) -> list[ListedInputRequest]:
    return [row for row in listed_rows(page.questions, now) if is_shown(row, record_filter)]


def _show(
    request: SignedInRequest,
    record_filter: RecordFilter,
    page: Questions,
    rows: Sequence[ListedInputRequest],
    title: str,
    *crumbs: Crumb,
    cursor: int = 0,
    **more: Any,
) -> HttpResponseBase:
    here: Tenant | None = getattr(request, "tenant", None)
    return show(
        request,
        "records/input_requests.html",
        title,
        *crumbs,
        record_filter=record_filter,
        rows=rows,
        with_texts=bool(crumbs),
        older=record_filter.older(page.after),
        newer=record_filter.newer(page.before),
        is_first=page.before is None,
        pills=pills(
            record_filter,
            of_all_tenants=here is None,
            names=OF_QUESTIONS,
            labels=QUESTION_LABELS,
        ),
        cursor=cursor,
        changes_url=f"{list_url(here)}changes/",
        saved=saved_filters.visible_filters(request, here, record_filter, FilteredList.QUESTIONS),
        save_url=saved_filters.add_url(here, record_filter, FilteredList.QUESTIONS),
        targets=[] if here is None else list(catalogue.target_names(here.pk)),
        list_url=list_url(here),
        **more,
    )


def list_url(tenant: Tenant | None) -> str:
    """Return the address of the list of a tenant, or of all."""
    if tenant is None:
        return reverse("admin:all_input_requests")
    return reverse("admin:input_requests", args=[tenant.slug])
