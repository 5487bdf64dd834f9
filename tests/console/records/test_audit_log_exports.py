"""Tests of exports of the audit log: its entries alone, who may export them, and the record of it."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.console.records import exports
from mcphost.listings.audit_log import ENTRY_COLUMNS
from mcphost.protocol.revisions import Era
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.audit.recorded_calls import MINUTE, Story
from tests.cast import ACTOR, Cast
from tests.console.tenant_data import Things, told

LOG = "/admin/t/acme/audit-log/"
JSONL = f"{LOG}export.jsonl"
PART = f"{LOG}export/part.jsonl"
ALL = "/admin/audit-log/export.jsonl"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def objects(client: Client, url: str = JSONL) -> list[dict[str, Any]]:
    response = client.get(url)
    assert response.status_code == 200, url
    return [json.loads(line) for line in response.content.decode().splitlines()]


def noted(things: Things, *targets: str, **facts: Any) -> None:
    """Write an entry of a person for each target."""
    for target in targets:
        by = Actor("person", "7", "olga")
        record("tool.updated", actor=by, tenant=things.tenant, target=target, facts=facts)


def test_an_export_has_the_entries_of_the_list_newest_first_and_an_end(auditor, acme):
    noted(acme, "first", "second", changed=["title"])
    listed = [entry.id for entry, _ in auditor.get(LOG).context["entries"]]
    *rows, end = objects(auditor)
    assert [row["entry"] for row in rows] == [str(id) for id in listed]
    assert [row["target"] for row in rows[:2]] == ["second", "first"]
    assert tuple(rows[0]) == ENTRY_COLUMNS
    assert (rows[0]["actor"], rows[0]["actor_id"], rows[0]["tenant"]) == ("olga", "7", "acme")
    assert rows[0]["facts"] == {"changed": ["title"]}
    assert end == {"end": {"entries": len(rows), "complete": True, "after": None}}


@pytest.mark.parametrize("era", Era)
def test_no_entry_of_a_call_of_either_era_is_exported(auditor, acme, era):
    before = objects(auditor)
    story = Story.of(acme.tenant, "of-a-call", at=timezone.now() - 5 * MINUTE, era=era)
    story.play("start; ask q; back; answer q; end").refuse("reused")
    told(story)
    *rows, _ = objects(auditor)
    assert [row["action"] for row in rows] == [
        "entries.exported",
        *(row["action"] for row in before[:-1]),
    ]


def test_an_export_applies_the_filter_of_the_list_and_ignores_others(auditor, acme):
    noted(acme, "mine", "other")
    *rows, _ = objects(auditor, f"{JSONL}?area=tool&tool=mine&principal=olga&outcome=lost")
    assert [row["target"] for row in rows] == ["mine"]
    assert auditor.get(f"{JSONL}?area=nonsense").status_code == 400
    assert 'href="export/?tool=mine&amp;area=tool"' in (
        auditor.get(f"{LOG}?area=tool&tool=mine").content.decode()
    )
    page = auditor.get(f"{LOG}export/?area=tool&tool=mine").content.decode()
    assert "<h2>1 entry that matches</h2>" in page
    assert 'href="../export.csv?tool=mine&amp;area=tool"' in page
    assert "<h2>2 entries that match</h2>" in (
        auditor.get(f"{LOG}export/?principal=olga").content.decode()
    )


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "\t=1", '"=1', "\uff1d1"])
def test_no_csv_cell_of_the_audit_log_is_a_formula(auditor, acme, text):
    noted(acme, text, note=f"x;{text}")
    head, row, *_ = csv.reader(io.StringIO(auditor.get(f"{LOG}export.csv").content.decode()))
    cells = dict(zip(head, row, strict=True))
    assert cells["target"].startswith("'")
    assert cells["target"].replace("'", "") == text
    assert cells["facts"].startswith('{"note": "x;')
    assert f"x;{text}" not in cells["facts"]


def test_an_export_of_the_audit_log_is_recorded_with_its_filter(auditor: Client, acme: Things):
    noted(acme, "mine")
    objects(auditor, f"{JSONL}?tool=mine")
    entry = Entry.objects.get(action="entries.exported")
    assert (entry.tenant, entry.actor_label, entry.target) == (acme.tenant, "auditor", "entries")
    assert entry.facts == {
        "format": "jsonl",
        "tool": "mine",
        "entries": 1,
        "complete": True,
        "after": None,
    }


def test_the_parts_of_an_export_of_the_audit_log_are_one_file(auditor, acme, monkeypatch):
    monkeypatch.setattr(exports, "MAX_IN_PART", 2)
    monkeypatch.setattr(exports, "_AT_ONCE", 1)
    noted(acme, *"abcde")
    texts, following, is_last = [], "", False
    while not is_last:
        part = auditor.get(f"{PART}?principal=olga&next={following}").json()
        texts.append(part["text"])
        following, is_last = part["next"], part["last"]
    *rows, end = [json.loads(line) for line in "".join(texts).splitlines()]
    assert [row["target"] for row in rows] == list("edcba")
    assert end["end"] == {"entries": 5, "complete": True, "after": None}
    recorded = Entry.objects.filter(action="entries.exported").order_by("id")
    assert [entry.facts["entries"] for entry in recorded] == [2, 5]


def test_a_part_of_an_export_is_for_those_who_may_still_read_the_audit_log(
    auditor: Client, cast: Cast, acme: Things, globex: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_IN_PART", 1)
    noted(acme, "a", "b")
    following = auditor.get(PART).json()["next"]
    calls = PART.replace("audit-log", "calls")
    assert auditor.get(f"{calls}?next={following}").status_code == 400
    set_member(globex.tenant, cast.auditor.user, Role.AUDITOR, actor=ACTOR)
    assert auditor.get(f"{PART.replace('acme', 'globex')}?next={following}").status_code == 400
    set_member(acme.tenant, cast.auditor.user, Role.MEMBER, actor=ACTOR)
    assert auditor.get(f"{PART}?next={following}").status_code == 403


def test_no_export_of_the_audit_log_has_entries_of_another_tenant(
    owner: Client, auditor: Client, staff: Client, acme: Things, globex: Things
) -> None:
    noted(acme, "canary-of-acme")
    noted(globex, "canary-of-globex")
    record("user.created", actor=ACTOR, target="canary-of-the-platform")
    for client in (owner, auditor):
        text = client.get(f"{JSONL}?tenant=globex").content.decode()
        assert "canary-of-acme" in text
        assert "canary-of-globex" not in text
        assert "canary-of-the-platform" not in text
        assert client.get(JSONL.replace("acme", "globex")).status_code == 403
        assert client.get(ALL).status_code == 403
    *rows, _ = objects(staff, ALL)
    assert {row["tenant"] for row in rows} >= {"", "acme", "globex"}
    assert {"canary-of-acme", "canary-of-globex", "canary-of-the-platform"} <= {
        row["target"] for row in rows
    }
    *rows, _ = objects(staff, f"{ALL}?tenant=globex")
    assert {row["tenant"] for row in rows} == {"globex"}
    assert Entry.objects.filter(action="entries.exported", tenant=None).count() == 2
