"""The rows of the list of questions: a recorded question, what became of its call, and for auditors the texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from mcphost.audit import call_list, question_list
from mcphost.audit.question_list import Counted, QuestionFilter, RecordedQuestion
from mcphost.audit.summaries.figures import Period
from mcphost.audit.timeline import OPEN
from mcphost.catalogue import selectors as catalogue
from mcphost.console.periods import COUNTED_DATES
from mcphost.console.records.filters import (
    UNCERTAIN,
    RecordFilter,
    still_open_keys,
    with_task,
)
from mcphost.console.records.pills import OF_QUESTIONS
from mcphost.console.records.question_texts import QuestionTexts
from mcphost.console.records.stages import OVERDUE, RESPONDED, RESPONDED_STATES, STAGES
from mcphost.console.templatetags.console import lasted
from mcphost.runtime.call import Delivery
from mcphost.serving.execution import audit_records
from mcphost.tasks import listing as tasks
from mcphost.tenants.selectors import slugs

NO_TENANT = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ListedInputRequest:
    """A row of the list.

    `state` is that of the question; an answer to a task counts as soon as the task has it. `call_state`
    is that of its call, empty if no call is known. `target` is the target time of its tool, if it has one.
    `text` and `answer_text` are the question and its answer in words, None unless they were read.
    """

    question: RecordedQuestion
    slug: str
    state: str
    call_state: str
    target: timedelta | None
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
            self.question.at + self.target if self.target and self.is_open and not trial else None
        )

    @property
    def is_late(self) -> bool:
        return self.due_at is not None and self.due_at <= self.now

    @property
    def aim(self) -> str:
        """The target time of its tool, in words."""
        return "" if self.target is None else lasted(self.target.total_seconds())


def filter_of(query_filter: RecordFilter) -> RecordFilter:
    """Return the filter without what questions cannot be filtered by."""
    return query_filter.only(*OF_QUESTIONS, "counted")


def question_filter(
    record_filter: RecordFilter, tenants: frozenset[UUID] | None, now: datetime
) -> QuestionFilter:
    """Return the filter for the selector, limited to `tenants`."""
    late: tuple[UUID, ...] | None = None
    of_dates = record_filter.counted == COUNTED_DATES
    if record_filter.state == OVERDUE:
        overdue = call_list.overdue(tenants, catalogue.targets(tenants), now)
        late = tuple(call.call for call in overdue)
    return QuestionFilter(
        tenants=frozenset() if record_filter.unknown else tenants,
        target=record_filter.tool,
        principal=record_filter.principal,
        client=record_filter.client,
        states=_states_of(record_filter.state),
        calls=late,
        since=None if of_dates else record_filter.begins(now),
        until=None if of_dates else record_filter.dates.until,
        counted=_counted(record_filter, now),
    )


def _states_of(state: str) -> tuple[str, ...]:
    return RESPONDED_STATES if state == RESPONDED else STAGES.get(state, ())


def _counted(record_filter: RecordFilter, now: datetime) -> Counted | None:
    if record_filter.counted == COUNTED_DATES:
        return Counted(record_filter.begins(now), record_filter.dates.until)
    return Counted(Period(record_filter.counted).start(now)) if record_filter.counted else None


def listed_rows(
    questions: Iterable[RecordedQuestion], now: datetime
) -> Sequence[ListedInputRequest]:
    """Return the rows of these questions, in their order."""
    read = tuple(questions)
    slug_by_tenant = slugs(question.tenant for question in read)
    tenants = frozenset(question.tenant for question in read if question.tenant is not None)
    targets = catalogue.targets(tenants) if tenants else {}
    waiting = still_open_keys(
        question.call
        for question in read
        if question.state == OPEN and question.delivery == Delivery.TASK
    )
    call_states, rows = _call_states(read), []
    for question in read:
        seconds = targets.get((question.tenant or NO_TENANT, question.target))
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


def is_shown(row: ListedInputRequest, record_filter: RecordFilter) -> bool:
    """Whether a row that the filter found is shown: not as open if its task has the answer already."""
    return record_filter.state not in (OPEN, OVERDUE) or row.is_open


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


def with_texts(
    rows: Sequence[ListedInputRequest], texts: Mapping[UUID, QuestionTexts]
) -> list[ListedInputRequest]:
    """Return the rows with the texts of their questions and answers."""
    return [
        replace(row, text=of_row.question, answer_text=of_row.answer)
        for row in rows
        if (of_row := texts.get(row.question.id)) is not None
    ]
