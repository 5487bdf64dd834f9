"""Tests of the search in questions and answers: what it finds and reads, one at a time, and its record."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.services import erase_payload
from mcphost.console.models import QuestionSearch
from mcphost.console.records import question_searches
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.audit.recorded_calls import MINUTE, Story
from tests.cast import ACTOR
from tests.console.tenant_data import Things, told

PAGE = "/admin/t/acme/input-requests/search/"
PART = f"{PAGE}part/"

pytestmark = pytest.mark.django_db


def asked(things: Things, message: str, reply: str, tool: str = "refund") -> Story:
    story = Story.of(things.tenant, tool, at=timezone.now() - 5 * MINUTE).play("start")
    story.question("q", {"message": message})
    story.end("input_required", asked=["q"], sealed_by="k1", expires_at=story.at.isoformat())
    story.back().answer("q", payload={"action": "accept", "content": {"why": reply}})
    story.end()
    told(story)
    return story


def search(client: Client, words: str, query: str = "", **fields: str) -> dict[str, Any]:
    response = client.post(f"{PART}?{query}", {"words": words, **fields})
    part: dict[str, Any] = {"status": response.status_code, **response.json()}
    return part


def test_words_are_found_in_questions_and_in_answers_in_any_case(auditor, acme, globex):
    asked(acme, "Refund order 4711?", "The box was WET")
    asked(acme, "Refund order 4712?", "lost", tool="other")
    asked(globex, "Refund order 4713?", "wet too")
    found = search(auditor, "wet")
    assert (found["searched"], found["next"], len(found["rows"])) == (2, None, 1)
    assert "Refund order 4711?" in found["rows"][0]
    assert "why: The box was WET" in found["rows"][0]
    assert len(search(auditor, "refund ORDER")["rows"]) == 2
    assert len(search(auditor, "refund", "tool=other")["rows"]) == 1
    assert search(auditor, "4711 lost")["rows"] == []
    assert search(auditor, "4713")["rows"] == []
    assert search(auditor, "  ")["status"] == 400
    assert search(auditor, "wet", "state=nonsense")["status"] == 400


def test_a_search_leaves_one_entry_whose_words_only_auditors_read(
    auditor, operator, acme, monkeypatch
) -> None:
    monkeypatch.setattr(question_searches, "AT_ONCE", 1)
    monkeypatch.setattr(question_searches, "PART_SECONDS", 0)
    for number in range(3):
        asked(acme, f"Refund {number}?", "wet")
    parts = [search(auditor, "Refund 0?", "tool=refund")]
    while following := parts[-1]["next"]:
        parts.append(search(auditor, "Refund 0?", "tool=refund", next=following))
    assert [part["searched"] for part in parts] == [1, 2, 3]
    assert [len(part["rows"]) for part in parts] == [0, 0, 1]
    assert parts[0]["at"] > parts[1]["at"]
    entry = Entry.objects.get(action="questions.searched")
    assert (entry.facts, entry.actor_label) == ({"tool": "refund"}, "auditor")
    payload = f"/admin/t/acme/payloads/{entry.id}/"
    assert f'href="{payload}"' in auditor.get("/admin/t/acme/audit-log/").content.decode()
    assert "Refund 0?" in auditor.get(payload).content.decode()
    assert operator.get(payload).status_code == 403
    log = operator.get("/admin/t/acme/audit-log/").content.decode()
    assert payload not in log
    assert "Questions searched" in log
    assert "Refund 0?" not in log


def test_only_auditors_search(operator: Client, owner: Client, staff: Client, acme: Things) -> None:
    asked(acme, "Refund?", "wet")
    for client in (operator, owner, staff):
        assert client.get(PAGE).status_code == 403
        assert client.post(PART, {"words": "wet"}).status_code == 403
    assert not Entry.objects.filter(action="questions.searched").exists()


def test_a_part_goes_on_only_with_the_words_filter_and_auditor_that_began_it(
    auditor, acme, cast, browse, monkeypatch
) -> None:
    monkeypatch.setattr(question_searches, "AT_ONCE", 1)
    monkeypatch.setattr(question_searches, "PART_SECONDS", 0)
    for number in range(3):
        asked(acme, f"Refund {number}?", "wet")
    following = search(auditor, "harmless")["next"]
    assert search(auditor, "other words", next=following)["status"] == 400
    assert search(auditor, "harmless", "tool=refund", next=following)["status"] == 400
    assert search(auditor, "harmless", next="forged")["status"] == 400
    set_member(acme.tenant, cast.operator.user, Role.AUDITOR, actor=ACTOR)
    assert search(browse(cast.operator), "harmless", next=following)["status"] == 400
    assert search(auditor, "harmless", next=following)["status"] == 200
    set_member(acme.tenant, cast.auditor.user, Role.OPERATOR, actor=ACTOR)
    response = auditor.post(PART, {"words": "harmless", "next": following})
    assert response.status_code == 403


def test_an_auditor_has_one_search_at_a_time(auditor, acme, cast, monkeypatch):
    monkeypatch.setattr(question_searches, "AT_ONCE", 1)
    monkeypatch.setattr(question_searches, "PART_SECONDS", 0)
    for number in range(3):
        asked(acme, f"Refund {number}?", "wet")
    first = search(auditor, "wet")
    second = search(auditor, "box")
    ended = search(auditor, "wet", next=first["next"])
    assert (ended["status"], "busy" in ended) == (409, False)
    running = QuestionSearch.objects.filter(auditor=cast.auditor.user)
    running.update(busy_until=timezone.now() + MINUTE)
    for fields in ({"next": second["next"]}, {}):
        busy = search(auditor, "box", **fields)
        assert (busy["status"], busy.get("busy")) == (409, True)
    running.update(busy_until=timezone.now() - timedelta(seconds=1))
    assert search(auditor, "box", next=second["next"])["searched"] == 2


def test_what_was_erased_is_not_found_and_long_texts_are_shown_around_the_match(auditor, acme):
    story = asked(acme, "secret", "erased")
    erase_payload(story.made[1].id, ACTOR)
    asked(acme, f"{'x' * 500} needle", "fine")
    assert search(auditor, "secret")["rows"] == []
    assert len(search(auditor, "erased")["rows"]) == 1
    (row,) = search(auditor, "NEEDLE")["rows"]
    assert f"…{'x' * 69} needle" in row
    asked(acme, f"{'ß' * 500} splinter", "fine")
    (row,) = search(auditor, "Splinter")["rows"]
    assert f"…{'ß' * 69} splinter" in row
