"""The timeline of one call for display: its rounds in order, their questions, and the answers.

It is made from the call's entries only, so it shows what was recorded. What has no entry of its own
(a question expired, a process died) follows from missing entries.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from mcphost.audit.entries import UNKNOWN, EntryView
from mcphost.audit.open_calls import NONE, Loss, Losses
from mcphost.audit.records import (
    ANSWER_RECEIVED,
    ANSWER_REPEATED,
    BESIDE_ROUNDS,
    CALL_CANCELLED,
    CANCELLATIONS,
    GOES_ON,
    INPUT_REQUIRED,
    QUESTION_ASKED,
    REFUSALS,
    ROUND_FINISHED,
    ROUND_STARTED,
    TASK_CANCELLED,
)

OPEN = "open"
"""The question can still be answered."""
EXPIRED = "expired"
"""No answer came in time."""
LOST = "lost"
"""The key or salt that sealed the state is gone, so no answer can be accepted any more."""
REPEATED = "repeated"
"""The client retried without an answer, and was asked again."""
NEVER = "never"
"""The call went on, or ended, without an answer."""
STOPPED = "stopped"
"""An operator cancelled the call, or its task, before an answer came."""
INVALID = "invalid"
"""The answer did not fit its question."""
UNASKED = "unasked"
"""The answer is to a question that no state had asked."""
CANCELLED = "cancelled"
"""The last round was cancelled, or the call, or its task."""
TOOL_ERROR = "tool_error"
DECLINED = "declined"
"""The tool ended with an error in the round to which a person had declined or cancelled an input request. It is no error."""
REFUSED_BY_PERSON = frozenset({"decline", "cancel"})
"""Responses by which a person keeps a tool from its work."""


_NOTHING_RAN = (*REFUSALS, ANSWER_REPEATED, *BESIDE_ROUNDS)


@dataclass(frozen=True, slots=True)
class TimelineAttempt:
    """One run of a round, for one HTTP request. There are several if the client sent a state
    again, or if another process took over after its owner died."""

    round: int
    http_request_id: UUID | None
    started: EntryView | None = None
    finished: EntryView | None = None

    @property
    def entry(self) -> EntryView:
        """Its latest entry."""
        latest = self.finished or self.started
        assert latest is not None
        return latest

    @property
    def outcome(self) -> str:
        """How it ended; `unknown` if it has no entry of its end."""
        return UNKNOWN if self.finished is None else self.finished.outcome

    @property
    def is_final(self) -> bool:
        """Whether it ended the call: the client cannot continue from it."""
        return self.finished is not None and self.finished.outcome not in GOES_ON

    @property
    def invalid(self) -> Mapping[str, str]:
        """By key, why an answer that it received was invalid."""
        return _facts(self.finished).get("invalid") or {}

    @property
    def expires_at(self) -> datetime | None:
        """Until when its questions can be answered."""
        return moment(_facts(self.finished).get("expires_at"))

    @property
    def sealed_by(self) -> str:
        """The id of the ring key of the state that it ended with."""
        return str(_facts(self.finished).get("sealed_by") or "")


@dataclass(frozen=True, slots=True)
class TimelineAnswer:
    """One answer: its outcome, and the run that used it.

    `outcome` is `accept`, `decline`, `cancel`, `received` (an answer that is no choice), `invalid`
    (`why` says why) or `unasked`. `ran` is the run of the same HTTP request; None if no entry of
    one exists. A process that takes a round over records its answers once more.
    """

    entry: EntryView
    outcome: str
    why: str = ""
    ran: TimelineAttempt | None = None
    asked_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long the user took to answer."""
        seconds = _facts(self.entry).get("seconds")
        if isinstance(seconds, int | float):
            return float(seconds)
        return None if self.asked_at is None else (self.entry.at - self.asked_at).total_seconds()


@dataclass(frozen=True, slots=True)
class TimelineQuestion:
    """One question of a round. `outcome` is that of its first answer, or why it has none: `open`,
    `expired`, `lost`, `stopped`, `repeated` (`again` is the round that asked again) or `never`."""

    entry: EntryView
    outcome: str
    expires_at: datetime | None = None
    answers: tuple[TimelineAnswer, ...] = ()
    again: int | None = None


