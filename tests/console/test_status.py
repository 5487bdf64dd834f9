"""The status page: for staff only, also with hostile names of processes."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from mcphost.feed import nodes
from mcphost.feed.models import Node
from mcphost.feed.nodes import ALIVE, Heartbeat
from mcphost.vault.services import ensure_ring

pytestmark = pytest.mark.django_db

PAGE = "/admin/status/"
JSON = "/admin/status.json"
HOSTILE = "<script>alert(1)</script>`<b>`\u202e\"'{{ 7 }}{% now 'Y' %}"


@pytest.fixture(autouse=True)
def _together(settings: Settings) -> None:
    """As where several processes serve, none of which has a heartbeat yet."""
    settings.MCPHOST_ALONE = False
    ensure_ring()


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Heartbeat, Heartbeat]]:
    """Two processes with heartbeats, the second with a hostile name."""
    made = Heartbeat(), Heartbeat()
    facts = {"role": "server", "version": "1.0", "tasks": {"takes": True}}
    for each in made:
        each.report = lambda: facts
        each.beat()
    Node.objects.filter(id=made[1].id).update(name=HOSTILE)
    yield made


def text(client: Client) -> str:
    response = client.get(PAGE)
    assert response.status_code == 200
    return response.content.decode()


def test_the_status_page_reports_two_healthy_processes(
    staff: Client, two: tuple[Heartbeat, Heartbeat]
) -> None:
    shown = text(staff)
    assert "All is well." in shown
    assert "2 serving" in shown
    assert shown.count(">serving</span>") == 2
    assert ">problem</span>" not in shown
    assert 'id="live" class="c-live" data-live' in shown
    content = shown[shown.index('<div id="live"') : shown.rindex("</table>")]
    assert not re.findall(r"<script|\son\w+=|style=", content)
    assert staff.post(PAGE).status_code == staff.post(JSON).status_code == 405
    found = staff.get(JSON)
    assert (found.status_code, found["Content-Type"]) == (200, "application/json")
    assert "no-store" in found["Cache-Control"]
    assert json.loads(found.content)["status"] == "ok"


def test_a_killed_process_is_shown_as_gone_with_advice(staff, two):
    late = timezone.now() - ALIVE - timedelta(seconds=5)
    Node.objects.filter(id=two[0].id).update(seen_at=late)
    shown = text(staff)
    assert "No heartbeat from" in shown
    assert "Look at the log" in shown
    assert ">gone</span>" in shown
    found = staff.get(JSON)
    assert found.status_code == 503
    states = {each["name"]: each["state"] for each in json.loads(found.content)["processes"]}
    assert states == {nodes.own(late).name: "gone", HOSTILE: "serves"}


def test_hostile_names_and_facts_of_processes_are_escaped(
    staff: Client, two: tuple[Heartbeat, Heartbeat]
):
    facts = {
        "version": HOSTILE,
        "key": HOSTILE,
        "requests": HOSTILE,
        "problems": {HOSTILE: HOSTILE},
    }
    Node.objects.filter(id=two[1].id).update(facts=facts)
    shown = text(staff)
    assert "<script>alert" not in shown
    assert "<b>`" not in shown
    assert unescape(shown).count(HOSTILE.replace("\u202e", "⟨U+202E⟩")) >= 4
    assert json.loads(staff.get(JSON).content)["processes"][1]["facts"] == facts
