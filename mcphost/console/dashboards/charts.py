"""Charts as numbers for the template `dashboards/chart.html`, which draws them as SVG.

All positions are percentages, so a chart fits any width while its texts keep their size. A chart has
no text from outside, and the table below it has the same numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain, groupby

from django.utils import timezone

from mcphost.console.dashboards.scales import NOTHING, Scale, times

Value = float | None
"""A number of a chart; None where there was nothing to measure."""
_BAR = 0.76
"""The part of its span that a bar takes."""
_THINNEST = 0.8
"""The height in percent of the lowest bar, so that one error among a million calls can be seen."""
_POINT = "h0.1"
"""The end of a line that is one point."""
_EDGE = 0.04
_FEW = 4


@dataclass(frozen=True)
class ChartSpan:
    """A part of the time axis: from `at` until `until`."""

    at: datetime
    until: datetime

    @cached_property  # all charts of a page have the same spans
    def text(self) -> str:
        """The span in words, in the zone of the server."""
        at, until = timezone.localtime(self.at), timezone.localtime(self.until)
        if self.until - self.at >= timedelta(days=1):
            return f"{at:%a %d %b}"
        return f"{at:%a %d %b, %H:%M} to {until:%H:%M}"


Link = Callable[[ChartSpan], str]
"""The address of what a number of a span counts; empty if no page shows it."""


def no_link(span: ChartSpan) -> str:
    """Return no address."""
    return ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of numbers, one for each span. `tone` names its colour, `total` is for the legend; `link` is what its
    numbers count, `total_url` what the total counts."""

    tone: str
    label: str
    values: Sequence[Value]
    total: str = ""
    link: Link = no_link
    total_url: str = ""


