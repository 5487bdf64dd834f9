"""The list of calls, one row per call, and the list of questions that wait for an answer."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from mcphost.audit.entries import UNKNOWN, EntryView, view
from mcphost.audit.models import Entry
from mcphost.audit.open_calls import Loss, Losses, losses, sealed_by_lost
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    GOES_ON,
    INPUT_REQUIRED,
    QUESTION_ASKED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
    TASK_CANCELLED,
)
from mcphost.audit.selectors import (
    FINAL,
    PAGE,
    SKEW,
    EntryFilter,
    call_entries,
    chosen_entries,
    first_id,
    of_tenants,
    page_of,
)
from mcphost.audit.timeline import (
    CANCELLED,
    EXPIRED,
    INVALID,
    LOST,
    OPEN,
    UNASKED,
    Timeline,
    key_of,
    loss_of,
    moment,
    state_of,
    timeline,
)

MOST_WAITING = 200

ASKED, REFUSED = "asked", "refused"

_ROUNDS = (ROUND_STARTED, ROUND_FINISHED)
_WAITED = frozenset({OPEN, EXPIRED})


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call in a list: the last entry of its last round, its state, and counts.

    `state` is the last outcome, or `open`, `expired`, `lost`, `unknown`; `answers` counts answers
    by outcome, those that did not fit their question as `invalid`; `waiting` are the keys of
    questions that can still be answered until `expires_at`; `loss` is why a lost call cannot go on.
    """

    entry: EntryView
    state: str
    questions: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    waiting: tuple[str, ...] = ()
    expires_at: datetime | None = None
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """A page of calls; `after` is the cursor of the next page, None on the last."""

    calls: tuple[ListedCall, ...]
    after: UUID | None


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that can still be answered: the entry that asked it, and until when."""

    entry: EntryView
    expires_at: datetime

    @property
    def key(self) -> str:
        return key_of(self.entry)


@dataclass(slots=True)
class _Counts:
    """Counts of a call's entries other than its rounds; answers by outcome.

    `cancelled`: its task was.
    """

    asked: int = 0
    refused: int = 0
    cancelled: bool = False
    answers: dict[str, int] = field(default_factory=dict)

    def unfit(self, outcome: str, count: int) -> None:
        """Count `count` of the answers with this outcome as invalid."""
        left = self.answers.pop(outcome) - count
        if left > 0:
            self.answers[outcome] = left
        self.answers[INVALID] = self.answers.get(INVALID, 0) + count

    def add(self, action: str, outcome: str, count: int) -> None:
        if action == ANSWER_RECEIVED:
            self.answers[outcome] = count
        elif action == QUESTION_ASKED:
            self.asked += count
        elif action == TASK_CANCELLED:
            self.cancelled = True
        else:
            self.refused += count


def calls(
    chosen: EntryFilter, now: datetime, *, after: UUID | None = None, limit: int = PAGE
) -> Calls:
    """A page of calls, the most recently active first. Filters apply to their last round.

    `outcome` is a state of a row; `questions` is `asked` (any at all), an answer's outcome,
    `unasked`, `invalid`, or `refused`. A page with fewer than `limit` calls may not be the last.
    """
    lost = losses()
    query = _with_outcome(_lasts(), chosen.outcome, now, lost)
    if chosen.questions:
        query = query.filter(Exists(_with_question(chosen.questions)))
    page, following = page_of(chosen_entries(query, chosen), after, limit)
    rows = _rows(page, now, lost)
    if chosen.outcome:
        rows = [each for each in rows if each.state == chosen.outcome]
    if chosen.questions not in ("", ASKED, REFUSED, UNASKED):
        rows = [each for each in rows if each.answers.get(chosen.questions)]
    return Calls(tuple(rows), following)


def call(call_id: UUID, tenants: frozenset[UUID] | None, now: datetime) -> Timeline | None:
    """The timeline of one call; None if there is none of that id in `tenants`."""
    entries = call_entries(call_id, tenants)
    return timeline(entries, now, losses()) if entries else None


def waiting(tenants: frozenset[UUID] | None, now: datetime) -> tuple[WaitingQuestion, ...]:
    """The questions that wait for an answer at `now`, the soonest to expire first.

    Only those of the newest MOST_WAITING calls: a longer list is of no use to a reader.
    """
    lost = losses()
    query = of_tenants(_with_outcome(_lasts(), OPEN, now, lost), tenants)
    lasts = [view(each) for each in query.order_by("-id")[:MOST_WAITING]]
    rows = {row.entry.call: row for row in _rows(lasts, now, lost) if row.state == OPEN}
    found = Entry.objects.filter(call__in=rows, action=QUESTION_ASKED).order_by("id")
    questions = {
        (each.call, key_of(each)): WaitingQuestion(each, expires_at)
        for each in map(view, found)
        if (row := rows[each.call]).entry.round == each.round
        and key_of(each) in row.waiting
        and (expires_at := row.expires_at) is not None
    }
    return tuple(sorted(questions.values(), key=lambda each: each.expires_at))


def _lasts() -> QuerySet[Entry]:
    """For each call the entry that determines its state: the last end of its last round, or the
    last start if there is no end. A final result comes before rounds that only asked again."""
    same_round = Q(round=OuterRef("round"))
    later = (
        Q(round__gt=OuterRef("round"))
        | same_round & Q(action__lt=OuterRef("action"))  # "finished" comes before "started"
        | same_round & Q(action=OuterRef("action"), id__gt=OuterRef("id"))
    )
    others = Entry.objects.filter(call=OuterRef("call"), action__in=_ROUNDS)
    return Entry.objects.filter(call__isnull=False, action__in=_ROUNDS).filter(
        FINAL & ~Exists(others.filter(later & FINAL))
        | ~FINAL & ~Exists(others.filter(later | FINAL))
    )


def _with_outcome(
    query: QuerySet[Entry], outcome: str, now: datetime, lost: Losses
) -> QuerySet[Entry]:
    """Pre-filter by state. `_rows` decides, because answers since the round count too."""
    if not outcome:
        return query
    asked = Q(action=ROUND_FINISHED, outcome=INPUT_REQUIRED)
    until = now.astimezone(UTC).isoformat()
    if outcome == OPEN:
        longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
        oldest = first_id(now - longest - SKEW)
        waiting = query.filter(asked, id__gte=oldest, facts__expires_at__gt=until)
        return waiting.exclude(sealed_by_lost(lost)).exclude(Exists(_cancellations()))
    if outcome == LOST:
        return query.filter(asked).filter(sealed_by_lost(lost))
    if outcome == EXPIRED:
        return query.filter(asked, facts__expires_at__lte=until)
    if outcome == UNKNOWN:
        answers_since = Entry.objects.filter(
            call=OuterRef("call"), action=ANSWER_RECEIVED, round__gt=OuterRef("round")
        )
        return query.filter(Q(action=ROUND_STARTED) | asked & Exists(answers_since))
    ended = Q(action=ROUND_FINISHED, outcome=outcome)
    return query.filter(ended | Exists(_cancellations()) if outcome == CANCELLED else ended)


def _cancellations() -> QuerySet[Entry]:
    """Subquery: entries that say that the outer entry's call, a task, was cancelled."""
    return Entry.objects.filter(call=OuterRef("call"), action=TASK_CANCELLED)


