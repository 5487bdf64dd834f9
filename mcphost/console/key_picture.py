"""A picture of the key ring over time: a row for each key, a bar for each phase of its life.

The picture has the numbers of the table on the same page, so it is hidden from screen readers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from mcphost.vault.listing import KeyPhase, KeyRow

MAX_KEYS = 8
"""Keys shown: the newest."""
WIDTH = 1000
ROW, BAR, LABEL_WIDTH = 28, 14, 90
MIN_WIDTH = 12
"""Width of the narrowest bar, so that a short phase can be seen."""
_TICKS = 4
_SHORT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """A phase: its state, position and size in the picture, and its times."""

    phase: KeyPhase
    x: int
    y: int
    width: int
    height: int = BAR


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key's row: its id, the position of its text, its bars, and the position of its last use."""

    key: KeyRow
    y: int
    bars: Sequence[Bar]
    used: int | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the axis."""

    x: int
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of the ring; `now` is the position of the present."""

    height: int
    lines: Sequence[KeyLine]
    ticks: Sequence[Tick]
    now: int
    width: int = WIDTH


def draw(keys: Sequence[KeyRow], now: datetime) -> Picture | None:
    """Return the picture of the newest keys; None if there are none."""
    shown = keys[:MAX_KEYS]
    if not shown:
        return None
    start = min(phase.start for key in shown for phase in key.phases)
    end = max(now, *(phase.end for key in shown for phase in key.phases))
    span = max(end - start, timedelta(seconds=1))

    def x(at: datetime) -> int:
        return LABEL_WIDTH + round((at - start) / span * (WIDTH - LABEL_WIDTH - 10))

    lines = [
        KeyLine(
            key,
            index * ROW + BAR,
            [_bar(phase, index, x) for phase in key.phases],
            None if key.last_used_at is None else x(key.last_used_at),
        )
        for index, key in enumerate(shown)
    ]
    form = "%H:%M:%S" if span < _SHORT else "%Y-%m-%d %H:%M"
    times = [start + span * part / _TICKS for part in range(_TICKS)]
    ticks = [Tick(x(at), timezone.localtime(at).strftime(form)) for at in times]
    return Picture((len(shown) + 1) * ROW, lines, ticks, x(now))


def _bar(phase: KeyPhase, index: int, x: Callable[[datetime], int]) -> Bar:
    bar_start = x(phase.start)
    return Bar(phase, bar_start, index * ROW + 3, max(MIN_WIDTH, x(phase.end) - bar_start))
