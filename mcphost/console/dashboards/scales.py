"""Round numbers and times for the axes of charts, and their words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

NOTHING = "\u2013"
"""Stands where there was nothing to measure."""
_MAX_TICKS = 7
_TIME_STEPS: Sequence[tuple[timedelta, str]] = (
    (timedelta(minutes=1), "%H:%M"),
    (timedelta(minutes=5), "%H:%M"),
    (timedelta(minutes=10), "%H:%M"),
    (timedelta(minutes=30), "%H:%M"),
    (timedelta(hours=1), "%H:%M"),
    (timedelta(hours=4), "%H:%M"),
    (timedelta(hours=12), "%a %H:%M"),
    (timedelta(days=1), "%a %-d"),
    (timedelta(days=5), "%-d %b"),
    (timedelta(days=10), "%-d %b"),
    (timedelta(days=30), "%-d %b"),
    (timedelta(days=90), "%b %Y"),
    (timedelta(days=365), "%b %Y"),
    (timedelta(days=1825), "%Y"),
)
"""The distances between two times on an axis, with the form in which they are written."""
_COUNTS = (2, 4, 10, 20, 40, 60, 80)
"""The ends of axes of counts, times powers of ten: their halves are whole numbers."""
_SECOND, _MINUTE, _HOUR, _DAY = 1.0, 60.0, 3600.0, 86_400.0
_DURATIONS = (
    *(step * _SECOND for step in (1, 2, 4, 6, 10, 20, 30)),
    *(step * _MINUTE for step in (1, 2, 4, 6, 10, 20, 30)),
    *(step * _HOUR for step in (1, 2, 4, 6, 12)),
    *(step * _DAY for step in (1, 2, 4, 6, 10, 20, 30)),
)
"""The ends of axes of durations from a second on; below, they are as round as counts."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis of values from zero to `top`, and how its numbers are written."""

    top: float
    written: Callable[[float], str]

    def share(self, value: float) -> float:
        """Return the part of the axis that a value takes, from 0 to 1."""
        return min(value / self.top, 1.0)


@dataclass(frozen=True, slots=True)
class TimeLabel:
    """A time on an axis: its place from 0 to 1, and its text."""

    position: float
    text: str


def count_scale(maximum: float) -> Scale:
    """Return the axis for counts up to `maximum`."""
    return Scale(_round_up(max(maximum, 2), _COUNTS), compact)


def duration_scale(maximum: float) -> Scale:
    """Return the axis for durations in seconds up to `maximum`."""
    if maximum <= _SECOND:
        return Scale(_round_up(max(maximum, 0.0002) * 1000, _COUNTS) / 1000, duration_text)
    return Scale(
        next((duration for duration in _DURATIONS if duration >= maximum), maximum), duration_text
    )


def _round_up(maximum: float, steps: Sequence[int]) -> float:
    power = 1.0 if maximum >= 2 else 0.1
    while power * steps[-1] < maximum:
        power *= 10
    return next(step * power for step in steps if step * power >= maximum)


def compact(number: float) -> str:
    """Return a count in at most four characters, such as 12k."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{suffix}"
    return f"{number:.3g}"


def grouped(number: int) -> str:
    """Return a count with its thousands apart."""
    return f"{number:,}"


def duration_text(seconds: float) -> str:
    """Return a duration in the unit that suits it, to at most three digits."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    milliseconds = seconds * 1000
    return f"{milliseconds:.3g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


def times(start: datetime, end: datetime) -> tuple[TimeLabel, ...]:
    """Return the times that are written below an axis from `start` to `end`."""
    span = end - start
    step, form = next(
        (time_step for time_step in _TIME_STEPS if span / time_step[0] <= _MAX_TICKS),
        _TIME_STEPS[-1],
    )
    return tuple(
        TimeLabel((at - start) / span, timezone.localtime(at).strftime(form))
        for at in _round_times(start, end, step)
    )


def _round_times(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    midnight = timezone.localtime(start).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + step * -((midnight - start) // step)
    while at <= end:
        yield at
        at += step