def _with_question(which: str) -> QuerySet[Entry]:
    """Subquery: entries of the outer entry's call that match the filter `questions`."""
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


def _rows(lasts: Collection[EntryView], now: datetime, lost: Losses) -> list[ListedCall]:
    counts = _counts(each.call for each in lasts)
    # The keys of the answers that each waiting call received since its last round ended.
    rounds = {each.call: each.round or 0 for each in lasts if each.outcome == INPUT_REQUIRED}
    query = Entry.objects.filter(call__in=rounds, action=ANSWER_RECEIVED).order_by()
    answered: dict[UUID | None, set[str]] = defaultdict(set)
    for call, number, key in query.values_list("call", "round", "facts__key"):
        if (number or 0) > rounds[call]:
            answered[call].add(str(key))
    rows = []
    for last in lasts:
        of_call, given, loss = counts[last.call], answered[last.call], loss_of(last, lost)
        state = UNKNOWN if last.action == ROUND_STARTED else state_of(last, given, now, loss)
        if of_call.cancelled and (last.action == ROUND_STARTED or last.outcome in GOES_ON):
            state = CANCELLED
        asked = last.facts.get("asked") or () if state in _WAITED else ()
        row = ListedCall(
            entry=last,
            state=state,
            questions=of_call.asked,
            answers=of_call.answers,
            refused=of_call.refused,
            waiting=tuple(key for key in asked if key not in given),
            expires_at=moment(last.facts.get("expires_at")) if state in _WAITED else None,
            loss=loss if state == LOST else None,
        )
        rows.append(row)
    return rows


def _counts(calls: Iterable[UUID | None]) -> Mapping[UUID | None, _Counts]:
    ids = set(calls)
    query = Entry.objects.filter(
        call__in=ids, action__in=(QUESTION_ASKED, ANSWER_RECEIVED, TASK_CANCELLED, *REFUSALS)
    )
    counted = query.order_by("outcome").values_list("call", "action", "outcome")
    found: dict[UUID | None, _Counts] = defaultdict(_Counts)
    for call, action, outcome, count in counted.annotate(Count("id")):
        found[call].add(action, outcome, count)
    # An answer is recorded before the round that validates it. So it is a fact of the round whether
    # it fitted its question.
    rounds = Entry.objects.filter(
        call__in=ids, action=ROUND_FINISHED, facts__has_key="invalid"
    ).values_list("call", "leg", "facts__invalid")
    unfit = {(call, leg): set(invalid or ()) for call, leg, invalid in rounds.order_by()}
    if unfit:
        answers = Entry.objects.filter(
            call__in={call for call, _ in unfit}, action=ANSWER_RECEIVED
        ).values_list("call", "leg", "outcome", "facts__key")
        numbers = Counter(
            (call, outcome)
            for call, leg, outcome, key in answers.order_by()
            if key in unfit.get((call, leg), ())
        )
        for (call, outcome), count in numbers.items():
            found[call].unfit(outcome, count)
    return found
