"""Calls, one row each however many rounds they have, and the questions that wait for an answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from mcphost.audit.models import Entry
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    INPUT_REQUIRED,
    QUESTION_ASKED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.selectors import (
    PAGE,
    SKEW,
    Filter,
    call_entries,
    chosen_entries,
    first_id,
    of_tenants,
    page_of,
)
from mcphost.audit.timelines import (
    EXPIRED,
    INVALID,
    OPEN,
    UNASKED,
    Timeline,
    key_of,
    moment,
    state_of,
    timeline,
)
from mcphost.audit.views import UNKNOWN, EntryView, view

MOST_WAITING = 200

ASKED, REFUSED = "asked", "refused"

_ROUNDS = (ROUND_STARTED, ROUND_FINISHED)
_WAITED = frozenset({OPEN, EXPIRED})


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call in a list: the last entry of its last round, how it stands, and what was counted.

    `state` is the last outcome, or `open`, `expired`, `unknown`; `answers` says how many came by
    their outcome; `waiting` are the keys of what is still to be answered until `expires_at`.
    """

    entry: EntryView
    state: str
    questions: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    waiting: tuple[str, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """A page of calls; `after` of the next page, None on the last."""

    calls: tuple[CallRow, ...]
    after: UUID | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that somebody may still answer: the entry that asked it, and until when."""

    entry: EntryView
    expires_at: datetime

    @property
    def key(self) -> str:
        return key_of(self.entry)


@dataclass(slots=True)
class _Counts:
    """What a call has of entries that are no rounds; answers by their outcome."""

    asked: int = 0
    refused: int = 0
    answers: dict[str, int] = field(default_factory=dict)

    def add(self, action: str, outcome: str, count: int) -> None:
        if action == ANSWER_RECEIVED:
            self.answers[outcome] = count
        elif action == QUESTION_ASKED:
            self.asked += count
        else:
            self.refused += count


def calls(chosen: Filter, now: datetime, *, after: UUID | None = None, limit: int = PAGE) -> Calls:
    """Calls, those first in which something happened last. Filters look at their last round.

    `outcome` is a state of a row; `questions` is `asked` (any at all), an answer's outcome,
    `unasked`, `invalid`, or `refused`. A page may hold fewer than `limit` though others follow.
    """
    query = _with_outcome(_lasts(), chosen.outcome, now)
    if chosen.questions:
        query = query.filter(Exists(_with_question(chosen.questions)))
    page, following = page_of(chosen_entries(query, chosen), after, limit)
    rows = _rows(page, now)
    if chosen.outcome:
        rows = [each for each in rows if each.state == chosen.outcome]
    return Calls(tuple(rows), following)


def call(call_id: UUID, tenants: frozenset[UUID] | None, now: datetime) -> Timeline | None:
    """One call as a whole; None if there is none of that id in `tenants`."""
    entries = call_entries(call_id, tenants)
    return timeline(entries, now) if entries else None


def waiting(tenants: frozenset[UUID] | None, now: datetime) -> tuple[Waiting, ...]:
    """The questions that wait for an answer now, the soonest to expire first.

    Those of the newest MOST_WAITING calls; nobody reads more of them in a list.
    """
    query = of_tenants(_with_outcome(_lasts(), OPEN, now), tenants)
    lasts = [view(each) for each in query.order_by("-id")[:MOST_WAITING]]
    rows = {row.entry.call: row for row in _rows(lasts, now) if row.state == OPEN}
    found = Entry.objects.filter(call__in=rows, action=QUESTION_ASKED).order_by("id")
    questions = {
        (each.call, key_of(each)): Waiting(each, expires_at)
        for each in map(view, found)
        if (row := rows[each.call]).entry.round == each.round
        and key_of(each) in row.waiting
        and (expires_at := row.expires_at) is not None
    }
    return tuple(sorted(questions.values(), key=lambda each: each.expires_at))


def _lasts() -> QuerySet[Entry]:
    """Of each call the entry that tells how it stands: the last end of its last round, or the last
    start where there is no end."""
    same_round = Q(round=OuterRef("round"))
    later = Entry.objects.filter(call=OuterRef("call"), action__in=_ROUNDS).filter(
        Q(round__gt=OuterRef("round"))
        | same_round & Q(action__lt=OuterRef("action"))  # "finished" comes before "started"
        | same_round & Q(action=OuterRef("action"), id__gt=OuterRef("id"))
    )
    lasts = Entry.objects.filter(call__isnull=False, action__in=_ROUNDS)
    return lasts.filter(~Exists(later))


def _with_outcome(query: QuerySet[Entry], outcome: str, now: datetime) -> QuerySet[Entry]:
    """Those whose state may be this; what else came in decides in the end (`_rows`)."""
    if not outcome:
        return query
    asked = Q(action=ROUND_FINISHED, outcome=INPUT_REQUIRED)
    until = now.astimezone(UTC).isoformat()
    if outcome == OPEN:
        longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
        oldest = first_id(now - longest - SKEW)
        return query.filter(asked, id__gte=oldest, facts__expires_at__gt=until)
    if outcome == EXPIRED:
        return query.filter(asked, facts__expires_at__lte=until)
    if outcome == UNKNOWN:
        return query.filter(Q(action=ROUND_STARTED) | asked & Exists(_answers_since()))
    return query.filter(action=ROUND_FINISHED, outcome=outcome)


def _answers_since() -> QuerySet[Entry]:
    """Answers that came after the round of an outer entry."""
    return Entry.objects.filter(
        call=OuterRef("call"), action=ANSWER_RECEIVED, round__gt=OuterRef("round")
    )


def _with_question(which: str) -> QuerySet[Entry]:
    """An entry of the same call that says so."""
    of_call = Entry.objects.filter(call=OuterRef("call"))
    if which == ASKED:
        return of_call.filter(action=QUESTION_ASKED)
    if which == REFUSED:
        return of_call.filter(action__in=REFUSALS)
    if which == INVALID:
        finished = of_call.filter(action=ROUND_FINISHED, facts__has_key="invalid")
        return finished.exclude(facts__invalid={})
    answered = of_call.filter(action=ANSWER_RECEIVED)
    return (
        answered.filter(facts__unasked=True) if which == UNASKED else answered.filter(outcome=which)
    )


def _rows(lasts: Collection[EntryView], now: datetime) -> list[CallRow]:
    counts = _counts(each.call for each in lasts)
    answered = _answered([each for each in lasts if each.outcome == INPUT_REQUIRED])
    return [_row(each, counts[each.call], answered[each.call], now) for each in lasts]


def _row(last: EntryView, counts: _Counts, answered: Collection[str], now: datetime) -> CallRow:
    state = UNKNOWN if last.action == ROUND_STARTED else state_of(last, answered, now)
    asked = last.facts.get("asked") or () if state in _WAITED else ()
    return CallRow(
        entry=last,
        state=state,
        questions=counts.asked,
        answers=counts.answers,
        refused=counts.refused,
        waiting=tuple(key for key in asked if key not in answered),
        expires_at=moment(last.facts.get("expires_at")) if state in _WAITED else None,
    )


def _counts(calls: Iterable[UUID | None]) -> Mapping[UUID | None, _Counts]:
    query = Entry.objects.filter(
        call__in=set(calls), action__in=(QUESTION_ASKED, ANSWER_RECEIVED, *REFUSALS)
    )
    counted = query.order_by("outcome").values_list("call", "action", "outcome")
    found: dict[UUID | None, _Counts] = defaultdict(_Counts)
    for call, action, outcome, count in counted.annotate(Count("id")):
        found[call].add(action, outcome, count)
    return found


def _answered(lasts: Collection[EntryView]) -> Mapping[UUID | None, Collection[str]]:
    """The keys of what each call was answered since its last round ended."""
    rounds = {each.call: each.round or 0 for each in lasts}
    query = Entry.objects.filter(call__in=rounds, action=ANSWER_RECEIVED).order_by()
    found: dict[UUID | None, set[str]] = defaultdict(set)
    for call, number, key in query.values_list("call", "round", "facts__key"):
        if (number or 0) > rounds[call]:
            found[call].add(str(key))
    return found
