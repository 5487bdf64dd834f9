"""Tests of the numbers on dashboards: they are those of the rows that the user may read."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.console.dashboards.panels import Panel
from tests.audit.recorded_calls import Story, keep
from tests.cast import Cast
from tests.console.dashboards.rows import calls, queries

pytestmark = pytest.mark.django_db


def panel(client: Client, path: str = "/admin/t/acme/") -> Panel:
    found: Panel = client.get(path).context["panel"]
    return found


def values(shown: Panel) -> dict[str, str]:
    return {tile.label: tile.value for tile in shown.tiles}


def column(shown: Panel, title: str, label: str) -> list[Any]:
    chart = next(each for each in shown.charts if each.title == title)
    return list(next(each.values for each in chart.measures if each.label == label))


def asked(cast: Cast, outcome: str = "accept", *, seconds: float = 12.0) -> None:
    story = Story.of(cast.acme.id, "refund", at=timezone.now() - timedelta(minutes=5))
    story.ask("approve")
    story.back().answer("approve", outcome, seconds=seconds)
    story.end()
    keep(story)


def test_the_share_of_accepted_questions_is_that_of_the_funnel(cast: Cast, owner: Client) -> None:
    def detail() -> str:
        return next(tile.detail for tile in panel(owner).tiles if tile.label == "Questions")

    waits = Story.of(cast.acme.id, "refund", at=timezone.now() - timedelta(minutes=5))
    waits.ask("approve")
    keep(waits)
    assert detail() == "1 open"
    for outcome in ("accept", "accept", "decline"):
        asked(cast, outcome)
    assert detail() == "67% accepted, 1 open"
    funnel = owner.get("/admin/t/acme/input-requests/funnel/").content.decode()
    assert "4 asked, 67% accepted of those that ended" in funnel


def test_the_dashboard_numbers_match_the_recorded_calls(cast: Cast, owner: Client) -> None:
    calls(cast.acme.id, 7)
    calls(cast.acme.id, 3, outcome="tool_error", duration_us=900_000)
    calls(cast.globex.id, 50)
    asked(cast)
    asked(cast, "decline")
    shown = panel(owner)
    numbers = values(shown)
    assert (numbers["Calls"], numbers["Errors"]) == ("12", "3")
    assert numbers["Server time p50"] == "19 ms"  # known within 5%
    assert numbers["Questions"] == "2"
    assert numbers["Time to answer p50"].startswith("12")
    assert sum(column(shown, "Calls", "Errors")) == 3
    assert sum(column(shown, "Calls", "Without error")) == 9
    assert sum(column(shown, "Questions", "Accepted")) == 1
    assert sum(column(shown, "Questions", "Declined")) == 1
    tops = {each.title: [(row.name, row.calls) for row in each.rows] for each in shown.tops}
    assert tops["Top tools"] == [("search", "10"), ("refund", "2")]
    assert tops["Top clients"][0] == ("claude-code", "10")
    assert tops["Top callers"][0] == ("olga (laptop)", "10")


@pytest.mark.parametrize(
    ("period", "expected", "points"),
    [("1h", "1", 60), ("24h", "3", 24), ("7d", "6", 42), ("30d", "10", 30)],
)
def test_the_period_is_read_from_the_url(cast, owner, period, expected, points):
    for count, ago in ((1, 0), (2, 5), (3, 50), (4, 400), (5, 1000)):
        calls(cast.acme.id, count, ago=timedelta(hours=ago))
    page = owner.get(f"/admin/t/acme/?period={period}")
    assert values(page.context["panel"])["Calls"] == expected
    assert len(page.context["panel"].charts[0].rows) == points
    assert f'<a href="?period={period}" aria-current="true">{period}</a>' in page.content.decode()
    unknown = owner.get("/admin/t/acme/", {"period": "<b>9y\u202e"}).content.decode()
    said = "There is no period “&lt;b&gt;9y⟨U+202E⟩”. The figures are of the last 24 hours."
    assert said in unknown


@pytest.mark.parametrize(
    ("who", "expected"), [("owner", "2"), ("auditor", "2"), ("staff", "7"), ("stranger", "5")]
)
def test_the_dashboard_counts_only_what_the_user_may_read(cast, browse, who, expected):
    calls(cast.acme.id, 2, target="of-acme")
    calls(cast.globex.id, 5, target="of-globex")
    page = browse(getattr(cast, who)).get("/admin/")
    assert values(page.context["panel"])["Calls"] == expected
    foreign = {"owner": "of-globex", "auditor": "of-globex", "stranger": "of-acme"}.get(who)
    assert foreign is None or foreign not in page.content.decode()


def test_each_entry_of_the_top_lists_links_to_its_calls(cast: Cast, owner: Client) -> None:
    calls(cast.acme.id, 3, target="a&b=c", client_name="x y", actor_label="olga (laptop)")
    calls(cast.acme.id, 1, target="other", client_name="z", actor_label="ben")
    for top in panel(owner).tops:
        assert len(owner.get(top.rows[0].url).context["calls"]) == 3


@pytest.mark.parametrize("path", ["/admin/", "/admin/t/acme/"])
@pytest.mark.django_db(transaction=True)  # entries of an open transaction are read again each time
def test_the_number_of_queries_does_not_grow_with_the_rows(cast, acme, staff, path):
    def fill(number: int) -> None:
        for each in range(number):
            calls(cast.acme.id, 2, target=f"tool-{each}", client_name=f"client-{each}")
            calls(cast.acme.id, 12, target=f"tool-{each}", outcome="tool_error")
            asked(cast)

    fill(9)
    before = queries(staff, path)
    fill(30)
    assert queries(staff, path) <= before
