"""The numbers of a period as a page shows them: tiles, charts, and top lists."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.figures import (
    AnyPeriod,
    CallNumbers,
    Dimension,
    Period,
    Point,
    Ranked,
)
from mcphost.audit.summaries.search import NO_ERROR
from mcphost.audit.timeline import DECLINED
from mcphost.console.dashboards.calls_behind import NO_LISTS, CallsBehind, RecordLists, whole
from mcphost.console.dashboards.charts import (
    Axes,
    Chart,
    ChartSpan,
    Link,
    Measure,
    drawn_lines,
    stacked,
)
from mcphost.console.dashboards.scales import (
    NOTHING,
    count_scale,
    duration_scale,
    duration_text,
    grouped,
)
from mcphost.console.periods import AskedPeriod
from mcphost.console.records.stages import NONE_ENDED, STAGE_WORDS, accepted_share
from mcphost.console.templatetags.console import lasted
from mcphost.listings.stages import RESPONDED, STAGES, stage_count
from mcphost.tenants.selectors import slugs

TOP = 5
SLIGHT: Final = 0.05
"""A smaller change of the number of calls is not worth a figure."""
HIGH: Final = 0.05
"""A part of errors from which on a name or a figure stands out."""
ALL_OTHERS: Final = "all others"
LATE: Final = timedelta(minutes=1)
"""Summaries that are further behind are said to be."""


_TOPS: Final = (
    ("Top tools", Dimension.TARGET, "tool"),
    ("Top clients", Dimension.CLIENT, "client"),
    ("Top callers", Dimension.CALLER, "principal"),
)
"""Each with the name of the filter in the list of calls."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number: its unit is in `value`, `detail` explains it, `change` compares it; `url` is what it
    counts: calls, or questions."""

    label: str
    value: str
    detail: str = ""
    change: str = ""
    tone: str = ""
    url: str = ""
    counts: str = "calls"


@dataclass(frozen=True, slots=True)
class Scope:
    """What some figures count: calls of a time that match filters of the list."""

    links: CallsBehind
    filters: Mapping[str, str] = field(default_factory=dict)

    def url(self, count: int, **filters: str) -> str:
        """Return the address of the calls that a figure counts; none if there are none."""
        return self.links.url(**self.filters, **filters) if count else ""

    def questions(self, count: int, **filters: str) -> str:
        """Return the address of the questions that a figure counts; none if there are none."""
        return self.links.questions_url(**self.filters, **filters) if count else ""

    def questions_link(self, **filters: str) -> Link:
        """Return the same for the figures of a chart."""
        return lambda span: self.links.within(span.at, span.until).questions_url(
            **self.filters, **filters
        )

    def link(self, **filters: str) -> Link:
        """Return the same for the figures of a chart."""
        return lambda span: self.links.within(span.at, span.until).url(**self.filters, **filters)


@dataclass(frozen=True, slots=True)
class TopRow:
    """One of the most used: its share of the calls of the period in percent, its calls, and those that failed."""

    name: str
    slug: str
    url: str
    share: str
    calls: str
    errors: str
    errors_url: str
    high: bool


@dataclass(frozen=True, slots=True)
class TopList:
    """The most used tools, clients or callers."""

    title: str
    rows: Sequence[TopRow]


@dataclass(frozen=True, slots=True)
class Panel:
    """What a page shows of a period."""

    tiles: Sequence[Tile]
    charts: Sequence[Chart]
    tops: Sequence[TopList]
    late: timedelta | None

    @property
    def empty(self) -> bool:
        """Whether there was no call."""
        return self.tiles[0].value == "0"


def panel(
    tenants: frozenset[UUID] | None, period_choice: AskedPeriod, now: datetime, lists: RecordLists
) -> Panel:
    """Return the numbers of tenants over a period; None means all. `lists` are those of their calls and questions, if any."""
    period = period_choice.period
    links = CallsBehind.of(lists, period, now)
    total = summaries.totals(tenants, period, now)
    points = summaries.series(tenants, period, now)
    lag = summaries.lag()
    return Panel(
        tiles=tuple(tiles(total, _before(tenants, period, now), Scope(links))),
        charts=charts(points, total, links),
        tops=tuple(_tops(tenants, total, period, now)),
        late=lag if lag is not None and lag > LATE else None,
    )


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the number of calls is compared with: `words` name the time."""

    calls: int
    words: str


