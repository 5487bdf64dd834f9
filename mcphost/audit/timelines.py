"""One call as people read it: its rounds in order, what each asked, and what came back.

Made of the call's entries and nothing else, so that what is shown is what was recorded. What nobody
wrote down (that a question expired, that a process died) follows from what is missing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mcphost.audit.records import (
    ANSWER_RECEIVED,
    INPUT_REQUIRED,
    QUESTION_ASKED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.views import UNKNOWN, EntryView

OPEN = "open"
"""Somebody may still answer."""
EXPIRED = "expired"
"""Nobody answered in time."""
REPEATED = "repeated"
"""The client came back without an answer, and was asked again."""
NEVER = "never"
"""The call went on, or ended, without an answer."""
INVALID = "invalid"
"""The answer did not fit its question."""
UNASKED = "unasked"
"""The answer was given to a question that no state had asked."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a round, under one leg. There are several when a state was sent again, or when a
    process died and another took over."""

    round: int
    leg: UUID | None
    started: EntryView | None = None
    finished: EntryView | None = None

    @property
    def entry(self) -> EntryView:
        """What is known of it last."""
        known = self.finished or self.started
        assert known is not None
        return known

    @property
    def outcome(self) -> str:
        """How it ended; `unknown` where it was started and there is no entry of its end."""
        return UNKNOWN if self.finished is None else self.finished.outcome

    @property
    def invalid(self) -> Mapping[str, str]:
        """By key, why an answer that it was given did not do."""
        return _facts(self.finished).get("invalid") or {}

    @property
    def expires_at(self) -> datetime | None:
        """Until when what it asked can be answered."""
        return moment(_facts(self.finished).get("expires_at"))

    @property
    def sealed_by(self) -> str:
        """The ring key of the state that it ended with."""
        return str(_facts(self.finished).get("sealed_by") or "")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: how it came out, and what it set off.

    `fate` is `accept`, `decline`, `cancel`, `received` (an answer that is no choice), `invalid`
    (`why` says why) or `unasked`. `ran` is what acted on it, that of the same leg; None where no
    entry tells that anything ran. Whoever takes a round over takes its answers in once more.
    """

    entry: EntryView
    fate: str
    why: str = ""
    ran: Attempt | None = None
    asked_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long the person took."""
        said = _facts(self.entry).get("seconds")
        if isinstance(said, int | float):
            return float(said)
        return None if self.asked_at is None else (self.entry.at - self.asked_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a round. `fate` is that of its first answer, or why there is none:
    `open`, `expired`, `repeated` (`again` is the round that asked once more) or `never`."""

    entry: EntryView
    fate: str
    expires_at: datetime | None = None
    answers: tuple[Answer, ...] = ()
    again: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its runs, what came in with it, what it asked, what was refused meanwhile.

    `taken` are all answers that came in; `strange` those among them that no question fits.
    """

    number: int
    attempts: tuple[Attempt, ...]
    taken: tuple[Answer, ...]
    strange: tuple[Answer, ...]
    questions: tuple[Question, ...]
    refusals: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A call as a whole. `state` is the last outcome, or `open`, `expired`, `unknown`."""

    entries: tuple[EntryView, ...]
    rounds: tuple[Round, ...]
    state: str
    expires_at: datetime | None

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(each for round in self.rounds for each in round.questions)


def timeline(entries: Sequence[EntryView], now: datetime) -> Timeline:
    """The call that these are all entries of, oldest first; at least one."""
    reading = _Reading(entries, now)
    rounds = tuple(reading.round(number) for number in reading.numbers)
    last = reading.last
    state, expires_at = UNKNOWN, None
    if last is not None and last.finished is not None:
        given = {key_of(each) for each in reading.answers if _number(each) > last.round}
        state = state_of(last.finished, given, now)
        expires_at = last.expires_at
    return Timeline(tuple(entries), rounds, state, expires_at)


def state_of(finished: EntryView, answered: Collection[str], now: datetime) -> str:
    """How a call stands whose last round ended so; `answered` are the keys that came in since.

    When all is answered and no round has ended since, what the answers set off is unknown.
    """
    if finished.outcome != INPUT_REQUIRED:
        return finished.outcome
    expires_at = moment(finished.facts.get("expires_at"))
    asked = set(finished.facts.get("asked") or ())
    if expires_at is None or (asked and asked <= set(answered)):
        return UNKNOWN
    return OPEN if now < expires_at else EXPIRED


def moment(text: Any) -> datetime | None:
    """A time that facts hold as text; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


def key_of(entry: EntryView) -> str:
    """The author's key of a question or an answer."""
    return str(entry.facts.get("key", ""))


def _facts(entry: EntryView | None) -> Mapping[str, Any]:
    return {} if entry is None else entry.facts


def _number(entry: EntryView) -> int:
    return entry.round or 0


