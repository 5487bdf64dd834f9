"""What a live list shows: a scope, a filter, and the messages with the rows that changed."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from mcphost.audit import call_list, question_list
from mcphost.audit.call_list import REFUSED, WITH_QUESTIONS, ListedCall
from mcphost.audit.entries import EntryView
from mcphost.audit.records import ROUND_FINISHED
from mcphost.audit.selectors import MADE_BY_TRIALS, EntryFilter
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.projection import is_error
from mcphost.audit.summaries.search import NO_ERROR
from mcphost.audit.summaries.selectors import CallChanges
from mcphost.audit.timeline import DECLINED, UNASKED
from mcphost.console.invisible_characters import shown_page
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter
from mcphost.console.records.input_request_rows import (
    filter_of,
    is_shown,
    question_filter,
)
from mcphost.listings.calls import named_calls
from mcphost.listings.input_requests import ListedInputRequest, listed_rows
from mcphost.runtime.call import Delivery

MAX_CHANGES = 1000
"""Calls that one message may be chosen from. After more, the list has to be loaded again."""
MAX_MISSED = 200
"""The same, for what a client missed before it connected: clients connect as often as they like."""
MAX_ROWS = 50
"""Rows of one message, as many as a page has; others are only counted."""


@dataclass(frozen=True, slots=True)
class LiveView:
    """A list: the tenants that its reader may see (None: all), and its filter.

    `of_platform` lists have a column that names the tenant.
    """

    tenants: frozenset[UUID] | None
    record_filter: RecordFilter
    of_platform: bool
    listing: FilteredList = FilteredList.CALLS


def cursor_of(text: str) -> int | None:
    """Parse a cursor; None if it is none."""
    cursor = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    return cursor if 0 <= cursor < 1 << 63 else None


def messages(
    changes: CallChanges, views: Collection[LiveView], now: datetime
) -> Mapping[LiveView, str]:
    """Return a message for each list in which something changed."""
    if changes.calls is None:
        return dict.fromkeys(views, stale(changes.cursor))
    makers = _makers(changes.calls, {view.listing for view in views}, now)
    texts = {}
    for view in views:
        row_changes = makers[view.listing].row_changes(view) if makers else {}
        if row_changes:
            texts[view] = json.dumps(
                {"cursor": str(changes.cursor), **row_changes}, ensure_ascii=False
            )
    return texts


def _makers(
    calls: Collection[UUID], listings: Collection[FilteredList], now: datetime
) -> Mapping[FilteredList, "_Rows | QuestionRows"]:
    """Read what changed, once for all lists; nothing if no call did."""
    if not calls:
        return {}
    return {
        listing: _Rows(calls, now) if listing == FilteredList.CALLS else QuestionRows(calls, now)
        for listing in listings
    }


def stale(cursor: int) -> str:
    """Return the message that the list has to be loaded again."""
    return json.dumps({"cursor": str(cursor), "stale": True})


def beat(cursor: int) -> str:
    """Return the message that nothing changed."""
    return json.dumps({"cursor": str(cursor)})


class _Rows:
    """Calls that changed, each rendered once for all lists that show it."""

    def __init__(self, calls: Collection[UUID], now: datetime) -> None:
        self._now = now
        self._listed = call_list.listed(calls, now)
        self._named = {
            listed.entry.call: (listed, slug) for listed, slug in named_calls(self._listed)
        }
        self._rendered: dict[tuple[UUID | None, bool], str] = {}
        self._calls = calls

    @cached_property
    def _unasked(self) -> frozenset[UUID | None]:
        """Read once for all lists that need it."""
        return call_list.unasked(self._calls)

    def row_changes(self, view: LiveView) -> Mapping[str, Any]:
        """The rows that the list shows now, and the calls that it no longer shows."""
        entry_filter = view.record_filter.within(view.tenants, self._now)
        readable = [
            listed
            for listed in self._listed
            if view.tenants is None or listed.entry.tenant in view.tenants
        ]
        shown = [
            listed
            for listed in readable
            if matches(listed, entry_filter, self._now, lambda: self._unasked)
        ]
        calls = {listed.entry.call for listed in shown}
        removed = [str(listed.entry.call) for listed in readable if listed.entry.call not in calls]
        if not (shown or removed):
            return {}
        return {
            "rows": [self._row(listed, view.of_platform) for listed in shown[:MAX_ROWS]],
            "skipped": max(0, len(shown) - MAX_ROWS),
            "gone": removed,
        }

    def _row(self, listed: ListedCall, of_platform: bool) -> Mapping[str, str]:
        key = listed.entry.call, of_platform
        if key not in self._rendered:
            call, slug = self._named[listed.entry.call]
            self._rendered[key] = render_row(call, slug, of_platform=of_platform)
        return {"call": str(listed.entry.call), "html": self._rendered[key]}


class QuestionRows:
    """The questions of calls that changed, each rendered once for all lists that show it."""

    def __init__(self, calls: Collection[UUID], now: datetime) -> None:
        self._now = now
        self._rows = listed_rows(question_list.of_calls(calls), now)
        self._rendered: dict[tuple[UUID, bool], str] = {}

    def row_changes(self, view: LiveView) -> Mapping[str, Any]:
        """The rows that the list shows now, and the questions that it no longer shows."""
        tenants = view.tenants
        readable = [row for row in self._rows if tenants is None or row.question.tenant in tenants]
        if not readable:
            return {}
        record_filter = filter_of(view.record_filter)
        matching = question_list.matching_ids(
            [row.question.id for row in readable],
            question_filter(record_filter, tenants, self._now),
        )
        shown = [
            row for row in readable if row.question.id in matching and is_shown(row, record_filter)
        ]
        ids = {row.question.id for row in shown}
        return {
            "rows": [self._row(row, view.of_platform) for row in shown[:MAX_ROWS]],
            "skipped": max(0, len(shown) - MAX_ROWS),
            "gone": [str(row.question.id) for row in readable if row.question.id not in ids],
        }

    def _row(self, row: ListedInputRequest, of_platform: bool) -> Mapping[str, str]:
        key = row.question.id, of_platform
        if key not in self._rendered:
            context = {"row": row, "tenant": not of_platform}
            text = render_to_string("console/records/input_request_row.html", context)
            self._rendered[key] = shown_page(text.strip())
        return {"question": str(row.question.id), "html": self._rendered[key]}


def render_row(call: ListedCall, slug: str, *, of_platform: bool) -> str:
    """Render a row of the list, as the page does, with characters that are not seen made visible."""
    row = render_to_string(
        "console/records/call_row.html",
        {"call": call, "slug": slug, "show_tenant": of_platform},
    )
    return shown_page(row.strip())


def matches(
    listed: ListedCall,
    entry_filter: EntryFilter,
    now: datetime,
    unasked: Callable[[], Collection[UUID | None]],
) -> bool:
    """Return whether a filter selects a call, as `call_list.calls` does.

    `unasked` returns the calls of `call_list.unasked`: no row says so.
    """
    entry = listed.entry
    digits = entry_filter.call.strip().replace("-", "").lower()
    principal = entry_filter.principal
    caller = entry.actor_label or entry.actor_id or entry.actor_kind
    return bool(
        (entry_filter.tenants is None or entry.tenant in entry_filter.tenants)
        and entry_filter.target in ("", entry.target)
        and _has_outcome(listed, entry_filter.outcome, now)
        and _is_made_by(entry, entry_filter.made_by)
        and (
            not principal
            or principal in (entry.actor_id, entry.token_id)
            or _is_named(principal, caller)
        )
        and _is_named(entry_filter.client, entry.client_name)
        and (not entry_filter.call or (digits and entry.call and entry.call.hex.startswith(digits)))
        and entry_filter.trace in ("", entry.trace_id)
        and all(_in(term, entry.reason) for term in entry_filter.words.split())
        and (entry_filter.since is None or entry.at >= entry_filter.since)
        and (entry_filter.until is None or entry.at < entry_filter.until)
        and _has_question(listed, entry_filter, unasked)
    )


def _in(part: str, whole: str) -> bool:
    return part.casefold() in whole.casefold()


def _is_named(text: str, name: str) -> bool:
    """Whether a name contains a text; in double quotes, whether it is that text."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] == name if is_quoted else _in(text, name)