def _before(tenants: frozenset[UUID] | None, period: AnyPeriod, now: datetime) -> Earlier | None:
    """Return the calls of the period before; None for an own period, before which less may be kept."""
    if not isinstance(period, Period):
        return None
    calls = summaries.totals(tenants, period, now - period.length).calls
    return Earlier(calls, f"{period.value[:-1]} {period.value[-1]}")


def tiles(total: CallNumbers, before: Earlier | None, scope: Scope) -> Iterator[Tile]:
    """Yield the numbers of a period, compared with the period before it."""
    calls = scope.url(total.calls)
    yield Tile("Calls", grouped(total.calls), *_change(total.calls, before), url=calls)
    yield Tile(
        "Errors",
        grouped(total.errors),
        f"{error_rate(total)} of calls" if total.calls else "",
        tone="bad" if total.errors > HIGH * total.calls else "",
        url=scope.url(total.errors, outcome=ERROR),
    )
    yield Tile(
        "Turned down",
        grouped(total.declined),
        "by a person, not an error",
        url=scope.url(total.declined, outcome=DECLINED),
    )
    slow = f"p95 {latency(total.p95_us)}" if total.p95_us is not None else "no calls"
    yield Tile("Server time p50", latency(total.p50_us), slow, url=calls)
    share, still_open = accepted_share(total.input_requests, total.endings), ended(total, "open")
    parts = [] if share == NONE_ENDED else [f"{share} accepted"]
    parts += [f"{grouped(still_open)} open"] if still_open else []
    yield Tile(
        "Questions",
        grouped(total.input_requests),
        ", ".join(parts) or "none asked",
        url=scope.questions(total.input_requests),
        counts="questions",
    )
    slow = f"p95 {people_took(total.p95_answer_ms)}"
    has_answers = total.p95_answer_ms is not None
    yield Tile(
        "Time to answer p50",
        people_took(total.p50_answer_ms),
        slow if has_answers else "no answers",
        url=scope.questions(int(has_answers), state=RESPONDED),
        counts="questions",
    )


def charts(points: Sequence[Point], total: CallNumbers, links: CallsBehind) -> tuple[Chart, ...]:
    """Return the charts of a period."""
    numbers = [point.numbers for point in points]
    spans = [ChartSpan(point.at, point.until) for point in points]
    return (
        calls_chart(spans, numbers, total, Scope(links)),
        latency_chart(spans, numbers, total, Scope(links)),
        requests_chart(spans, numbers, total, Scope(links)),
        people_chart(spans, numbers, total, Scope(links)),
    )


def calls_chart(
    spans: Sequence[ChartSpan], numbers: Sequence[CallNumbers], total: CallNumbers, scope: Scope
) -> Chart:
    """Return the chart of calls: those that failed below those that were turned down, and those below the others."""
    failed = ("bad", "Errors", ERROR, [counts.errors for counts in numbers], total.errors)
    declined = (
        "declined",
        "Turned down",
        DECLINED,
        [counts.declined for counts in numbers],
        total.declined,
    )
    good = [counts.calls - counts.errors - counts.declined for counts in numbers]
    rest = ("accent", "Without error", NO_ERROR, good, total.calls - total.errors - total.declined)
    parts = (failed, declined, rest) if total.declined else (failed, rest)
    return stacked(
        Axes("calls", "Calls", spans, count_scale, _count, scope.link()),
        [
            Measure(
                tone,
                label,
                values,
                grouped(count),
                link=scope.link(outcome=outcome),
                total_url=scope.url(count, outcome=outcome),
            )
            for tone, label, outcome, values, count in parts
        ],
    )


def latency_chart(
    spans: Sequence[ChartSpan], numbers: Sequence[CallNumbers], total: CallNumbers, scope: Scope
) -> Chart:
    """Return the chart of the server time of calls."""
    slow = [_seconds(counts.p95_us, 1e6) for counts in numbers]
    usual = [_seconds(counts.p50_us, 1e6) for counts in numbers]
    return drawn_lines(
        Axes("latency", "Server time", spans, duration_scale, duration_text, scope.link()),
        (
            Measure("strong", "p95", slow, latency(total.p95_us), scope.link()),
            Measure("soft", "p50", usual, latency(total.p50_us), scope.link()),
        ),
    )


