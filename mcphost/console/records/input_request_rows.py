"""The list of questions as the console filters it, and its rows with the texts that auditors read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from mcphost.audit.question_list import Counted, QuestionFilter
from mcphost.audit.summaries.figures import Period
from mcphost.console.periods import COUNTED_DATES
from mcphost.console.records.filters import RecordFilter
from mcphost.console.records.pills import OF_QUESTIONS
from mcphost.listings.input_requests import ListedInputRequest, in_stage, is_in_stage
from mcphost.listings.question_texts import QuestionTexts


def filter_of(query_filter: RecordFilter) -> RecordFilter:
    """Return the filter without what questions cannot be filtered by."""
    return query_filter.only(*OF_QUESTIONS, "counted")


def question_filter(
    record_filter: RecordFilter, tenants: frozenset[UUID] | None, now: datetime
) -> QuestionFilter:
    """Return the filter for the selector, limited to `tenants`."""
    if record_filter.unknown:  # nothing is selected, and none of the values is read
        return QuestionFilter(tenants=frozenset())
    of_dates = record_filter.counted == COUNTED_DATES
    filters = QuestionFilter(
        tenants=tenants,
        target=record_filter.tool,
        principal=record_filter.principal,
        client=record_filter.client,
        since=None if of_dates else record_filter.begins(now),
        until=None if of_dates else record_filter.dates.until,
        counted=_counted(record_filter, now),
    )
    return in_stage(filters, record_filter.state, now)


def _counted(record_filter: RecordFilter, now: datetime) -> Counted | None:
    if record_filter.counted == COUNTED_DATES:
        return Counted(record_filter.begins(now), record_filter.dates.until)
    return Counted(Period(record_filter.counted).start(now)) if record_filter.counted else None


def is_shown(row: ListedInputRequest, record_filter: RecordFilter) -> bool:
    """Whether a row that the filter found is shown: not as open if its task has the answer already."""
    return is_in_stage(row, record_filter.state)


def with_texts(
    rows: Sequence[ListedInputRequest], texts: Mapping[UUID, QuestionTexts]
) -> list[ListedInputRequest]:
    """Return the rows with the texts of their questions and answers."""
    return [
        replace(row, text=of_row.question, answer_text=of_row.answer)
        for row in rows
        if (of_row := texts.get(row.question.id)) is not None
    ]
