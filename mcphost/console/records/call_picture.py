"""A picture of one call over time, to scale: its rounds, and what it waited for between them.

The table beside it has the same numbers. This module reads nothing: it is made from the timeline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from mcphost.audit.call_times import began
from mcphost.audit.records import INPUT_REQUIRED
from mcphost.audit.timeline import CANCELLED, EXPIRED, LOST, OPEN, Timeline, TimelineAttempt
from mcphost.console.templatetags.questions import question_title

MAX_PARTS = 60
"""Parts drawn: the first ones."""
MAX_TITLES = 3
LEAST = 0.5
"""Width of the narrowest bar in percent, so that a short round can be seen."""
BREAK, BREAKS = 12.0, 48.0
"""The widest compressed wait in percent, and the most that all of them take together."""
_FLOOR = timedelta(milliseconds=1)
_NOTHING = timedelta(0)


class PartType(StrEnum):
    """What a part of a call's time was spent on."""

    SERVER = "server"
    RESPONSE = "response"
    REQUEST = "request"
    UNKNOWN = "unknown"


LEGEND: Mapping[PartType, str] = {
    PartType.SERVER: "server time",
    PartType.RESPONSE: "waiting for answers",
    PartType.REQUEST: "queueing, or between requests",
    PartType.UNKNOWN: "end not recorded",
}


@dataclass(frozen=True, slots=True)
class CallPart:
    """A part of a call: a run of a round, or a wait. `goes_on`: it has not ended yet."""

    type: PartType
    label: str
    start: datetime
    end: datetime
    attempt: TimelineAttempt | None = None
    goes_on: bool = False

    @property
    def legend(self) -> str:
        """What the time was spent on, in words."""
        return LEGEND[self.type]

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PartBar:
    """A part in the picture. `x` and `width` are percentages; `gaps` are where it is compressed."""

    part: CallPart
    after: timedelta
    x: str
    width: str
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compressed:
    """A stretch of waiting that is drawn shorter than to scale."""

    x: str
    width: str
    length: timedelta


@dataclass(frozen=True, slots=True)
class CallPicture:
    """The picture. `unit` and `unit_width` are a stretch of time and how long it is drawn."""

    bars: tuple[PartBar, ...]
    compressed: tuple[Compressed, ...]
    totals: tuple[tuple[PartType, str, timedelta], ...]
    unit: timedelta
    unit_width: str
    cut: bool = False


def parts(
    call: Timeline,
    now: datetime,
    *,
    works: bool = False,
    settled: Mapping[int, datetime] | None = None,
) -> tuple[CallPart, ...]:
    """Return the parts of a call in the order of their starts.

    `works`: its task goes on. `settled` says when the last response to a round came, where that is
    known apart from the entries, which is so for tasks: until the next round runs it is queued.
    """
    runs = _runs(call)
    call_parts: list[CallPart] = []
    reached: CallPart | None = None
    for run in runs:
        if reached is not None and reached.end < run.start:
            call_parts += _wait(reached, run.start, settled or {})
        call_parts.append(run)
        if reached is None or run.end >= reached.end:
            reached = run
    if reached is not None:
        call_parts += _tail(call, reached, now, works=works)
    return tuple(call_parts)


def draw(call_parts: Sequence[CallPart]) -> CallPicture | None:
    """Return the picture of the first parts; None if there are none.

    It has one scale. If a wait is longer than all server time together, it is compressed, with all
    waits that would be wider than it then. No compressed wait is drawn longer than to scale.
    """
    if not call_parts:
        return None
    shown = call_parts[:MAX_PARTS]
    scale = _Scale(shown)
    bars = tuple(scale.bar(part) for part in shown)
    totals = tuple(
        (kind, LEGEND[kind], sum((part.length for part in of_kind), _NOTHING))
        for kind in PartType
        if (of_kind := [part for part in call_parts if part.type is kind])
    )
    unit, width = scale.unit()
    return CallPicture(
        bars,
        scale.compressed(),
        totals,
        unit,
        width,
        len(call_parts) > len(shown),
    )


def _runs(call: Timeline) -> list[CallPart]:
    """The runs of rounds by start. One without a recorded end reaches to the next run."""
    labelled_runs = []
    for round in call.rounds:
        for number, attempt in enumerate(round.attempts, 1):
            label = f"Round {round.number}"
            if len(round.attempts) > 1:
                label += f", run {number}"
            start = attempt.entry.at if attempt.finished is None else began(attempt.finished)
            labelled_runs.append((start, label, attempt))
    labelled_runs.sort(key=lambda labelled_run: labelled_run[0])
    runs = []
    for index, (start, label, attempt) in enumerate(labelled_runs):
        if attempt.finished is not None:
            end = max(start, attempt.finished.at)
            runs.append(CallPart(PartType.SERVER, label, start, end, attempt))
        else:
            end = labelled_runs[index + 1][0] if index + 1 < len(labelled_runs) else start
            runs.append(CallPart(PartType.UNKNOWN, label, start, end, attempt))
    return runs