@dataclass(frozen=True, slots=True)
class TimelineRound:
    """One round: its runs, the answers it received, its questions, and refusals until the next.

    `answers` are all of them; `strange` those among them that match no question; `repeated` are
    requests that repeated the same answers, so that nothing ran.
    """

    number: int
    attempts: tuple[TimelineAttempt, ...]
    answers: tuple[TimelineAnswer, ...]
    strange: tuple[TimelineAnswer, ...]
    questions: tuple[TimelineQuestion, ...]
    refusals: tuple[EntryView, ...]
    repeated: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A whole call. `state` is the last outcome, or `open`, `expired`, `lost`, `unknown`, `cancelled`, `declined`.

    `loss` is why a lost call cannot go on; `acts` are what users did to it, and the client to its task.
    """

    entries: tuple[EntryView, ...]
    rounds: tuple[TimelineRound, ...]
    state: str
    expires_at: datetime | None
    loss: Loss | None = None
    acts: tuple[EntryView, ...] = ()

    @property
    def questions(self) -> tuple[TimelineQuestion, ...]:
        return tuple(question for round in self.rounds for question in round.questions)

    @property
    def has_ended(self) -> bool:
        """Whether nothing can continue the call. After a round that was cancelled, its client still can, unless it has a
        session (`serving.execution.links`).

        A call that has a result may run once more: if its client sends a state again, or as a task that is retried.
        """
        if self.state == CANCELLED:
            return any(act.action in CANCELLATIONS for act in self.acts)
        return self.state not in (OPEN, UNKNOWN, *GOES_ON) and not self._runs_again

    @property
    def _runs_again(self) -> bool:
        """Whether a run that began after the last result has not ended."""
        attempts = [attempt for round in self.rounds for attempt in round.attempts]
        results = [attempt.entry.id for attempt in attempts if attempt.is_final]
        begun = [attempt.entry.id for attempt in attempts if attempt.finished is None]
        begun += [
            answer.entry.id
            for round in self.rounds
            for answer in round.answers
            if answer.ran is None or answer.ran.finished is None
        ]
        return bool(results and begun) and max(begun) > max(results)

    @property
    def outcomes(self) -> Mapping[UUID, str]:
        """The outcome of each answer, by the id of its entry."""
        return {
            answer.entry.id: answer.outcome for round in self.rounds for answer in round.answers
        }


_OfRound = TypeVar("_OfRound", EntryView, TimelineAttempt)


def timeline(entries: Sequence[EntryView], now: datetime, losses: Losses = NONE) -> Timeline:
    """Make the timeline of a call from all of its entries, oldest first; at least one."""
    reading = _TimelineReading(entries, now, losses)
    rounds = tuple(reading.round(number) for number in reading.numbers)
    last, acts = reading.last, tuple(reading.acts)
    if reading.cancelled and (last is None or not last.is_final):
        return Timeline(tuple(entries), rounds, CANCELLED, None, acts=acts)
    if last is None or last.finished is None:
        return Timeline(tuple(entries), rounds, UNKNOWN, None, acts=acts)
    answered_keys = {key_of(answer) for answer in reading.answers if _number(answer) > last.round}
    loss = loss_of(last.finished, losses)
    state = state_of(last.finished, answered_keys, now, loss)
    if state == TOOL_ERROR and _was_declined(rounds, last.round):
        state = DECLINED
    lost = loss if state == LOST else None
    return Timeline(tuple(entries), rounds, state, last.expires_at, lost, acts)


def _was_declined(rounds: Iterable[TimelineRound], number: int) -> bool:
    """Whether a person declined or cancelled an input request, which a round then received."""
    return any(
        answer.outcome in REFUSED_BY_PERSON
        for round in rounds
        if round.number == number
        for answer in round.answers
    )


def state_of(
    finished: EntryView, answered: Collection[str], now: datetime, loss: Loss | None
) -> str:
    """The state of a call whose last round ended with `finished`; `answered` are the keys since.

    If all questions are answered and no round has ended since, the state is unknown.
    """
    if finished.outcome != INPUT_REQUIRED:
        return finished.outcome
    expires_at = moment(finished.facts.get("expires_at"))
    asked_keys = set(finished.facts.get("asked") or ())
    if expires_at is None or (asked_keys and asked_keys <= set(answered)):
        return UNKNOWN
    if loss is not None:
        return LOST
    return OPEN if now < expires_at else EXPIRED


def loss_of(finished: EntryView, losses: Losses) -> Loss | None:
    """The loss that made a round's state unreadable before it expired, if any."""
    expires_at = moment(finished.facts.get("expires_at"))
    if finished.outcome != INPUT_REQUIRED or expires_at is None:
        return None
    return losses.of(finished.tenant, str(finished.facts.get("sealed_by") or ""), expires_at)


