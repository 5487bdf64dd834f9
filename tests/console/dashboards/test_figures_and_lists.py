"""A figure and the list behind it use one rule: the link of every figure is followed, and its rows are counted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.call_list import ListedCall
from mcphost.audit.question_list import RecordedQuestion
from mcphost.console.dashboards.charts import Chart
from mcphost.console.dashboards.panels import Panel, Tile
from mcphost.runtime.call import Delivery
from tests.audit.recorded_calls import Story, follow, keep
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.dashboards.outcomes import record_every_outcome
from tests.console.dashboards.rows import calls as calls_of_one_round
from tests.console.tenant_data import Things

pytestmark = pytest.mark.django_db

TOOL = "canary-acme-tool"


@dataclass
class Links(HTMLParser):
    """The addresses of lists of calls with a filter, in the main part of a page."""

    found: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        url = dict(attrs).get("href") or ""
        if tag == "a" and ("/calls/?" in url or "/input-requests/?counted=" in url):
            self.found.add(url)


@dataclass(frozen=True)
class Figure:
    """A number of a page, what it counts, and its link."""

    name: str
    count: int
    url: str


def number(text: str) -> int:
    return int(text.split(" ")[0].replace(",", ""))


def of_tiles(tiles: tuple[Tile, ...]) -> Iterator[Figure]:
    counted = {tile.label: number(tile.value) for tile in tiles if "ime" not in tile.label}
    counted["Server time p50"] = counted["Calls"]
    for tile in tiles:
        if tile.label != "Time to answer p50":
            yield Figure(tile.label, counted[tile.label], tile.url)


def of_chart(chart: Chart, calls: Mapping[str, int]) -> Iterator[Figure]:
    """The legend, the bars, the columns and the table of a chart. `calls` are the numbers of calls by span, for charts that show
    none themselves."""
    is_count = chart.name in ("calls", "requests")
    for measure in chart.measures if is_count else ():
        yield Figure(f"legend of {measure.label}", number(measure.total), measure.total_url)
    for bar in chart.bars if is_count else ():
        yield Figure(f"bar {bar.text}", number(bar.text.rpartition(": ")[2]), bar.url)
    for row in chart.rows if chart.name != "people" else ():
        whole = sum(number(cell.text) for cell in row.cells) if is_count else calls[row.span.text]
        if is_count or row.box.url:
            yield Figure(f"column {row.text}", whole, row.box.url)
        for cell in row.cells if is_count else ():
            yield Figure(f"{row.span.text}, {cell.label}", number(cell.text), cell.url)


def of_panel(panel: Panel) -> Iterator[Figure]:
    yield from of_tiles(tuple(panel.tiles))
    by_name = {chart.name: chart for chart in panel.charts}
    assert set(by_name) == {"calls", "latency", "requests", "people"}
    spans = {
        name: {
            row.span.text: sum(number(cell.text) for cell in row.cells)
            for row in by_name[name].rows
        }
        for name in ("calls", "requests")
    }
    for chart in panel.charts:
        yield from of_chart(chart, spans["calls"])
    for top in panel.tops:
        for row in top.rows:
            yield Figure(f"{top.title}: {row.name}", number(row.calls), row.url)


def questions(client: Client, url: str) -> list[RecordedQuestion]:
    """The questions of a list, of all its pages."""
    listed: list[RecordedQuestion] = []
    parts = urlsplit(url)
    query = parts.query
    while True:
        context = client.get(f"{parts.path}?{query}").context
        assert context["record_filter"].unknown == ()
        listed += [row.question for row in context["rows"]]
        query = context["older"]
        if not query:
            return listed


def rows(client: Client, url: str) -> list[ListedCall]:
    """The calls of a list, of all its pages."""
    calls, parts = [], urlsplit(url)
    query = parts.query
    while True:
        context = client.get(f"{parts.path}?{query}").context
        assert context["record_filter"].unknown == ()
        calls += [call for call, _ in context["calls"]]
        query = context["older"]
        if not query:
            return calls


def check(client: Client, figure: Figure) -> None:
    assert bool(figure.url) == bool(figure.count), figure
    listed: list[Any] = []
    if figure.url:
        of_questions = "/input-requests/?" in figure.url
        listed = [*(questions if of_questions else rows)(client, figure.url)]
    assert len(listed) == figure.count, figure


def check_page(client: Client, page: Any, figures: list[Figure]) -> None:
    """Follow the links of figures; the page has no other links to filtered lists."""
    for figure in figures:
        check(client, figure)
    links = Links()
    links.feed(page.content.decode())
    others = {
        url for url in links.found - {figure.url for figure in figures} if "state=" not in url
    }
    assert not others


def check_times(client: Client, panel: Panel) -> None:
    """The time to answer leads to all questions that were answered, and to no other."""
    by_label = {tile.label: tile for tile in panel.tiles}
    asked = {row.id: row.took_ms for row in questions(client, by_label["Questions"].url)}
    answered = {row.id for row in questions(client, by_label["Time to answer p50"].url)}
    assert answered == {id for id, took_ms in asked.items() if took_ms is not None}


@pytest.fixture
def recorded(cast: Cast, acme: Things, globex: Things) -> int:
    record_every_outcome(cast.globex.id, "canary-globex-tool")
    counted = record_every_outcome(cast.acme.id, TOOL)
    follow()
    return counted


@pytest.mark.parametrize(
    ("who", "path", "period"),
    [
        ("auditor", "/admin/t/acme/", "1h"),
        ("auditor", "/admin/", "7d"),
        ("staff", "/admin/", "24h"),
    ],
)
@pytest.mark.usefixtures("recorded")
def test_each_figure_of_a_dashboard_leads_to_exactly_its_calls(
    cast: Cast, browse: Browser, who: str, path: str, period: str
) -> None:
    client = browse(getattr(cast, who))
    page = client.get(f"{path}?period={period}")
    panel, lines = page.context["panel"], page.context["hands"]
    figures = list(of_panel(panel))
    errors = [row for top in panel.tops for row in top.rows if row.errors]
    assert errors
    for row in errors:
        failed = rows(client, row.errors_url)
        assert {call.entry.outcome for call in failed} <= {call.state for call in failed}
        share = 100 * len(failed) / number(row.calls)
        assert row.errors in (f"{share:.0f}% errors", f"{share:.1f}% errors")
        figures.append(Figure(row.name, len(failed), row.errors_url))
    figures += [
        Figure(hand.about, len(rows(client, hand.url)), hand.url)
        for hand in lines
        if "/calls/?" in hand.url
    ]
    check_page(client, page, figures)
    check_times(client, panel)


OWN_PERIODS = {
    "minutes": (timedelta(minutes=9), timedelta(minutes=5)),
    "until now": (timedelta(hours=6), None),
    "days": (timedelta(days=3), timedelta(days=1)),
}
"""How long ago each begins and ends."""


def own_period(name: str) -> str:
    """The query of a period from one time to another, in a zone that is not that of the record."""
    now, zone = timezone.now(), "Asia/Kolkata"
    ends = {"since": OWN_PERIODS[name][0], "until": OWN_PERIODS[name][1]}
    texts = {
        field: (now - ago).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M")
        for field, ago in ends.items()
        if ago is not None
    }
    return urlencode({**texts, "zone": zone})


@pytest.mark.parametrize("name", OWN_PERIODS)
@pytest.mark.parametrize(("who", "path"), [("auditor", "/admin/t/acme/"), ("staff", "/admin/")])
@pytest.mark.usefixtures("recorded")
def test_each_figure_of_an_own_period_leads_to_exactly_its_calls(
    cast: Cast, browse: Browser, who: str, path: str, name: str
) -> None:
    client = browse(getattr(cast, who))
    page = client.get(f"{path}?{own_period(name)}")
    assert page.context["period_choice"].is_own
    figures = list(of_panel(page.context["panel"]))
    assert figures[0].count
    for figure in figures:
        check(client, figure)
    check_times(client, page.context["panel"])


@pytest.mark.parametrize("period", ["period=1h", "period=7d", *OWN_PERIODS])
def test_each_figure_of_a_tool_leads_to_exactly_its_calls(
    auditor: Client, acme: Things, recorded: int, period: str
) -> None:
    query = own_period(period) if period in OWN_PERIODS else period
    page = auditor.get(f"/admin/t/acme/tools/{acme.tool}/?{query}")
    use = page.context["use"]
    figures = [*of_tiles(tuple(use.tiles)), *of_chart(use.chart, {})]
    figures += [Figure(line.row.client, line.row.input_requests, url) for line, url in use.lines]
    assert 0 < figures[0].count < recorded
    figures.append(Figure("its calls", figures[0].count, use.url))
    check_page(auditor, page, figures)


@pytest.mark.usefixtures("recorded")
def test_the_figures_of_the_list_of_tools_lead_to_exactly_their_calls(auditor: Client) -> None:
    page = auditor.get("/admin/t/acme/tools/")
    uses = [use for use in page.context["uses"].values() if use.url]
    assert uses
    figures = [Figure("calls", number(use.calls), use.url) for use in uses]
    figures += [Figure("errors", number(use.errors), use.errors_url) for use in uses]
    check_page(auditor, page, figures)


@pytest.mark.usefixtures("recorded")
def test_lines_about_errors_and_open_input_requests_lead_to_exactly_those(
    cast: Cast, auditor: Client
) -> None:
    """The number in the sentence is that of the list."""
    calls_of_one_round(cast.acme.id, 12, target="spiking", outcome="timed_out")
    calls_of_one_round(cast.acme.id, 20, target="spiking")
    now = timezone.now()
    for number_of in range(5):
        delivery = Delivery.PLAYGROUND if number_of == 4 else Delivery.MODERN
        story = Story.of(cast.acme.id, "soon", at=now, delivery=delivery)
        story.expires = timedelta(minutes=5)
        keep(story.play("ask a b" if number_of else "ask a"))
    hands = auditor.get("/admin/t/acme/").context["hands"]
    errors, questions = (hand for hand in hands if "/?" in hand.url)
    assert parse_qs(urlsplit(errors.url).query)["made_by"] == ["clients"]
    assert errors.text.startswith(f"failed in {len(rows(auditor, errors.url))} of ")
    open_rows = auditor.get(questions.url).context["rows"]
    assert questions.text.startswith(f"In all, {len(open_rows)} open questions")


@pytest.mark.usefixtures("recorded")
def test_numbers_of_tools_lead_to_the_tools_in_that_state(owner: Client, cast: Cast) -> None:
    page = owner.get("/admin/t/acme/")
    for count in page.context["counts"]:
        listing = f"/admin/t/acme/{count.words.plural.split(' ')[-1]}/"
        for state in ("published", "draft", "disabled"):
            number_of = getattr(count, state)
            if number_of or state == "published":
                assert f'href="{listing}?state={state}"' in page.content.decode()
                assert len(owner.get(f"{listing}?state={state}").context["rows"]) == number_of
