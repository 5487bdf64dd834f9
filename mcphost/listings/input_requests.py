"""Input requests of a list: what was recorded of each, what became of its call, and whether it is overdue."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from mcphost.audit import call_list, question_list
from mcphost.audit.question_list import Expiry, QuestionFilter, RecordedQuestion
from mcphost.audit.timeline import OPEN
from mcphost.catalogue import selectors as catalogue
from mcphost.listings.calls import UNCERTAIN, with_task
from mcphost.listings.exports import Row, RowCount, Rows
from mcphost.listings.question_texts import whole_texts_of
from mcphost.listings.stages import (
    EXPIRES_SOON,
    EXPIRING,
    OVERDUE,
    RESPONDED,
    RESPONDED_STATES,
    STAGES,
)
from mcphost.runtime.call import Delivery
from mcphost.serving.execution import audit_records
from mcphost.tasks import listing as tasks
from mcphost.tenants.selectors import slugs

NO_TENANT = UUID(int=0)
INPUT_REQUEST_COLUMNS: Final = (
    "at", "tenant", "id", "key", "method", "mode", "tool", "version", "asked_of", "token", "client",
    "client_version", "delivery", "state", "expires_at", "answered_at", "answered_by", "evidence",
    "seconds", "ran", "call", "round", "call_outcome",
)  # fmt: skip
"""The columns of exported input requests."""
TEXT_COLUMNS: Final = ("question", "answer")
"""Those for auditors."""
MAX_TEXTS: Final = 100
"""Input requests that are decrypted together."""


@dataclass(frozen=True, slots=True)
class ListedInputRequest:
    """A row of the list.

    `state` is that of the question; an answer to a task counts as soon as the task has it. `call_state`
    is that of its call, empty if no call is known. `target_time` is that of its tool, if it has
    one.
    `text` and `answer_text` are the question and its answer in words, None unless they were read.
    """

    question: RecordedQuestion
    slug: str
    state: str
    call_state: str
    target_time: timedelta | None
    now: datetime
    text: str | None = None
    answer_text: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == OPEN

    @property
    def due_at(self) -> datetime | None:
        """From when it is overdue, if it stays open; None if it cannot be."""
        trial = self.question.delivery == Delivery.PLAYGROUND
        return (
            self.question.at + self.target_time
            if self.target_time and self.is_open and not trial
            else None
        )

    @property
    def is_late(self) -> bool:
        return self.due_at is not None and self.due_at <= self.now


def in_stage(filters: QuestionFilter, stage: str, now: datetime) -> QuestionFilter:
    """Narrow a filter to one stage (`stages`): a group of states such as `answered`, or `responded`, `expiring`
    or `overdue`. An empty stage leaves the filter unchanged."""
    if stage == RESPONDED:
        return replace(filters, states=RESPONDED_STATES)
    if stage == EXPIRING:
        return replace(filters, states=(OPEN,), expires=Expiry(now, now + EXPIRES_SOON))
    if stage != OVERDUE:
        return replace(filters, states=STAGES.get(stage, ()))
    overdue = call_list.overdue(filters.tenants, catalogue.target_times(filters.tenants), now)
    return replace(filters, calls=tuple(call.call for call in overdue))


def listed_rows(
    questions: Iterable[RecordedQuestion], now: datetime
) -> Sequence[ListedInputRequest]:
    """Return the rows of these questions, in their order."""
    read = tuple(questions)
    slug_by_tenant = slugs(question.tenant for question in read)
    tenants = frozenset(question.tenant for question in read if question.tenant is not None)
    target_seconds_by_tool = catalogue.target_times(tenants) if tenants else {}
    waiting = still_open_keys(
        question.call
        for question in read
        if question.state == OPEN and question.delivery == Delivery.TASK
    )
    call_states, rows = _call_states(read), []
    for question in read:
        seconds = target_seconds_by_tool.get((question.tenant or NO_TENANT, question.target))
        row = ListedInputRequest(
            question,
            slug_by_tenant.get(question.tenant, ""),
            _state(question, waiting),
            call_states.get(question.call, ""),
            None if seconds is None else timedelta(seconds=seconds),
            now,
        )
        rows.append(row)
    return rows


def exported_input_requests(
    filters: QuestionFilter, stage: str, after: UUID | None, limit: int
) -> Rows:
    """Return input requests after a cursor as an export has them, and the cursor after those."""
    rows, after = _rows_after(filters, stage, after, limit)
    return [input_request_row(row) for row in rows], after


def exported_with_texts(
    filters: QuestionFilter, stage: str, tenant: UUID, after: UUID | None, limit: int
) -> Rows:
    """The same for an auditor of the tenant, with questions and answers in words. The caller records it."""
    rows, after = _rows_after(filters, stage, after, min(limit, MAX_TEXTS))
    texts = whole_texts_of([row.question for row in rows], tenant)
    return [
        {
            **input_request_row(row),
            **dict(zip(TEXT_COLUMNS, texts[row.question.id], strict=True)),
        }
        for row in rows
    ], after


def _rows_after(
    filters: QuestionFilter, stage: str, after: UUID | None, limit: int
) -> tuple[list[ListedInputRequest], UUID | None]:
    now = timezone.now()
    page = question_list.questions(filters, now, after=after, limit=limit)
    return [row for row in listed_rows(page.questions, now) if is_in_stage(row, stage)], page.after


def count_input_requests(
    filters: QuestionFilter, stage: str, after: UUID | None, limit: int
) -> RowCount:
    """Count at most `limit` input requests after a cursor, as an export would have them."""
    if stage in (OPEN, OVERDUE, EXPIRING):
        rows, after = _rows_after(filters, stage, after, limit)
        return RowCount(len(rows), after)
    return RowCount(*question_list.count(filters, timezone.now(), after=after, limit=limit))


def input_request_row(row: ListedInputRequest) -> Row:
    """Return an input request as an export has it, without its texts."""
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


def is_in_stage(row: ListedInputRequest, stage: str) -> bool:
    """Whether to show a row that the filter selected.

    A task's question that has been answered, but not yet used, is not shown as open.
    """
    return stage not in (OPEN, OVERDUE, EXPIRING) or row.is_open


def still_open_keys(task_calls: Iterable[UUID | None]) -> frozenset[tuple[UUID, str]]:
    """Return the questions of these tasks that have no answer yet: their calls and keys."""
    calls = {call for call in task_calls if call is not None}
    return tasks.open_questions(calls) if calls else frozenset()


def count_open(
    tenants: frozenset[UUID] | None,
    now: datetime,
    *,
    target: str = "",
    until: datetime | None = None,
) -> int:
    """Count the input requests that wait for clients.

    Questions of tasks that have been answered are not counted. `target` and `until` (expiry) narrow it.
    """
    waiting = call_list.count_waiting(tenants, now, target=target, until=until)
    return waiting + tasks.count_open_questions(tenants, tool=target, until=until)


def count_overdue(tenants: frozenset[UUID] | None, now: datetime) -> int:
    """Count the open questions that are overdue."""
    overdue = call_list.overdue(tenants, catalogue.target_times(tenants), now)
    of_tasks = {call.call for call in overdue if call.delivery == Delivery.TASK}
    open_count = sum(call.open for call in overdue if call.delivery != Delivery.TASK)
    return open_count + len(still_open_keys(of_tasks))


def _state(question: RecordedQuestion, waiting: frozenset[tuple[UUID, str]]) -> str:
    if question.state != OPEN or question.delivery != Delivery.TASK:
        return question.state
    is_waiting = (question.call, question.key) in waiting
    return OPEN if is_waiting else audit_records.RECEIVED


def _call_states(questions: Iterable[RecordedQuestion]) -> Mapping[UUID, str]:
    states = question_list.states_of_calls({question.call for question in questions})
    uncertain = [call for call, state in states.items() if state in UNCERTAIN]
    task_by_call = tasks.of_calls(uncertain) if uncertain else {}
    return {call: with_task(state, task_by_call.get(call)) for call, state in states.items()}