def moment(text: Any) -> datetime | None:
    """Parse a time from facts; None for anything else."""
    try:
        parsed_time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return parsed_time if parsed_time.tzinfo is not None else None


def key_of(entry: EntryView) -> str:
    """The author's key of a question or an answer."""
    return str(entry.facts.get("key", ""))


def _facts(entry: EntryView | None) -> Mapping[str, Any]:
    return {} if entry is None else entry.facts


def _number(entry: EntryView) -> int:
    return entry.round or 0


class _TimelineReading:
    """The entries of one call, grouped for the timeline: a client can add many by sending a state again."""

    def __init__(self, entries: Sequence[EntryView], now: datetime, losses: Losses) -> None:
        self._now, self._losses = now, losses
        self._attempts = _attempts(entries)
        self._runs = _by_round(self._attempts.values())
        self.answers = _with_actions(entries, ANSWER_RECEIVED)
        self._answers_by_round = _by_round(self.answers)
        self.acts = _with_actions(entries, *BESIDE_ROUNDS)
        self.cancelled = any(act.action in CANCELLATIONS for act in self.acts)
        self._last_stop = max((act.id for act in self.acts if _is_of_operator(act)), default=None)
        every = self._attempts.values()
        self._last_ran = max(
            (attempt.round for attempt in every if attempt.outcome != CANCELLED), default=0
        )
        self._last_round = max(self._runs, default=0)
        self._ended = any(attempt.is_final for attempt in every)
        self._question_entries = _with_actions(entries, QUESTION_ASKED)
        self._asked_in = _by_round(self._question_entries)
        self._rounds_of_key = _rounds_of_keys(self._question_entries)
        self._questions = self._match_answers()
        self._answers_to = self._by_question()
        self.numbers = sorted({_number(entry) for entry in entries if _has_run(entry)}) or [0]
        self._beside = self._entries_beside_rounds(entries)

    @property
    def last(self) -> TimelineAttempt | None:
        """The run that determines the call's state: the last to end of the round that ended the
        call, else of the last round."""
        every = list(self._attempts.values())
        runs = [attempt for attempt in every if attempt.is_final] or every
        number = max((attempt.round for attempt in runs), default=0)
        of_last = [attempt for attempt in runs if attempt.round == number]
        ended = [attempt for attempt in of_last if attempt.finished is not None]
        return next(reversed(ended or of_last), None)

    def round(self, number: int) -> TimelineRound:
        answers = self._answers_by_round.get(number, ())
        questions = {_identity(entry): entry for entry in self._asked_in.get(number, ())}
        return TimelineRound(
            number=number,
            attempts=tuple(self._runs.get(number, ())),
            answers=tuple(map(self._answer, answers)),
            strange=tuple(
                self._answer(answer) for answer in answers if not self._questions[answer.id]
            ),
            questions=tuple(map(self._asking, questions.values())),
            refusals=tuple(_with_actions(self._beside.get(number, ()), *REFUSALS)),
            repeated=tuple(_with_actions(self._beside.get(number, ()), ANSWER_REPEATED)),
        )

    def _match_answers(self) -> dict[UUID, EntryView | None]:
        """By the id of each answer, its question: the same one, in the last round before."""
        same: dict[tuple[str, str], dict[int, EntryView]] = defaultdict(dict)
        for question in self._question_entries:
            same[_identity(question)].setdefault(_number(question), question)
        rounds = {identity: sorted(by_round) for identity, by_round in same.items()}
        questions: dict[UUID, EntryView | None] = {}
        for answer in self.answers:
            identity = _identity(answer)
            numbers = rounds.get(identity, [])
            before = bisect_left(numbers, _number(answer))
            questions[answer.id] = same[identity][numbers[before - 1]] if before else None
        return questions

    def _by_question(self) -> dict[tuple[int, tuple[str, str]], list[EntryView]]:
        """The answers that belong to a question of a round, asked by any of its runs."""
        answers: dict[tuple[int, tuple[str, str]], list[EntryView]] = defaultdict(list)
        for answer in self.answers:
            question = self._questions[answer.id]
            if question is not None:
                answers[_number(question), _identity(question)].append(answer)
        return answers

    def _entries_beside_rounds(self, entries: Sequence[EntryView]) -> dict[int, list[EntryView]]:
        """What ran nothing, by the last round that had begun before."""
        entries_by_round: dict[int, list[EntryView]] = defaultdict(list)
        begun: int | None = None
        for entry in entries:
            if _has_run(entry):
                begun = max(_number(entry), begun or 0)
            else:
                entries_by_round[self.numbers[0] if begun is None else begun].append(entry)
        return entries_by_round

    def _asking(self, entry: EntryView) -> TimelineQuestion:
        number = _number(entry)
        to_it = self._answers_to.get((number, _identity(entry)), ())
        answers = tuple(map(self._answer, to_it))
        run = self._attempts.get((number, entry.http_request_id))
        expires_at = None if run is None else run.expires_at
        if answers:
            return TimelineQuestion(entry, answers[0].outcome, expires_at, answers)
        rounds = self._rounds_of_key[key_of(entry)]
        later = bisect_right(rounds, number)
        if later < len(rounds):
            return TimelineQuestion(entry, REPEATED, expires_at, again=rounds[later])
        outcome = STOPPED if self._was_stopped(entry) else self._unanswered(number, run)
        return TimelineQuestion(entry, outcome, expires_at)

    def _was_stopped(self, question: EntryView) -> bool:
        """Whether an operator cancelled the call while the question was its last."""
        if self._last_ran > _number(question):
            return False
        return self._last_stop is not None and self._last_stop > question.id

    def _unanswered(self, number: int, run: TimelineAttempt | None) -> str:
        later = self._last_round > number or self._ended or self.cancelled
        if later or run is None or run.outcome != INPUT_REQUIRED or run.expires_at is None:
            return NEVER
        if run.finished is not None and loss_of(run.finished, self._losses) is not None:
            return LOST
        return OPEN if self._now < run.expires_at else EXPIRED

    def _answer(self, entry: EntryView) -> TimelineAnswer:
        ran = self._attempts.get((_number(entry), entry.http_request_id))
        why = "" if ran is None else str(ran.invalid.get(key_of(entry), ""))
        question = self._questions[entry.id]
        asked_at = None if question is None else question.at
        outcome = UNASKED if entry.facts.get("unasked") else entry.outcome
        return TimelineAnswer(entry, INVALID if why else outcome, why, ran, asked_at)