class _Reading:
    """The entries of one call, sorted by what they are about."""

    def __init__(self, entries: Sequence[EntryView], now: datetime) -> None:
        self._now = now
        self._attempts = _attempts(entries)
        self._asked = _of(entries, QUESTION_ASKED)
        self.answers = _of(entries, ANSWER_RECEIVED)
        self._questions = {each.id: self._question(each) for each in self.answers}
        first = {_number(each): each for each in reversed(entries) if each.action not in REFUSALS}
        self.numbers = sorted(first) or [0]
        self._refusals: dict[int, list[EntryView]] = {}
        for each in _of(entries, *REFUSALS):
            before = [number for number, entry in first.items() if entry.id < each.id]
            number = max(before, default=self.numbers[0])
            self._refusals.setdefault(number, []).append(each)

    @property
    def last(self) -> Attempt | None:
        """What tells how the call stands: the last end of the last round that ran."""
        runs = list(self._attempts.values())
        number = max((each.round for each in runs), default=0)
        of_last = [each for each in runs if each.round == number]
        ended = [each for each in of_last if each.finished is not None]
        return next(reversed(ended or of_last), None)

    def round(self, number: int) -> Round:
        taken = [each for each in self.answers if _number(each) == number]
        asked = {_identity(each): each for each in self._asked if _number(each) == number}
        return Round(
            number=number,
            attempts=tuple(each for each in self._attempts.values() if each.round == number),
            taken=tuple(map(self._answer, taken)),
            strange=tuple(self._answer(each) for each in taken if not self._questions[each.id]),
            questions=tuple(map(self._asking, asked.values())),
            refusals=tuple(self._refusals.get(number, ())),
        )

    def _question(self, answer: EntryView) -> EntryView | None:
        """The question that an answer is to: the same one, in the last round before."""
        same = [
            each
            for each in self._asked
            if _identity(each) == _identity(answer) and _number(each) < _number(answer)
        ]
        return max(same, key=_number, default=None)

    def _asking(self, entry: EntryView) -> Question:
        answers = tuple(self._answer(each) for each in self.answers if self._fits(each, entry))
        run = self._attempts.get((_number(entry), entry.leg))
        expires_at = None if run is None else run.expires_at
        if answers:
            return Question(entry, answers[0].fate, expires_at, answers)
        again = self._asked_again(entry)
        if again is not None:
            return Question(entry, REPEATED, expires_at, again=again)
        return Question(entry, self._unanswered(_number(entry), run), expires_at)

    def _fits(self, answer: EntryView, question: EntryView) -> bool:
        """Whether it is an answer to that question of that round, whichever run of it asked."""
        found = self._questions[answer.id]
        return (
            found is not None
            and found.round == question.round
            and _identity(found) == _identity(question)
        )

    def _unanswered(self, number: int, run: Attempt | None) -> str:
        later = any(each.round > number for each in self._attempts.values())
        if later or run is None or run.outcome != INPUT_REQUIRED or run.expires_at is None:
            return NEVER
        return OPEN if self._now < run.expires_at else EXPIRED

    def _asked_again(self, entry: EntryView) -> int | None:
        later = (
            _number(each)
            for each in self._asked
            if key_of(each) == key_of(entry) and _number(each) > _number(entry)
        )
        return min(later, default=None)

    def _answer(self, entry: EntryView) -> Answer:
        ran = self._attempts.get((_number(entry), entry.leg))
        why = "" if ran is None else str(ran.invalid.get(key_of(entry), ""))
        question = self._questions[entry.id]
        asked_at = None if question is None else question.at
        return Answer(entry, _fate(entry, why), why, ran, asked_at)


def _fate(entry: EntryView, why: str) -> str:
    if why:
        return INVALID
    return UNASKED if entry.facts.get("unasked") else entry.outcome


def _identity(entry: EntryView) -> tuple[str, str]:
    """What makes an answer one to a question: its key and the question's digest."""
    return key_of(entry), str(entry.facts.get("question", ""))


def _of(entries: Iterable[EntryView], *actions: str) -> list[EntryView]:
    return [each for each in entries if each.action in actions]


def _attempts(entries: Iterable[EntryView]) -> dict[tuple[int, UUID | None], Attempt]:
    """The runs by round and leg, in the order of their first entries."""
    starts: dict[tuple[int, UUID | None], EntryView] = {}
    ends: dict[tuple[int, UUID | None], EntryView] = {}
    found: dict[tuple[int, UUID | None], None] = {}
    for each in entries:
        kept = {ROUND_STARTED: starts, ROUND_FINISHED: ends}.get(each.action)
        if kept is not None:
            kept[_number(each), each.leg] = each
            found[_number(each), each.leg] = None
    return {at: Attempt(*at, starts.get(at), ends.get(at)) for at in found}