def people_chart(
    spans: Sequence[ChartSpan], numbers: Sequence[CallNumbers], total: CallNumbers, scope: Scope
) -> Chart:
    """Return the chart of the time until a person answered."""
    slow = [_seconds(counts.p95_answer_ms, 1e3) for counts in numbers]
    usual = [_seconds(counts.p50_answer_ms, 1e3) for counts in numbers]
    answered = scope.questions_link(state=RESPONDED)
    return drawn_lines(
        Axes("people", "Time to answer", spans, duration_scale, duration_text, answered),
        (
            Measure("strong", "p95", slow, people_took(total.p95_answer_ms), answered),
            Measure("soft", "p50", usual, people_took(total.p50_answer_ms), answered),
        ),
    )


def requests_chart(
    spans: Sequence[ChartSpan], numbers: Sequence[CallNumbers], total: CallNumbers, scope: Scope
) -> Chart:
    """Return the chart of questions by how they ended, without what did not occur."""
    measures = (
        Measure(
            stage,
            STAGE_WORDS[stage].capitalize(),
            [ended(counts, stage) for counts in numbers],
            grouped(ended(total, stage)),
            link=scope.questions_link(state=stage),
            total_url=scope.questions(ended(total, stage), state=stage),
        )
        for stage in STAGES
    )
    occurred = [measure for measure in measures if any(measure.values)]
    return stacked(
        Axes("requests", "Questions", spans, count_scale, _count, scope.questions_link()), occurred
    )


def ended(numbers: CallNumbers, stage: str) -> int:
    """Return how many input requests ended in this way."""
    return stage_count(numbers.endings, stage)


def error_rate(numbers: CallNumbers) -> str:
    """Return the part of the calls that failed."""
    return percent(numbers.errors, numbers.calls)


def latency(microseconds: int | None) -> str:
    """Return a server time in the unit that suits it, to two digits: it is known within 5%."""
    return NOTHING if microseconds is None else duration_text(float(f"{microseconds / 1e6:.2g}"))


def people_took(milliseconds: int | None) -> str:
    """Return how long a person took."""
    return NOTHING if milliseconds is None else lasted(milliseconds / 1e3)


def _tops(
    tenants: frozenset[UUID] | None, total: CallNumbers, period: AnyPeriod, now: datetime
) -> Iterator[TopList]:
    rankings = [summaries.top(tenants, by, period, now, TOP) for _, by, _ in _TOPS]
    slug_by_tenant = slugs(row.tenant for ranked in rankings for row in ranked)
    links = CallsBehind.of(NO_LISTS, period, now)
    for (title, _, name), ranked in zip(_TOPS, rankings, strict=True):
        yield TopList(title, [_top_row(row, slug_by_tenant, name, total, links) for row in ranked])


def _top_row(
    ranked: Ranked,
    slug_by_tenant: Mapping[UUID | None, str],
    name: str,
    total: CallNumbers,
    links: CallsBehind,
) -> TopRow:
    slug = slug_by_tenant.get(ranked.tenant, "")
    is_filter = not ranked.is_other  # all others are no filter
    scope = Scope(
        links.of_tenant(slug if is_filter else ""),
        {name: ranked.name if name == "tool" else whole(ranked.name)},
    )
    return TopRow(
        name=ALL_OTHERS if ranked.is_other else ranked.name,
        slug=slug,
        url=scope.url(ranked.calls),
        share=f"{ranked.calls / max(total.calls, 1) * 100:.2f}%",
        calls=grouped(ranked.calls),
        errors=f"{percent(ranked.errors, ranked.calls)} errors" if ranked.errors else "",
        errors_url=scope.url(ranked.errors, outcome=ERROR),
        high=ranked.errors > HIGH * ranked.calls,
    )


def _change(calls: int, before: Earlier | None) -> tuple[str, str]:
    """Return what the number of calls is compared with, and how much it has changed."""
    if before is None or not before.calls:
        return "", ""
    change = (calls - before.calls) / before.calls
    if abs(change) < SLIGHT:
        return f"as in the {before.words} before", ""
    sign, size = ("+" if change > 0 else "\u2212"), f"{abs(change):,.0%}"
    return f"vs {before.words} before", f"{sign}{size}"


def percent(part: int, whole: int) -> str:
    """Return a share in percent; a dash if there is no whole."""
    if not whole:
        return NOTHING
    share = part / whole * 100
    if 0 < share < 0.1:
        return "less than 0.1%"
    return f"{share:.1f}%" if 0 < share < 10 else f"{share:.0f}%"


def _count(value: float) -> str:
    return grouped(round(value))


def _seconds(value: int | None, size: float) -> float | None:
    return None if value is None else value / size
