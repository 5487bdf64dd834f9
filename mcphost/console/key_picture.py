"""A picture of the key ring over time: a row for each key, a bar for each phase of its life.

What is still to come of a phase is a bar of its own. All positions are percentages, so that the picture fits any
width while its texts keep their size. The table on the same page has the same facts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mcphost.console.dashboards.scales import times
from mcphost.vault.listing import KeyPhase, KeyRow
from mcphost.vault.states import KeyState

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
    """A phase, or the part of it that is past or planned: its position and size in the picture."""

    phase: KeyPhase
    x: str
    y: int
    width: str
    planned: bool = False
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

    @property
    def states(self) -> Sequence[KeyState]:
        """The states that have bars, in the order of a key's life."""
        drawn = {bar.phase.state for bar in self._bars}
        return [state for state in KeyState if state in drawn]

    @property
    def planned(self) -> KeyState | None:
        """The state of the first bar in the future."""
        return next((bar.phase.state for bar in self._bars if bar.planned), None)

    @property
    def has_uses(self) -> bool:
        """Whether it shows the last use of a key."""
        return any(line.used for line in self.lines)

    @property
    def _bars(self) -> Sequence[Bar]:
        return [bar for line in self.lines for bar in line.bars]


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
            list(_bars(key, index, share, now)),
            "" if key.last_used_at is None else _percent(share(key.last_used_at)),
        )
        for index, key in enumerate(shown)
    ]
    return Picture(len(shown) * ROW, lines, _ticks(start, end), _percent(share(now)))


def _bars(
    key: KeyRow, index: int, share: Callable[[datetime], float], now: datetime
) -> Iterator[Bar]:
    y, present = index * ROW + (ROW - BAR) // 2, share(now)
    for phase in key.phases:
        start, end = share(phase.start), share(phase.end)
        if (
            phase.state is KeyState.STANDBY
            and phase is not key.phases[-1]
            and end - start < MIN_WIDTH
        ):
            continue  # the seconds before a key seals: the bar of its next phase would hide it
        if end - present < MIN_WIDTH:
            yield Bar(phase, *_extent(start, end, present if end <= present else 100, y))
            continue
        if start < present:
            yield Bar(phase, *_extent(start, present, present, y))
        yield Bar(phase, *_extent(max(start, present), end, 100, y), planned=True)


def _extent(start: float, end: float, latest_end: float, y: int) -> tuple[str, int, str]:
    """Return position and width of a bar that is wide enough to be seen."""
    width = max(MIN_WIDTH, end - start)
    return _percent(max(0, min(start, latest_end - width))), y, _percent(width)


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