@dataclass(frozen=True, slots=True)
class ChartBox:
    """A rectangle, or a column that is pointed at: positions and sizes in percent; what it counts, and says."""

    tone: str
    x: str
    y: str
    width: str
    height: str
    url: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line through the middles of spans, in a picture of 1,000 by 100. Gaps are in its path."""

    tone: str
    path: str

    @property
    def points(self) -> str:
        """The path of the numbers between two gaps alone, which are drawn larger than the line is wide."""
        return "".join(f"M{part}" for part in self.path.split("M") if part.endswith(_POINT))


@dataclass(frozen=True, slots=True)
class ChartLabel:
    """A text on an axis; `anchor` is its alignment. Narrow screens leave out the `minor` ones."""

    position: str
    text: str
    anchor: str = "middle"
    minor: bool = False


@dataclass(frozen=True, slots=True)
class ChartCell:
    """One number of a row: its measure, the number in words, and the address of what it counts."""

    label: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A row of the table, which is also what a column says when it is pointed at."""

    span: ChartSpan
    box: ChartBox
    cells: Sequence[ChartCell]

    @property
    def text(self) -> str:
        """The row in a few lines."""
        return "\n".join((self.span.text, *(f"{cell.label}: {cell.text}" for cell in self.cells)))


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `summary` says what it shows, for readers who do not see it."""

    name: str
    title: str
    summary: str
    measures: Sequence[Measure]
    values: Sequence[ChartLabel]
    times: Sequence[ChartLabel]
    rows: Sequence[ChartRow]
    bars: Sequence[ChartBox] = ()
    lines: Sequence[ChartLine] = ()

    @property
    def empty(self) -> bool:
        """Whether no measure has a number above zero."""
        return not any(chain.from_iterable(measure.values for measure in self.measures))


@dataclass(frozen=True, slots=True)
class Axes:
    """What a chart is about: its id in the page, its title, its spans, and how values are written; `link` is what a
    column counts."""

    name: str
    title: str
    spans: Sequence[ChartSpan]
    scale: Callable[[float], Scale]
    written: Callable[[float], str]
    link: Link = no_link


def stacked(axes: Axes, measures: Sequence[Measure]) -> Chart:
    """Draw measures as bars on top of one another, the first at the bottom."""
    heights = [
        sum(measure.values[index] or 0 for measure in measures) for index in range(len(axes.spans))
    ]
    scale = axes.scale(max(heights, default=0))
    boxes = _columns(axes.spans)
    bars = [
        bar for index, box in enumerate(boxes) for bar in _stack(axes, box, index, measures, scale)
    ]
    return _chart(axes, measures, scale, bars=bars)


def drawn_lines(axes: Axes, measures: Sequence[Measure]) -> Chart:
    """Draw measures as lines, the first on top, with a gap where there was nothing to measure."""
    values = chain.from_iterable(measure.values for measure in measures)
    scale = axes.scale(max((value for value in values if value is not None), default=0))
    middles = [x + width / 2 for x, width in _columns(axes.spans)]
    lines = [
        ChartLine(measure.tone, _path(middles, measure.values, scale))
        for measure in reversed(measures)
    ]
    return _chart(axes, measures, scale, lines=lines)


def _chart(
    axes: Axes,
    measures: Sequence[Measure],
    scale: Scale,
    *,
    bars: Sequence[ChartBox] = (),
    lines: Sequence[ChartLine] = (),
) -> Chart:
    return Chart(
        name=axes.name,
        title=axes.title,
        summary=_summary(axes, measures),
        measures=measures,
        values=[
            ChartLabel(_percent(100 - part * 50), scale.written(scale.top * part / 2))
            for part in range(3)
        ],
        times=list(_time_labels(axes.spans)),
        rows=list(_rows(axes, measures)),
        bars=bars,
        lines=lines,
    )


def _summary(axes: Axes, measures: Sequence[Measure]) -> str:
    maxima = [
        f"{measure.label}: at most {axes.written(max(positive))}"
        for measure in measures
        if (positive := [value for value in measure.values if value])
    ]
    return f"{axes.title}. {'; '.join(maxima) or 'Nothing in this period'}."


def _columns(spans: Sequence[ChartSpan]) -> list[tuple[float, float]]:
    """Return the left end and the width of each span, in percent of the axis."""
    if not spans:
        return []
    start, whole = spans[0].at, spans[-1].until - spans[0].at
    return [
        ((span.at - start) / whole * 100, (span.until - span.at) / whole * 100) for span in spans
    ]


def _stack(
    axes: Axes,
    column: tuple[float, float],
    index: int,
    measures: Sequence[Measure],
    scale: Scale,
) -> Iterator[ChartBox]:
    x, width = column
    bottom = 100.0
    for measure in measures:
        value = measure.values[index]
        if value:
            height = min(max(scale.share(value) * 100, _THINNEST), bottom)
            bottom -= height
            bar_left, wide = x + width * (1 - _BAR) / 2, width * _BAR
            span = axes.spans[index]
            yield ChartBox(
                measure.tone,
                _percent(bar_left),
                _percent(bottom),
                _percent(wide),
                _percent(height),
                measure.link(span),
                f"{span.text}\n{measure.label}: {axes.written(value)}",
            )


def _path(middles: Sequence[float], values: Sequence[Value], scale: Scale) -> str:
    """Return the path of a line; a number between two gaps is a point."""
    parts = []
    points = zip(middles, values, strict=True)
    for has_value, run in groupby(points, key=lambda point: point[1] is not None):
        if has_value:
            places = [f"{x * 10:.1f},{(1 - scale.share(y or 0)) * 100:.2f}" for x, y in run]
            parts.append(f"M{'L'.join(places)}" + (_POINT if len(places) == 1 else ""))
    return "".join(parts)


def _rows(axes: Axes, measures: Sequence[Measure]) -> Iterator[ChartRow]:
    for index, (x, width) in enumerate(_columns(axes.spans)):
        span = axes.spans[index]
        counts = any(measure.values[index] for measure in measures)
        url = axes.link(span) if counts else ""
        box = ChartBox("hit", _percent(x), "0%", _percent(width), "100%", url)
        yield ChartRow(span, box, [_cell(measure, index, axes) for measure in measures])


def _cell(measure: Measure, index: int, axes: Axes) -> ChartCell:
    value = measure.values[index]
    url = measure.link(axes.spans[index]) if value else ""
    return ChartCell(measure.label, NOTHING if value is None else axes.written(value), url)


def _time_labels(spans: Sequence[ChartSpan]) -> Iterator[ChartLabel]:
    labels = times(spans[0].at, spans[-1].until) if spans else ()
    for number, label in enumerate(labels):
        anchor = "end" if label.position > 1 - _EDGE else "middle"
        minor = len(labels) > _FEW and (len(labels) - 1 - number) % 2 == 1
        yield ChartLabel(_percent(label.position * 100), label.text, anchor, minor)


def _percent(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".") + "%"
