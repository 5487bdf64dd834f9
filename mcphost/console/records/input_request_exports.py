"""Export a filtered list of questions; for auditors with the questions and answers in words."""

from typing import Any, Final
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import question_list
from mcphost.console.base import Crumb, SignedInRequest, of_platform, of_tenant, page_of
from mcphost.console.records.exports import (
    ExportedList,
    ExportScope,
    Row,
    Rows,
    export_file,
    export_page,
    export_part,
    pills_of,
    scope_of,
)
from mcphost.console.records.input_request_rows import filter_of, is_shown, question_filter
from mcphost.console.records.pills import OF_QUESTIONS, QUESTION_LABELS
from mcphost.console.records.question_texts import whole_texts_of
from mcphost.listings.input_requests import ListedInputRequest, listed_rows
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_TEXTS: Final = 100
"""Questions that are decrypted together."""
_COLUMNS: Final = (
    "at", "tenant", "id", "key", "method", "mode", "tool", "version", "asked_of", "token", "client",
    "client_version", "delivery", "state", "expires_at", "answered_at", "answered_by", "evidence",
    "seconds", "ran", "call", "round", "call_outcome",
)  # fmt: skip
_TEXTS: Final = ("question", "answer")


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that exports the questions of one tenant, with progress."""
    crumb = page_of(tenant, "input_requests", "Questions")
    return _page(request, tenant, crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def page_of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show the page that exports the questions of all tenants, with progress."""
    return _page(request, None, Crumb("All questions", reverse("admin:all_input_requests")))


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def part(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Return the next part of an export of one tenant's questions."""
    return export_part(request, _exported(request, tenant), _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def part_of_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Return the next part of an export of the questions of all tenants."""
    return export_part(request, _exported(request, None), _scope(request, None), form)


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def export(request: SignedInRequest, tenant: Tenant, form: str) -> HttpResponseBase:
    """Export the questions of one tenant."""
    return export_file(request, _exported(request, tenant), _scope(request, tenant), form)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def export_all(request: SignedInRequest, form: str) -> HttpResponseBase:
    """Export the questions of all tenants, for platform staff."""
    return export_file(request, _exported(request, None), _scope(request, None), form)


def _page(request: SignedInRequest, tenant: Tenant | None, crumb: Crumb) -> HttpResponseBase:
    scope = _scope(request, tenant)
    chips = pills_of(scope, names=OF_QUESTIONS, labels=QUESTION_LABELS)
    return export_page(request, _exported(request, tenant), scope, crumb, chips)


def _scope(request: SignedInRequest, tenant: Tenant | None) -> ExportScope:
    scope = scope_of(request, tenant)
    return ExportScope(
        filter_of(scope.record_filter), scope.tenants, scope.name, scope.tenant, scope.now
    )


def _exported(request: SignedInRequest, tenant: Tenant | None) -> ExportedList:
    """The list as the user may read it: with texts only for auditors of the tenant."""
    if tenant is not None and allowed(request.user, tenant, Permission.VIEW_PAYLOADS):
        return _WITH_TEXTS
    return _PLAIN


def _read(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    rows, after = _listed(scope, after, limit)
    return [_row(row) for row in rows], after


def _read_texts(scope: ExportScope, after: UUID | None, limit: int) -> Rows:
    assert scope.tenant is not None
    rows, after = _listed(scope, after, min(limit, MAX_TEXTS))
    texts = whole_texts_of([row.question for row in rows], scope.tenant)
    return [
        {**_row(row), **dict(zip(_TEXTS, texts[row.question.id], strict=True))} for row in rows
    ], after


def _listed(
    scope: ExportScope, after: UUID | None, limit: int
) -> tuple[list[ListedInputRequest], UUID | None]:
    record_filter, now = scope.record_filter, timezone.now()
    filters = question_filter(record_filter, scope.tenants, scope.now)
    page = question_list.questions(filters, now, after=after, limit=limit)
    rows = [row for row in listed_rows(page.questions, now) if is_shown(row, record_filter)]
    return rows, page.after


def _row(row: ListedInputRequest) -> Row:
    question = row.question
    values: dict[str, Any] = {
        "at": question.at.isoformat(),
        "tenant": row.slug,
        "id": str(question.id),
        "key": question.key,
        "method": question.method,
        "mode": question.mode,
        "tool": question.target,
        "version": question.target_version,
        "asked_of": question.caller,
        "token": question.token_id,
        "client": question.client_name,
        "client_version": question.client_version,
        "delivery": question.delivery,
        "state": row.state,
        "expires_at": question.expires_at and question.expires_at.isoformat(),
        "answered_at": question.answered_at and question.answered_at.isoformat(),
        "answered_by": question.answered_by,
        "evidence": question.evidence,
        "seconds": None if question.took_ms is None else question.took_ms / 1000,
        "ran": question.ran,
        "call": str(question.call),
        "round": question.round,
        "call_outcome": row.call_state,
    }
    return values


_PLAIN: Final = ExportedList("questions", "questions.exported", _COLUMNS, _read)
_WITH_TEXTS: Final = ExportedList(
    "questions", "questions.exported", (*_COLUMNS, *_TEXTS), _read_texts
)
