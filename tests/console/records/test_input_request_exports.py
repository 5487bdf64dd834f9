"""Tests of exports of questions: who gets their texts, the filter, and other tenants."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.services import erase_payload
from mcphost.console.records import exports
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.audit.recorded_calls import MINUTE, Story
from tests.cast import ACTOR
from tests.console.tenant_data import Things, told

PAGE = "/admin/t/acme/input-requests/"
JSONL = f"{PAGE}export.jsonl"

pytestmark = pytest.mark.django_db


def objects(client: Client, url: str = JSONL) -> list[dict[str, Any]]:
    response = client.get(url)
    assert response.status_code == 200, url
    return [json.loads(line) for line in response.content.decode().splitlines()]


def asked(things: Things, tool: str, *keys: str) -> Story:
    story = Story.of(things.tenant, tool, at=timezone.now() - 5 * MINUTE)
    story.play(f"start; ask {' '.join(keys)}; back; answer {keys[0]}; end")
    told(story)
    return story


def test_an_auditor_exports_questions_with_answers_times_token_and_call(auditor, acme):
    story = asked(acme, "refund", "approve")
    row, end = objects(auditor)
    assert end == {"end": {"questions": 1, "complete": True, "after": None}}
    assert (row["question"], row["answer"]) == ("Which approve?", "approve: x")
    assert (row["tool"], row["version"], row["token"]) == ("refund", "3", "tok_1")
    assert (row["state"], row["evidence"], row["seconds"]) == ("accept", "client-asserted", 61.5)
    assert (row["call"], row["call_outcome"]) == (str(story.call.id), "complete")
    assert row["answered_at"] > row["at"]
    entry = Entry.objects.get(action="questions.exported")
    assert entry.facts == {
        "format": "jsonl",
        "texts": True,
        "questions": 1,
        "complete": True,
        "after": None,
    }


def test_operators_and_staff_export_no_texts(operator, staff, acme, globex):
    asked(acme, "refund", "approve")
    asked(globex, "deploy", "confirm")
    for client, url in ((operator, JSONL), (staff, "/admin/input-requests/export.jsonl")):
        text = client.get(url).content.decode()
        assert "Which" not in text
        assert '"answer"' not in text
    page = operator.get("/admin/t/acme/input-requests/export/").content.decode()
    assert "The file does not contain the texts of questions and answers" in page
    assert {row.get("tool") for row in objects(operator)[:-1]} == {"refund"}
    every = objects(staff, "/admin/input-requests/export.jsonl")
    assert {row.get("tool") for row in every[:-1]} == {"refund", "deploy"}
    assert operator.get("/admin/t/globex/input-requests/export.jsonl").status_code == 403
    assert operator.get("/admin/input-requests/export.jsonl").status_code == 403


def test_an_export_applies_the_filter_and_says_what_was_erased(auditor, acme):
    story = asked(acme, "refund", "approve")
    asked(acme, "deploy", "confirm", "never")
    erase_payload(story.made[1].id, ACTOR)
    (row, _) = objects(auditor, f"{JSONL}?tool=refund&state=answered")
    assert (row["key"], row["question"], row["answer"]) == ("approve", "erased", "approve: x")
    (row, _) = objects(auditor, f"{JSONL}?state=never")
    assert (row["key"], row["answer"], row["answered_at"]) == ("never", "", None)
    assert auditor.get(f"{JSONL}?state=nonsense").status_code == 400
    page = auditor.get(f"{PAGE}?tool=refund").content.decode()
    assert f'href="{PAGE}export/?tool=refund"' in page
    page = auditor.get(f"{PAGE}export/?tool=refund").content.decode()
    assert "The file contains questions and answers" in page
    assert "<h2>1 question that matches</h2>" in page
    assert (
        "<h2>2 questions that match</h2>"
        in auditor.get(f"{PAGE}export/?tool=deploy").content.decode()
    )
    assert "<h2>All 3 questions</h2>" in auditor.get(f"{PAGE}export/").content.decode()
    assert "No questions match the filter." in auditor.get(f"{PAGE}export/?tool=x").content.decode()


def test_no_cell_of_an_answer_is_a_formula(auditor: Client, acme: Things) -> None:
    story = Story.of(acme.tenant, "refund", at=timezone.now() - 5 * MINUTE).play("start")
    story.question("sum", {"message": "=1+1"})
    story.end("input_required", asked=["sum"], sealed_by="k1", expires_at=story.at.isoformat())
    story.back().answer("sum", payload={"action": "accept", "content": {"=2": "=3"}})
    story.end()
    told(story)
    lines = auditor.get(f"{PAGE}export.csv").content.decode()
    head, row, _ = csv.reader(io.StringIO(lines))
    cells = dict(zip(head, row, strict=True))
    assert (cells["question"], cells["answer"]) == ("'=1+1", "'=2: =3")


def test_an_auditor_who_lost_that_role_does_not_go_on_with_an_export(
    auditor, acme, cast, monkeypatch
) -> None:
    monkeypatch.setattr(exports, "MAX_IN_PART", 1)
    asked(acme, "refund", "approve", "reason")
    part = f"{PAGE}export/part.jsonl"
    first = auditor.get(part).json()
    assert "Which" in first["text"]
    set_member(acme.tenant, cast.auditor.user, Role.OPERATOR, actor=ACTOR)
    assert auditor.get(f"{part}?next={first['next']}").status_code == 400
    again = auditor.get(part).json()
    assert "Which" not in again["text"]
    following = auditor.get(f"{part}?next={again['next']}").json()
    assert (following["rows"], following["last"]) == (2, True)
