"""Tests of the numbers of single tools, prompts and resources."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.console.dashboards.uses import Use
from tests.cast import Cast
from tests.console.dashboards.rows import calls

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]

TOOL = "canary-acme-tool"


def use_of(client: Client, path: str, name: str) -> Use:
    context = client.get(path).context
    row = next(row for row, _, _ in context["rows"] if row.name == name)
    found: Use = context["uses"][row.id]
    return found


def test_the_tool_list_shows_the_numbers_of_the_last_seven_days(cast: Cast, owner: Client) -> None:
    calls(cast.acme.id, 9, target=TOOL, ago=timedelta(days=2))
    calls(cast.acme.id, 1, target=TOOL, outcome="tool_error", ago=timedelta(days=1))
    calls(cast.acme.id, 5, target=TOOL, ago=timedelta(days=12))
    calls(cast.globex.id, 7, target=TOOL)
    use = use_of(owner, "/admin/t/acme/tools/", TOOL)
    # One call is of the things themselves.
    assert (use.calls, use.errors, use.high) == ("11", "1 (9.1%)", True)
    assert use.last_at is not None
    assert timezone.now() - use.last_at < timedelta(minutes=5)
    assert len(owner.get(use.url).context["calls"]) == 11


def test_prompts_and_resources_have_usage_numbers_and_templates_have_none(cast, acme, owner):
    calls(cast.acme.id, 2, target="canary-acme-prompt", method="prompts/get")
    calls(cast.acme.id, 3, target="docs://canary-acme", method="resources/read")
    assert use_of(owner, "/admin/t/acme/prompts/", "canary-acme-prompt").calls == "2"
    assert use_of(owner, "/admin/t/acme/resources/", "canary-acme-resource").calls == "3"
    templates = owner.get("/admin/t/acme/templates/")
    assert templates.context["uses"] is None
    assert "Last use" not in templates.content.decode()
    assert owner.get(f"/admin/t/acme/templates/{acme.template}/").context["use"] is None


def test_the_page_of_a_tool_has_numbers_per_period_and_a_chart(cast, acme, auditor):
    calls(cast.acme.id, 3, target=TOOL, ago=timedelta(hours=30))
    calls(cast.acme.id, 2, target=TOOL, outcome="tool_error", ago=timedelta(hours=60))
    calls(cast.acme.id, 40, target="other")
    path = f"/admin/t/acme/tools/{acme.tool}/"
    # One call is of the things themselves.
    for period, expected in (("1h", "1"), ("24h", "1"), ("7d", "6"), ("30d", "6")):
        use = auditor.get(f"{path}?period={period}").context["use"]
        assert use.tiles[0].value == expected
        assert len(auditor.get(use.url).context["calls"]) == int(expected)
    page = auditor.get(f"{path}?period=7d")
    chart = page.context["use"].chart
    totals = [(measure.label, measure.total) for measure in chart.measures]
    assert totals == [("Errors", "2"), ("Without error", "4")]
    cells = [{cell.label: cell.text for cell in row.cells} for row in chart.rows]
    assert sum(int(each["Without error"]) for each in cells) == 4
    assert sum(int(each["Errors"]) for each in cells) == 2
    assert 'aria-label="Numbers of Calls"' in page.content.decode()
    assert "There is no period “never”." in auditor.get(f"{path}?period=never").content.decode()
