"""A picture of the key ring over time: a row for each key, a bar for each phase of its life.

All positions are percentages, so that the picture fits any width while its texts keep their size. The table on
the same page has the same facts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mcphost.console.dashboards.scales import times
from mcphost.vault.listing import KeyPhase, KeyRow

MAX_KEYS = 8
"""Keys shown: the newest."""
ROW, BAR = 28, 14
"""The height of a row, and of the bar in it, in pixels."""
MIN_WIDTH = 0.5
"""Width of the narrowest bar in percent, so that a short phase can be seen."""
_EDGE = 0.04
"""At this part of the axis before its end, a text ends at its time instead of being centred."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A phase: its state, position and size in the picture, and its times."""

    phase: KeyPhase
    x: str
    y: int
    width: str
    height: int = BAR


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key's row: its id, its middle, its bars, and the position of its last use."""

    key: KeyRow
    y: int
    bars: Sequence[Bar]
    used: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the axis. Narrow screens leave out the texts of the `minor` ones."""

    x: str
    label: str
    anchor: str
    minor: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture of the ring; `now` is the position of the present."""

    height: int
    lines: Sequence[KeyLine]
    ticks: Sequence[Tick]
    now: str


def draw(keys: Sequence[KeyRow], now: datetime) -> Picture | None:
    """Return the picture of the newest keys; None if there are none."""
    shown = keys[:MAX_KEYS]
    if not shown:
        return None
    start = min(phase.start for key in shown for phase in key.phases)
    end = max(now, *(phase.end for key in shown for phase in key.phases))
    end = max(end, start + timedelta(seconds=1))

    def share(at: datetime) -> float:
        return (at - start) / (end - start) * 100

    lines = [
        KeyLine(
            key,
            index * ROW + ROW // 2,
            [_bar(phase, index, share, now) for phase in key.phases],
            "" if key.last_used_at is None else _percent(share(key.last_used_at)),
        )
        for index, key in enumerate(shown)
    ]
    return Picture(len(shown) * ROW, lines, _ticks(start, end), _percent(share(now)))


def _bar(phase: KeyPhase, index: int, share: Callable[[datetime], float], now: datetime) -> Bar:
    width = max(MIN_WIDTH, share(phase.end) - share(phase.start))
    latest_end = share(now) if phase.end <= now else 100
    bar_start = max(0, min(share(phase.start), latest_end - width))
    return Bar(phase, _percent(bar_start), index * ROW + (ROW - BAR) // 2, _percent(width))


def _ticks(start: datetime, end: datetime) -> Sequence[Tick]:
    labels = times(start, end)
    return [
        Tick(
            _percent(label.position * 100),
            label.text,
            "end" if label.position > 1 - _EDGE else "middle",
            (len(labels) - 1 - number) % 2 == 1,
        )
        for number, label in enumerate(labels)
    ]


def _percent(number: float) -> str:
    return f"{number:.3f}%"
