"""The list of questions: all that tools asked, open or not, and what became of each."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mcphost.audit.models import CallSummary, QuestionSummary
from mcphost.audit.selectors import PAGE, Cursor
from mcphost.audit.summaries import follower
from mcphost.audit.summaries.question_search import (
    Counted,
    Expiry,
    QuestionFilter,
    condition_of,
    find_questions,
)

__all__ = [
    "Counted",
    "Expiry",
    "QuestionFilter",
    "Questions",
    "RecordedQuestion",
    "matching_ids",
    "of_calls",
    "question",
    "questions",
    "questions_with_ids",
]


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A question, as its row says (`models.QuestionSummary`)."""

    id: UUID
    at: datetime
    tenant: UUID | None
    call: UUID
    round: int
    key: str
    method: str
    mode: str
    target: str
    target_version: str
    actor_kind: str
    actor_id: str
    caller: str
    token_id: str
    client_name: str
    client_version: str
    delivery: str
    state: str
    expires_at: datetime | None
    answer: UUID | None
    answered_at: datetime | None
    answered_by: str
    evidence: str
    took_ms: int | None
    ran: str


@dataclass(frozen=True, slots=True)
class Questions:
    """A page of questions; `after` is the cursor of the next, older page, None on the last; `before` is that
    of the newer page, None on the first."""

    questions: tuple[RecordedQuestion, ...]
    after: UUID | None
    before: UUID | None = None


def questions(
    filters: QuestionFilter,
    now: datetime,
    *,
    after: UUID | None = None,
    before: UUID | None = None,
    limit: int = PAGE,
    deadline: float | None = None,
) -> Questions:
    """A page of questions, the newest first. A page with fewer than `limit` questions is not
    necessarily the last: `after` says so.

    `deadline` (`time.monotonic`): when to stop comparing rows and return a short page; default:
    `windows.deadline()`.
    """
    follower.catch_up(now)
    page = find_questions(filters, now, Cursor(after, before, limit), deadline)
    rows = QuestionSummary.objects.in_bulk(page.ids)
    views = tuple(_view(rows[id]) for id in page.ids if id in rows)
    return Questions(views, page.after, page.before)


def count(
    filters: QuestionFilter, now: datetime, *, after: UUID | None, limit: int
) -> tuple[int, UUID | None]:
    """How many questions the page after a cursor has, and the cursor of the next one."""
    follower.catch_up(now)
    page = find_questions(filters, now, Cursor(after, None, limit))
    return len(page.ids), page.after


def of_calls(calls: Collection[UUID]) -> tuple[RecordedQuestion, ...]:
    """The questions of these calls, the newest first."""
    return tuple(map(_view, QuestionSummary.objects.filter(call__in=calls).order_by("-id")))


def matching_ids(ids: Collection[UUID], filters: QuestionFilter) -> frozenset[UUID]:
    """Those of these questions that a filter selects."""
    rows = QuestionSummary.objects.filter(condition_of(filters), id__in=ids)
    return frozenset(rows.order_by().values_list("id", flat=True))


def question(question_id: UUID, tenants: frozenset[UUID], now: datetime) -> RecordedQuestion | None:
    """One question; None if there is none of that id in `tenants`."""
    follower.catch_up(now)
    row = QuestionSummary.objects.filter(id=question_id, tenant__in=tenants).first()
    return None if row is None else _view(row)


def questions_with_ids(
    ids: Collection[UUID], tenants: frozenset[UUID], now: datetime
) -> tuple[RecordedQuestion, ...]:
    """The questions with these ids, of those that are of `tenants`, the newest first."""
    follower.catch_up(now)
    rows = QuestionSummary.objects.filter(id__in=ids, tenant__in=tenants).order_by("-id")
    return tuple(map(_view, rows))


def states_of_calls(calls: Collection[UUID]) -> dict[UUID, str]:
    """The states of these calls, as lists show them."""
    rows = CallSummary.objects.filter(call__in=calls)
    return dict(rows.order_by().values_list("call", "state"))


def _view(row: QuestionSummary) -> RecordedQuestion:
    values: dict[str, Any] = {
        name: getattr(row, name) for name in RecordedQuestion.__dataclass_fields__
    }
    return RecordedQuestion(**values)
