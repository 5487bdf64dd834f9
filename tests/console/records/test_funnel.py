"""Tests of the pages of what became of input requests."""

import re
from datetime import timedelta
from html import unescape
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.audit.summaries.figures import FunnelRow
from mcphost.console.records.funnel import line
from mcphost.console.records.stages import STAGES
from tests.audit.asking import MINUTE, Story
from tests.console.things import Things, told

PAGE = "/admin/t/acme/input-requests/funnel/"

pytestmark = pytest.mark.django_db


def shown(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    page = response.content.decode()
    return re.sub(r"\s+", " ", unescape(strip_tags(page[page.index("<main") :])))


def asked(things: Things, target: str, ending: str = "") -> None:
    story = Story.of(things.tenant, target, at=timezone.now() - 5 * MINUTE)
    story.ask("colour")
    if ending:
        story.back().answer("colour", ending)
        story.end()
    told(story)


def test_each_tool_and_client_has_a_row_with_how_its_requests_ended(
    operator: Client, acme: Things, globex: Things
) -> None:
    for ending in ("accept", "accept", "decline", "cancel", ""):
        asked(acme, "deploy", ending)
    asked(acme, "rename", "accept")
    asked(globex, "canary-globex-tool", "accept")
    lines = operator.get(PAGE).context["lines"]
    assert [
        (each.row.target, each.row.asked, dict(zip(STAGES, each.counts, strict=True)))
        for each in lines
    ] == [
        (
            "deploy",
            5,
            {**dict.fromkeys(STAGES, 0), "answered": 2, "declined": 1, "cancelled": 1, "open": 1},
        ),
        ("rename", 1, {**dict.fromkeys(STAGES, 0), "answered": 1}),
    ]
    page = shown(operator, PAGE)
    assert "6 requested, 50 % accepted" in page
    assert "canary-globex" not in page


def test_the_bar_is_as_long_as_its_parts() -> None:
    endings = {"accept": 1, "received": 1, "decline": 1, "expired": 3, "lost": 1, "refused": 9}
    found = line(FunnelRow(uuid4(), "deploy", "client", 7, endings), "acme")
    assert [each.stage for each in found.segments] == ["answered", "declined", "expired", "never"]
    assert sum(each.width for each in found.segments) == pytest.approx(200, abs=0.1)
    assert found.segments[0].x == 0
    assert found.refused == 9
    assert line(FunnelRow(uuid4(), "t", "c", 0, {}), "acme").share == "none"


def test_a_request_of_a_call_that_an_operator_cancelled_has_an_ending_of_its_own(
    operator: Client, acme: Things
) -> None:
    story = Story.of(acme.tenant, "deploy", at=timezone.now() - 5 * MINUTE)
    story.ask("colour")
    told(story)
    audit.cancel_call(story.call.id, acme.tenant, "The release is off", Actor.person(7, "olga"))
    asked(acme, "deploy", "accept")
    response = operator.get(PAGE)
    assert response.context["whole"].by_stage == {
        **dict.fromkeys(STAGES, 0),
        "answered": 1,
        "stopped": 1,
    }
    page = shown(operator, PAGE)
    assert "1 cancelled by an operator" in page
    columns = [word for _, word in response.context["stages"]]
    assert columns == [
        "accepted",
        "declined",
        "cancelled",
        "expired",
        "cancelled by an operator",
        "open",
    ]
    assert "No response" not in page


def test_a_period_is_chosen_and_an_unknown_one_is_named(operator: Client, acme: Things) -> None:
    story = Story.of(acme.tenant, "old", at=timezone.now() - timedelta(days=2))
    story.ask("colour")
    told(story)
    assert "old" in shown(operator, PAGE)
    assert "No input request in this period" in shown(operator, f"{PAGE}?period=1h")
    assert "There is no period “soon”" in shown(operator, f"{PAGE}?period=soon")


def test_staff_see_all_tenants(staff: Client, acme: Things, globex: Things) -> None:
    asked(acme, "deploy", "accept")
    asked(globex, "rename", "decline")
    page = shown(staff, "/admin/input-requests/funnel/")
    for part in ("acme", "deploy", "globex", "rename", "2 requested, 50 % accepted"):
        assert part in page
