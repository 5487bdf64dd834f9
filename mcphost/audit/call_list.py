"""The list of calls, one row per call, and the list of questions that wait for an answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import NamedTuple
from uuid import UUID

from django.db.models import IntegerField, Q, Sum, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from mcphost.audit.entries import UNKNOWN, EntryView, view
from mcphost.audit.models import CallSummary, Entry
from mcphost.audit.open_calls import Loss, Losses, losses
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    GOES_ON,
    INPUT_REQUIRED,
    QUESTION_ASKED,
    ROUND_STARTED,
)
from mcphost.audit.selectors import PAGE, Cursor, EntryFilter, call_entries
from mcphost.audit.summaries import follower, search
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.search import NO_ERROR
from mcphost.audit.timeline import (
    CANCELLED,
    DECLINED,
    EXPIRED,
    LOST,
    OPEN,
    TOOL_ERROR,
    UNASKED,
    Timeline,
    key_of,
    loss_of,
    moment,
    state_of,
    timeline,
)
from mcphost.runtime.call import Delivery

MAX_WAITING = 200

WITH_QUESTIONS, REFUSED = "asked", "refused"

GROUPS = (ERROR, NO_ERROR)
"""Outcomes by which calls can be found that are no states of calls."""

_WAITED = frozenset({OPEN, EXPIRED})


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call in a list: the last entry of its last round, its state, and counts.

    `state` is the last outcome, or `open`, `expired`, `lost`, `unknown`, `cancelled`, `declined`; `server` and `waited`
    are the times of the call (`call_times`); `answers` counts answers
    by outcome, those that did not fit their question as `invalid`; `waiting` are the keys of
    questions that can still be answered until `expires_at`; `loss` is why a lost call cannot go on.
    """

    entry: EntryView
    state: str
    server: timedelta | None = None
    waited: timedelta | None = None
    questions: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    waiting: tuple[str, ...] = ()
    expires_at: datetime | None = None
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """A page of calls; `after` is the cursor of the next, older page, None on the last; `before` is that
    of the newer page, None on the first."""

    calls: tuple[ListedCall, ...]
    after: UUID | None
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that can still be answered: the entry that asked it, and until when."""

    entry: EntryView
    expires_at: datetime

    @property
    def key(self) -> str:
        return key_of(self.entry)


class OverdueCall(NamedTuple):
    """A call that has waited for too long, how it is delivered, and how many of its questions are open."""

    call: UUID
    delivery: str
    open: int


_OPEN_QUESTIONS = Cast(KT(f"details__endings__{OPEN}"), IntegerField())
"""The number of open questions in the row of a call that waits."""


def calls(
    filters: EntryFilter,
    now: datetime,
    *,
    after: UUID | None = None,
    before: UUID | None = None,
    limit: int = PAGE,
    deadline: float | None = None,
) -> Calls:
    """A page of calls, the most recently active first. Filters apply to their last round.

    `after` is the cursor of an older page, `before` that of a newer one. `deadline`
    (`time.monotonic`): when to stop comparing rows and return a short page; default: `windows.deadline()`.

    `outcome` is a state of a row, or one of GROUPS; `questions` is `asked` (any at all), an answer's outcome,
    `unasked`, `invalid`, or `refused`. A page with fewer than `limit` calls is not
    necessarily the last: `after` says so.
    """
    follower.catch_up(now)
    page = search.find(filters, now, Cursor(after, before, limit), deadline)
    rows = _rows(_entries(page.ids), now, losses())
    if filters.outcome not in ("", *GROUPS):
        rows = [row for row in rows if row.state == filters.outcome]
    if filters.questions not in ("", WITH_QUESTIONS, REFUSED, UNASKED):
        rows = [row for row in rows if row.answers.get(filters.questions)]
    return Calls(tuple(rows), page.after, page.before)


def count(
    filters: EntryFilter, now: datetime, *, after: UUID | None, limit: int
) -> tuple[int, UUID | None]:
    """How many calls the page after a cursor has, and the cursor of the next one."""
    if filters.outcome in ("", *GROUPS) and filters.questions in ("", WITH_QUESTIONS):
        follower.catch_up(now)
        ids = search.find(filters, now, Cursor(after, None, limit))
        return len(ids.ids), ids.after
    page = calls(filters, now, after=after, limit=limit)
    return len(page.calls), page.after


def listed(calls: Collection[UUID], now: datetime) -> tuple[ListedCall, ...]:
    """The rows of these calls, the most recently active first."""
    summaries = CallSummary.objects.filter(call__in=calls).order_by("-last")
    lasts = _entries(list(summaries.values_list("last", flat=True)))
    return tuple(_rows(lasts, now, losses())) if lasts else ()


def unasked(calls: Collection[UUID]) -> frozenset[UUID | None]:
    """Return those of these calls that have received an answer to nothing that was asked."""
    answers = Entry.objects.filter(call__in=calls, action=ANSWER_RECEIVED, facts__unasked=True)
    return frozenset(answers.order_by().values_list("call", flat=True).distinct())


def call(call_id: UUID, tenants: frozenset[UUID] | None, now: datetime) -> Timeline | None:
    """The timeline of one call; None if there is none of that id in `tenants`."""
    entries = call_entries(call_id, tenants)
    return timeline(entries, now, losses()) if entries else None


def waiting(
    tenants: frozenset[UUID] | None, now: datetime, first: Sequence[UUID] = ()
) -> tuple[WaitingQuestion, ...]:
    """The questions that wait for an answer at `now`, the soonest to expire first.

    At most those of MAX_WAITING calls: of the calls `first`, then of those that expire soonest.
    """
    follower.catch_up(now)
    open_calls = search.open_calls(tenants, now).values_list("last", flat=True)
    first_ids = open_calls.filter(call__in=first[:MAX_WAITING]) if first else ()
    ids = list(dict.fromkeys([*first_ids, *open_calls[:MAX_WAITING]]))[:MAX_WAITING]
    rows = {row.entry.call: row for row in _rows(_entries(ids), now, losses()) if row.state == OPEN}
    # Those of the last run of the last round, which has the id of its HTTP request if it had one.
    of_run = Q(http_request_id__in={row.entry.http_request_id for row in rows.values()}) | Q(
        http_request_id__isnull=True
    )
    question_entries = Entry.objects.filter(of_run, call__in=rows, action=QUESTION_ASKED)
    questions = {
        (entry.call, key_of(entry)): WaitingQuestion(entry, expires_at)
        for entry in map(view, question_entries.order_by("id"))
        if (row := rows[entry.call]).entry.round == entry.round
        and key_of(entry) in row.waiting
        and (expires_at := row.expires_at) is not None
    }
    return tuple(sorted(questions.values(), key=lambda question: question.expires_at))


def count_waiting(
    tenants: frozenset[UUID] | None,
    now: datetime,
    *,
    target: str = "",
    until: datetime | None = None,
) -> int:
    """How many questions to clients wait for an answer at `now`: of one target, or that expire by `until`.

    Without those of trials, which are no traffic, and without those of tasks, which `tasks.listing` counts: their answers are recorded only when the next
    round begins.
    """
    follower.catch_up(now)
    open_calls = search.open_calls(tenants, now).exclude(
        delivery__in=(Delivery.TASK, Delivery.PLAYGROUND)
    )
    if target:
        open_calls = open_calls.filter(target=target)
    if until is not None:
        open_calls = open_calls.filter(expires_at__lte=until)
    return open_calls.order_by().aggregate(count=Sum(_OPEN_QUESTIONS))["count"] or 0


def overdue(
    tenants: frozenset[UUID] | None, targets: Mapping[tuple[UUID, str], float], now: datetime
) -> tuple[OverdueCall, ...]:
    """The calls of clients that have waited longer than the target time of their tool, the latest first.

    `targets` are these times, in seconds, by tenant and target.
    """
    if not targets:
        return ()
    follower.catch_up(now)
    shortest = timedelta(seconds=min(targets.values()))
    waiting = search.open_calls(tenants, now).exclude(delivery=Delivery.PLAYGROUND)
    candidates = waiting.filter(at__lt=now - shortest)
    rows = candidates.annotate(open=_OPEN_QUESTIONS)
    late = []
    for row in rows.values_list("tenant", "target", "at", "call", "delivery", "open").iterator():
        tenant, target, at, call, delivery, count = row
        seconds = None if tenant is None else targets.get((tenant, target))
        if seconds is not None and at < (due := now - timedelta(seconds=seconds)):
            late.append((at - due, OverdueCall(call, delivery, count)))
    return tuple(call for _, call in sorted(late))


def open_trials(tenant: UUID, target: str, now: datetime) -> Sequence[UUID]:
    """The trials of a target that wait for their operators, at most MAX_WAITING."""
    follower.catch_up(now)
    trials = search.open_calls(frozenset({tenant}), now)
    of_target = trials.filter(target=target, delivery=Delivery.PLAYGROUND)
    return list(of_target.values_list("call", flat=True)[:MAX_WAITING])


def count_running(tenants: frozenset[UUID], target: str, since: datetime, now: datetime) -> int:
    """How many calls of a target have a round that began after `since` and has not ended."""
    follower.catch_up(now)
    return search.running_calls(tenants, target, since).count()


def _entries(ids: Sequence[UUID]) -> list[EntryView]:
    """The entries with these ids, in this order."""
    views = {row.id: view(row) for row in Entry.objects.filter(id__in=ids)}
    return [views[entry_id] for entry_id in ids if entry_id in views]


def _rows(lasts: Collection[EntryView], now: datetime, lost: Losses) -> list[ListedCall]:
    counted = CallSummary.objects.in_bulk({last.call for last in lasts if last.call is not None})
    answered = _answered_keys(lasts)
    rows = []
    for last in lasts:
        summary, loss = counted.get(last.call), loss_of(last, lost)
        keys = answered[last.call]
        state = UNKNOWN if last.action == ROUND_STARTED else state_of(last, keys, now, loss)
        if summary is not None:
            state = _settled_state(state, summary.state, last)
        answers = ((summary and summary.details) or {}).get("answers", {})
        asked_keys = last.facts.get("asked") or () if state in _WAITED else ()
        row = ListedCall(
            entry=last,
            state=state,
            server=None if summary is None else _time(summary.duration_us),
            waited=_waited(summary, state, last, now),
            questions=summary.asked if summary else 0,
            answers={name: count for name, count in answers.items() if name != UNASKED},
            refused=summary.refused if summary else 0,
            waiting=tuple(key for key in asked_keys if key not in keys),
            expires_at=moment(last.facts.get("expires_at")) if state in _WAITED else None,
            loss=loss if state == LOST else None,
        )
        rows.append(row)
    return rows


def _settled_state(state: str, summarized: str, last: EntryView) -> str:
    """The state of a call, also where other entries than the last determine it."""
    goes_on = last.action == ROUND_STARTED or last.outcome in GOES_ON
    is_cancelled = goes_on and summarized == CANCELLED
    is_declined = state == TOOL_ERROR and summarized == DECLINED
    return summarized if is_cancelled or is_declined else state


def _waited(
    summary: CallSummary | None, state: str, last: EntryView, now: datetime
) -> timedelta | None:
    """How long a call waited: if it still did when it was summarized, until now or until it expired."""
    if summary is None:
        return None
    waited = _time(summary.waited_us)
    if summary.state != OPEN or state not in _WAITED:
        return waited
    expires_at = moment(last.facts.get("expires_at")) or now
    return (waited or timedelta()) + max(timedelta(), min(now, expires_at) - last.at)


def _time(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)


def _answered_keys(lasts: Iterable[EntryView]) -> Mapping[UUID | None, set[str]]:
    """Which of the keys that each waiting call asked for have been answered since its last round ended."""
    waiting = [last for last in lasts if last.outcome == INPUT_REQUIRED]
    rounds: dict[int, list[UUID | None]] = defaultdict(list)
    for last in waiting:
        rounds[last.round or 0].append(last.call)
    answered_keys: dict[UUID | None, set[str]] = defaultdict(set)
    if waiting:
        later = (Q(call__in=calls, round__gt=number) for number, calls in rounds.items())
        # Filtered by calls once more: databases find them by this condition.
        of_calls = Entry.objects.filter(
            reduce(or_, later), call__in=[last.call for last in waiting], action=ANSWER_RECEIVED
        )
        # Answers to what no state had asked have any keys, and a client can send very many.
        asked_keys = {str(key) for last in waiting for key in last.facts.get("asked") or ()}
        keys = of_calls.annotate(key=Cast(KT("facts__key"), TextField())).filter(key__in=asked_keys)
        for call, key in keys.order_by().values_list("call", "key").distinct():
            answered_keys[call].add(key)
    return answered_keys
