"""Make the projection of a call from its entries: its row, and a row for each of its questions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.audit.call_times import between_rounds, on_server, times_of
from mcphost.audit.entries import UNKNOWN, EntryView
from mcphost.audit.models import QuestionSummary
from mcphost.audit.open_calls import Losses
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    CANCELLATIONS,
    GOES_ON,
    INPUT_REQUIRED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.timeline import (
    CANCELLED,
    DECLINED,
    EXPIRED,
    OPEN,
    TOOL_ERROR,
    Timeline,
    TimelineQuestion,
    key_of,
    loss_of,
    moment,
    state_of,
    timeline,
)

COMPLETE = "complete"
REASON_LENGTH = 300
_ROUNDS = (ROUND_STARTED, ROUND_FINISHED)


class Projection(NamedTuple):
    """One call, as lists and counts need it. It contains nothing that its entries do not contain.

    `is_error`: it failed. A call that a person declined has not.

    `last` is the id of the entry that determines its state, `at` that entry's time, `first_at` the
    time of its first entry, `state` what lists show, `caller` the actor's label, or else its id or
    kind. `expires_at` and `sealed_by` are set while it is open. `duration_us` is the server time of all rounds; None if no round has ended. `waited_us` is the time
    between rounds and after the last; None if it never waited. `endings` counts
    input requests by how they ended; `answers` entries of answers by outcome, those that did not
    fit as `invalid`, those to nothing that was asked also as `unasked`; `took_ms` are the times until answers.
    `questions` have rows of their own.
    """

    call: UUID
    tenant: UUID | None
    last: UUID
    at: datetime
    first_at: datetime
    target: str
    method: str
    actor_kind: str
    actor_id: str
    caller: str
    token_id: str
    client_name: str
    delivery: str
    trace_id: str | None
    state: str
    is_error: bool
    reason: str
    duration_us: int | None
    waited_us: int | None
    expires_at: datetime | None
    sealed_by: str
    entries: int
    asked: int = 0
    refused: int = 0
    endings: dict[str, int] = {}
    answers: dict[str, int] = {}
    took_ms: tuple[int, ...] = ()
    questions: tuple[TimelineQuestion, ...] = ()


def project(entries: Sequence[EntryView], now: datetime, losses: Losses) -> Projection | None:
    """Make the row of a call from all of its entries, oldest first; None if no round has begun."""
    rounds = [entry for entry in entries if entry.action in _ROUNDS]
    if not rounds:
        return None
    last = max(rounds, key=_weight)
    base = Projection(
        call=last.call or UUID(int=0),
        tenant=last.tenant,
        last=last.id,
        at=last.at,
        first_at=min(entry.at for entry in entries),
        target=last.target,
        method=last.method,
        actor_kind=last.actor_kind,
        actor_id=last.actor_id,
        caller=last.actor_label or last.actor_id or last.actor_kind,
        token_id=last.token_id,
        client_name=last.client_name,
        delivery=last.delivery,
        trace_id=last.trace_id or None,
        state=UNKNOWN if last.action == ROUND_STARTED else last.outcome,
        is_error=last.action == ROUND_FINISHED and is_error(last.outcome),
        reason=last.reason[:REASON_LENGTH],
        duration_us=_microseconds(on_server(rounds)),
        waited_us=_microseconds(between_rounds(rounds)),
        expires_at=None,
        sealed_by="",
        entries=len(entries),
    )
    if len(rounds) == len(entries) and last.outcome != INPUT_REQUIRED:
        return base
    state = _state(last, entries, now, losses)
    return _with_questions(base._replace(state=state), last, timeline(entries, now, losses), now)


def _microseconds(time: timedelta | None) -> int | None:
    return None if time is None else time // timedelta(microseconds=1)


def is_error(outcome: str) -> bool:
    """Whether a call that ended so failed."""
    return outcome != COMPLETE and outcome not in GOES_ON


def _weight(entry: EntryView) -> tuple[bool, int, bool, int]:
    """The order of the entries of rounds: the largest determines the state of a call."""
    finished = entry.action == ROUND_FINISHED
    final = finished and entry.outcome not in GOES_ON
    return final, entry.round or 0, finished, entry.id.int


def _state(last: EntryView, entries: Sequence[EntryView], now: datetime, losses: Losses) -> str:
    """The state of a call that is determined by `last`, as lists show it."""
    goes_on = last.action == ROUND_STARTED or last.outcome in GOES_ON
    if goes_on and any(entry.action in CANCELLATIONS for entry in entries):
        return CANCELLED
    if last.action == ROUND_STARTED:
        return UNKNOWN
    answers = [entry for entry in entries if entry.action == ANSWER_RECEIVED]
    answered_keys = {
        key_of(answer) for answer in answers if (answer.round or 0) > (last.round or 0)
    }
    return state_of(last, answered_keys, now, loss_of(last, losses))


def _with_questions(
    base: Projection, last: EntryView, call_timeline: Timeline, now: datetime
) -> Projection:
    answers = [answer for round in call_timeline.rounds for answer in round.answers]
    outcomes = Counter(answer.outcome if answer.why else answer.entry.outcome for answer in answers)
    unasked = sum(1 for answer in answers if answer.entry.facts.get("unasked"))
    if unasked:
        outcomes["unasked"] = unasked
    took = [
        round(1000 * seconds)
        for question in call_timeline.questions
        for answer in question.answers[:1]
        if answer.entry.outcome != EXPIRED and (seconds := answer.seconds) is not None
    ]
    refused = sum(1 for entry in call_timeline.entries if entry.action in REFUSALS)
    endings = Counter(question.outcome for question in call_timeline.questions)
    if refused:
        endings["refused"] = refused
    is_open = base.state == OPEN
    was_declined = base.state == TOOL_ERROR and call_timeline.state == DECLINED
    waited = base.waited_us if is_open else _microseconds(times_of(call_timeline, now).waiting)
    return base._replace(
        state=DECLINED if was_declined else base.state,
        is_error=base.is_error and not was_declined,
        waited_us=waited,
        expires_at=moment(last.facts.get("expires_at")) if is_open else None,
        sealed_by=str(last.facts.get("sealed_by") or "") if is_open else "",
        asked=len(call_timeline.questions),
        refused=refused,
        endings=dict(endings),
        answers=dict(outcomes),
        took_ms=tuple(took),
        questions=call_timeline.questions,
    )


MAX_NAME: Final = 1000
"""In bytes of UTF-8. Longer names are cut: PostgreSQL cannot index them."""
REPLACED: Final = tuple(
    field.name for field in QuestionSummary._meta.fields if not field.primary_key
)
"""The columns that are written again when the row of a question is."""


def question_rows(questions: Sequence[TimelineQuestion], last: UUID) -> Iterator[QuestionSummary]:
    """Yield a row for each question of a call; `last` is the entry that determines the state of the call."""
    for question in questions:
        entry, answer = question.entry, next(iter(question.answers), None)
        if entry.call is None:
            continue
        row = QuestionSummary(
            id=entry.id,
            at=entry.at,
            tenant=entry.tenant,
            call=entry.call,
            last=last,
            round=entry.round or 0,
            key=key_of(entry),
            method=str(entry.facts.get("method", "")),
            mode=str(entry.facts.get("mode", "")),
            target=_cut(entry.target),
            target_version=entry.target_version,
            actor_kind=entry.actor_kind,
            actor_id=entry.actor_id,
            caller=_cut(_name(entry)),
            token_id=entry.token_id,
            client_name=_cut(entry.client_name),
            client_version=entry.client_version,
            delivery=entry.delivery,
            state=question.outcome,
            expires_at=question.expires_at,
        )
        if answer is not None:
            seconds = answer.seconds
            row.answer = answer.entry.id
            row.answered_at = answer.entry.at
            row.answered_by = _name(answer.entry)
            row.evidence = str(answer.entry.facts.get("evidence", ""))
            row.took_ms = None if seconds is None else round(1000 * seconds)
            row.ran = "" if answer.ran is None else answer.ran.outcome
        yield row


def _name(entry: EntryView) -> str:
    """The actor of an entry, as rows of calls name it."""
    return entry.actor_label or entry.actor_id or entry.actor_kind


def _cut(name: str) -> str:
    return name.encode()[:MAX_NAME].decode(errors="ignore")
