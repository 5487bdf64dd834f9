"""Tests of charts: their table has the numbers that are drawn, at their places."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string

from mcphost.console.dashboards.charts import (
    Axes,
    Chart,
    ChartSpan,
    Measure,
    Value,
    drawn_lines,
    stacked,
)
from mcphost.console.dashboards.scales import (
    count_scale,
    grouped,
)
from mcphost.listings.stages import STAGES

START = datetime(2026, 5, 4, 22, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def axes(count: int) -> Axes:
    spans = [ChartSpan(START + HOUR * each, START + HOUR * (each + 1)) for each in range(count)]
    return Axes("calls", "Calls", spans, count_scale, lambda value: grouped(round(value)))


def bars(*rows: Sequence[Value]) -> Chart:
    tones = ("bad", "accent")
    measures = [Measure(tones[place], f"row {place}", row) for place, row in enumerate(rows)]
    return stacked(axes(len(rows[0])), measures)


def lines(*values: Value) -> Chart:
    return drawn_lines(axes(len(values)), [Measure("strong", "p95", values)])


def test_the_table_of_a_chart_has_the_numbers_of_its_bars() -> None:
    chart = bars([1, 0, 4], [3, 2, 1234])
    assert [[cell.text for cell in row.cells] for row in chart.rows] == [
        ["1", "3"],
        ["0", "2"],
        ["4", "1,234"],
    ]
    assert [row.span.text for row in chart.rows] == [
        "Mon 04 May, 22:00 to 23:00",
        "Mon 04 May, 23:00 to 00:00",
        "Tue 05 May, 00:00 to 01:00",
    ]
    drawn = render_to_string("console/dashboards/chart.html", {"chart": chart})
    assert drawn.count("<title>") == drawn.count("<tr><td") == 3
    assert 'role="group" aria-label="Calls. ' in drawn
    for row in chart.rows:
        assert f"<title>{row.text}</title>" in drawn


def test_the_first_line_of_a_chart_is_drawn_over_the_others() -> None:
    measures = [Measure("strong", "p95", [3]), Measure("soft", "p50", [1])]
    chart = drawn_lines(axes(1), measures)
    assert [line.tone for line in chart.lines] == ["soft", "strong"]
    assert [cell.label for cell in chart.rows[0].cells] == ["p95", "p50"]


@pytest.mark.parametrize("chart", [bars([0, 0]), lines(None, None), bars([])])
def test_an_empty_chart_is_replaced_by_a_sentence(chart: Chart) -> None:
    assert chart.empty
    drawn = render_to_string("console/dashboards/chart.html", {"chart": chart})
    assert "Nothing in this period." in drawn
    assert "c-plot" not in drawn
    assert "<table" not in drawn


def test_a_number_between_two_gaps_is_also_drawn_as_a_point() -> None:
    (line,) = lines(1, 2, None, 3, None).lines
    assert line.points.count("M") == 1
    assert line.path.endswith(line.points)
    drawn = render_to_string("console/dashboards/chart.html", {"chart": lines(1, 2, None, 3)})
    assert drawn.count("c-plot-points") == 1
    assert "c-plot-points" not in render_to_string(
        "console/dashboards/chart.html", {"chart": lines(1, 2)}
    )


def test_each_state_of_questions_has_one_colour_for_all_charts_and_bars() -> None:
    """Bars, charts and legends share the classes; badges share the names of the colours."""
    static = Path(settings.STATICFILES_DIRS[0]) / "console"
    tones = dict(
        re.findall(
            r"\.c-tone-(\w+) \{ --tone: var\((--tone-\w+)\); \}",
            (static / "charts.css").read_text(),
        )
    )
    assert set(tones) == set(STAGES)
    assert tones["declined"] != tones["cancelled"]
    for colours in re.findall(r"--tone-good.*", (static / "console.css").read_text()):
        assert {name for name in tones.values() if f"{name}:" in colours} == set(tones.values())