def _wait(before: CallPart, until: datetime, settled: Mapping[int, datetime]) -> list[CallPart]:
    """The parts between a run and the next one."""
    attempt = before.attempt
    if attempt is None or attempt.outcome != INPUT_REQUIRED:
        return [CallPart(PartType.REQUEST, "Until the next request", before.end, until)]
    label = _waiting_for(attempt)
    answered = settled.get(attempt.round)
    if answered is None or not before.end < answered < until:
        return [CallPart(PartType.RESPONSE, label, before.end, until)]
    return [
        CallPart(PartType.RESPONSE, label, before.end, answered),
        CallPart(PartType.REQUEST, "Queued", answered, until),
    ]


def _tail(call: Timeline, last: CallPart, now: datetime, *, works: bool) -> list[CallPart]:
    """The wait after the last run, if the call waits, or waited until it ended without another."""
    attempt = last.attempt
    if attempt is None or last.type is PartType.UNKNOWN or attempt.is_final:
        return []
    ends: Mapping[str, datetime | None] = {
        OPEN: now,
        EXPIRED: attempt.expires_at,
        LOST: None if call.loss is None else call.loss.at,
        CANCELLED: call.acts[-1].at if call.acts else None,
    }
    if attempt.outcome == INPUT_REQUIRED:
        kind, label, end = PartType.RESPONSE, _waiting_for(attempt), ends.get(call.state)
        end = now if end is None and works else end
    else:
        kind, label, end = PartType.REQUEST, "Queued", now if works else None
    if end is None or end <= last.end:
        return []
    return [CallPart(kind, label, last.end, end, goes_on=call.state == OPEN or works)]


def _waiting_for(attempt: TimelineAttempt) -> str:
    """The label of a wait for responses: the titles of their questions."""
    keys = attempt.entry.facts.get("asked")
    titles = [f"“{question_title(str(key))}”" for key in keys] if isinstance(keys, list) else []
    more = f" and {len(titles) - MAX_TITLES} more" if len(titles) > MAX_TITLES else ""
    return f"Waiting for {', '.join(titles[:MAX_TITLES]) or 'an answer'}{more}"


class _Scale:
    """The position of each moment: in proportion, except in compressed waits."""

    def __init__(self, shown: Sequence[CallPart]) -> None:
        self._edges = sorted({part.start for part in shown} | {part.end for part in shown})
        self._first = self._edges[0]
        stretches = list(zip(self._edges, self._edges[1:], strict=False))
        busy = [stretch for stretch in stretches if _is_busy(stretch, shown)]
        working = set(busy)
        idle = [stretch for stretch in stretches if stretch not in working]
        idle.sort(key=lambda stretch: stretch[1] - stretch[0], reverse=True)
        total = sum((end - start for start, end in stretches), _NOTHING)
        work = max(_FLOOR, sum((end - start for start, end in busy), _NOTHING))
        self._long: dict[datetime, timedelta] = {}
        self._fit(0, max(total, work), work)
        for start, end in idle:
            length = end - start
            # Longer than all server time together, or it would be wider than a longer one.
            if length <= work and (not self._long or self._share(length) <= self._break):
                break
            self._long[start] = length
            self._fit(len(self._long), max(self._linear - length, work), work)
        self._places = self._place_stretches(stretches)

    def _fit(self, count: int, linear: timedelta, work: timedelta) -> None:
        """Divide the width between `count` compressed waits and what is drawn in proportion."""
        widest = 100 * (work / (linear + count * work))
        self._break = min(BREAK, BREAKS / max(1, count), widest)
        self._linear, self._room = linear, 100 - count * self._break

    def _place_stretches(
        self, stretches: Sequence[tuple[datetime, datetime]]
    ) -> Mapping[datetime, float]:
        places, x = {self._first: 0.0}, 0.0
        for start, end in stretches:
            x += self._break if start in self._long else self._share(end - start)
            places[end] = x
        return places

    def _share(self, length: timedelta) -> float:
        return self._room * (length / self._linear)

    def bar(self, part: CallPart) -> PartBar:
        x, end = self._places[part.start], self._places[part.end]
        width = max(LEAST, end - x)
        x = min(x, 100 - width)
        gaps = tuple(
            _percent(self._places[start] + self._break / 2)
            for start in self._long
            if part.start <= start < part.end
        )
        after = part.start - self._first
        return PartBar(part, after, _percent(x), _percent(width), gaps)

    def compressed(self) -> tuple[Compressed, ...]:
        return tuple(
            Compressed(_percent(self._places[start]), _percent(self._break), length)
            for start, length in self._long.items()
        )

    def unit(self) -> tuple[timedelta, str]:
        """A round stretch of time that takes at most a quarter of the picture, and its width."""
        quarter = self._linear * (25 / self._room)
        unit = timedelta(microseconds=1)
        for power in range(18):
            for digit in (1, 2, 5):
                larger = timedelta(microseconds=digit * 10**power)
                if larger <= quarter:
                    unit = larger
        return unit, _percent(self._share(unit))


def _is_busy(stretch: tuple[datetime, datetime], shown: Sequence[CallPart]) -> bool:
    """Whether a round ran in a stretch between two edges."""
    start, end = stretch
    return any(
        part.type is PartType.SERVER and part.start <= start and end <= part.end for part in shown
    )


def _percent(value: float) -> str:
    return f"{value:.3f}%"