def _is_of_operator(act: EntryView) -> bool:
    """Whether an operator cancelled the call or its task. A client does so in an HTTP request."""
    return act.action == CALL_CANCELLED or (
        act.action == TASK_CANCELLED and act.http_request_id is None
    )


def _identity(entry: EntryView) -> tuple[str, str]:
    """What an answer and its question have in common: the key and the question's digest."""
    return key_of(entry), str(entry.facts.get("question", ""))


def _has_run(entry: EntryView) -> bool:
    return entry.action not in _NOTHING_RAN


def _by_round(each_of: Iterable[_OfRound]) -> dict[int, list[_OfRound]]:
    by_round: dict[int, list[_OfRound]] = defaultdict(list)
    for part in each_of:
        by_round[part.round or 0].append(part)
    return by_round


def _rounds_of_keys(questions: Iterable[EntryView]) -> dict[str, list[int]]:
    """In which rounds each key was asked, in their order."""
    rounds_by_key: dict[str, set[int]] = defaultdict(set)
    for question in questions:
        rounds_by_key[key_of(question)].add(_number(question))
    return {key: sorted(rounds) for key, rounds in rounds_by_key.items()}


def _with_actions(entries: Iterable[EntryView], *actions: str) -> list[EntryView]:
    return [entry for entry in entries if entry.action in actions]


def _attempts(entries: Iterable[EntryView]) -> dict[tuple[int, UUID | None], TimelineAttempt]:
    """The runs by round and HTTP request, in the order of their first entries."""
    starts: dict[tuple[int, UUID | None], EntryView] = {}
    ends: dict[tuple[int, UUID | None], EntryView] = {}
    keys: dict[tuple[int, UUID | None], None] = {}
    for entry in entries:
        kept = {ROUND_STARTED: starts, ROUND_FINISHED: ends}.get(entry.action)
        if kept is not None:
            kept[_number(entry), entry.http_request_id] = entry
            keys[_number(entry), entry.http_request_id] = None
    return {at: TimelineAttempt(*at, starts.get(at), ends.get(at)) for at in keys}