def _is_made_by(entry: EntryView, made_by: str) -> bool:
    is_trial = entry.delivery == Delivery.PLAYGROUND
    return not made_by or is_trial == (made_by == MADE_BY_TRIALS)


def _has_outcome(listed: ListedCall, outcome: str, now: datetime) -> bool:
    if outcome in (ERROR, NO_ERROR):
        last, declined = listed.entry, listed.state == DECLINED
        failed = last.action == ROUND_FINISHED and is_error(last.outcome)
        return not declined and failed == (outcome == ERROR)
    return outcome in ("", listed.state)


def _has_question(
    listed: ListedCall, entry_filter: EntryFilter, unasked: Callable[[], Collection[UUID | None]]
) -> bool:
    which = entry_filter.questions
    if which in ("", WITH_QUESTIONS):
        return not which or listed.questions > 0
    if which == REFUSED:
        return listed.refused > 0
    if which == UNASKED:
        return listed.entry.call in unasked()
    return bool(listed.answers.get(which))


def tenants_read(views: Iterable[LiveView]) -> frozenset[UUID] | None:
    """Return the tenants that any of these lists shows; None for all."""
    tenants: set[UUID] = set()
    for view in views:
        if view.tenants is None:
            return None
        tenants |= view.tenants
    return frozenset(tenants)
