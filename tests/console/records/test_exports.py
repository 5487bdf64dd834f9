"""Tests of exports of calls: their columns, their end, formulas, and who may export what."""

import csv
import io
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.console.records import exports
from mcphost.listings.calls import CALL_COLUMNS
from mcphost.listings.exports import encoded_rows
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.cast import ACTOR
from tests.console.tenant_data import Things, recorded

CSV = "/admin/t/acme/calls/export.csv"
JSONL = "/admin/t/acme/calls/export.jsonl"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def rows(client: Client, url: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(client.get(url).content.decode())))


def objects(client: Client, url: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.get(url).content.decode().splitlines()]


def test_a_complete_export_ends_with_a_line_that_says_so(auditor, acme, globex):
    head, call, end = rows(auditor, CSV)
    told = dict(zip(head, call, strict=True))
    assert (told["tenant"], told["call"]) == ("acme", str(acme.call))
    assert told["target"] == "canary-acme-tool"
    assert end == ["end", "calls=1", "complete=True", "after=None"]
    (first, last) = objects(auditor, JSONL)
    assert first["call"] == str(acme.call)
    assert first["responses"] == {}
    assert last == {"end": {"calls": 1, "complete": True, "after": None}}
    assert "globex" not in auditor.get(JSONL).content.decode()


def test_an_export_applies_the_filter_of_the_list(auditor: Client, acme: Things) -> None:
    recorded(acme.tenant, uuid4(), target="other")
    assert [each["target"] for each in objects(auditor, f"{JSONL}?tool=other")[:-1]] == ["other"]
    refused = auditor.get(f"{JSONL}?outcome=nonsense")
    assert refused.status_code == 400
    assert "nonsense" in refused.content.decode()
    page = auditor.get("/admin/t/acme/calls/?tool=other").content.decode()
    assert 'href="export/?tool=other"' in page
    page = auditor.get("/admin/t/acme/calls/export/?tool=other").content.decode()
    assert 'href="../export.csv?tool=other"' in page
    assert 'data-query="tool=other"' in page
    assert "<h2>1 call that matches</h2>" in page


def test_the_page_of_an_export_says_how_many_rows_there_are_at_least(
    auditor: Client, acme: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        recorded(acme.tenant, uuid4(), target="other")
    page = "/admin/t/acme/calls/export/?tool=other"
    assert "<h2>3 calls that match</h2>" in auditor.get(page).content.decode()
    assert "No calls match the filter." in auditor.get(f"{page}&outcome=lost").content.decode()
    monkeypatch.setattr("mcphost.listings.exports.COUNTING_SECONDS", 0)
    monkeypatch.setattr("mcphost.listings.exports.COUNT_AT_ONCE", 2)
    assert "<h2>At least 2 calls that match</h2>" in auditor.get(page).content.decode()


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "@SUM(A1)", "\t=1", '"=1'),
        *("\u00a0@x", "\uff1d1", "\u202a=1"),
    ],
)
def test_no_csv_cell_is_a_formula(auditor: Client, acme: Things, text: str) -> None:
    recorded(acme.tenant, uuid4(), target=text, reason='"; =2;"=3;\t=4')
    _, row, *_ = rows(auditor, CSV)
    assert row[4].startswith("'")
    assert row[4].replace("'", "") == text
    assert [row[7]] == ["\";' =2;'\"=3;'\t'=4"]
    assert text in [each.get("target") for each in objects(auditor, JSONL)]


def test_a_cell_of_many_tabs_takes_linear_time() -> None:
    # In quadratic time this would take minutes.
    (line,) = encoded_rows(("text",), [{"text": "\t" * 100_000 + "=1"}], "csv", head=False)
    assert line == "'" + "\t" * 100_000 + "'=1\r\n"


def test_an_export_is_recorded_with_its_filter(auditor: Client, acme: Things) -> None:
    auditor.get(f"{CSV}?tool=x&client=y")
    entry = Entry.objects.get(action="calls.exported")
    assert (entry.tenant, entry.actor_label) == (acme.tenant, "auditor")
    assert entry.facts == {
        "format": "csv",
        "tool": "x",
        "client": "y",
        "calls": 0,
        "complete": True,
        "after": None,
    }


def test_staff_export_the_calls_of_all_tenants_or_of_one(staff, acme, globex):
    everything = objects(staff, "/admin/calls/export.jsonl")
    part = staff.get("/admin/calls/export/part.jsonl").json()["text"]
    for lines in (everything, [json.loads(line) for line in part.splitlines()]):
        assert {each.get("tenant") for each in lines[:-1]} == {"acme", "globex"}
    only = objects(staff, "/admin/calls/export.jsonl?tenant=globex")
    assert {each.get("tenant") for each in only[:-1]} == {"globex"}
    assert not Entry.objects.filter(action="calls.exported", tenant=acme.tenant).exists()
    assert staff.get("/admin/calls/export/").status_code == 200


def parts(client: Client, form: str, query: str = "") -> tuple[str, list[dict[str, Any]]]:
    """Fetch an export as its page does; return the file and the parts."""
    found: list[dict[str, Any]] = []
    following = ""
    while not found or not found[-1]["last"]:
        url = f"/admin/t/acme/calls/export/part.{form}?{query}&next={following}"
        found.append(client.get(url).json())
        following = found[-1]["next"]
    return "".join(part["text"] for part in found), found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MAX_IN_PART", 2)
    monkeypatch.setattr(exports, "_AT_ONCE", 1)


@pytest.mark.usefixtures("small")
def test_the_parts_of_an_export_form_one_file_with_one_header_and_one_end(auditor, acme, globex):
    targets = ["tool3", "tool2", "tool1", "tool0"]
    for target in reversed(targets):
        recorded(acme.tenant, uuid4(), target=target)
    text, found = parts(auditor, "csv")
    lines = list(csv.reader(io.StringIO(text)))
    assert [line[4] for line in lines[1:-1]] == [*targets, "canary-acme-tool"]
    assert lines[0] == list(CALL_COLUMNS)
    assert lines[-1] == ["end", "calls=5", "complete=True", "after=None"]
    assert [part["rows"] for part in found] == [2, 4, 5]
    text, _ = parts(auditor, "jsonl", "tool=tool1")
    (one, end) = [json.loads(line) for line in text.splitlines()]
    assert one["target"] == "tool1"
    assert end == {"end": {"calls": 1, "complete": True, "after": None}}


@pytest.mark.usefixtures("small")
def test_an_interrupted_export_states_where_to_continue(auditor: Client, acme: Things) -> None:
    for number in range(3):
        recorded(acme.tenant, uuid4(), target=f"tool{number}")
    first = auditor.get("/admin/t/acme/calls/export/part.jsonl").json()
    assert not first["last"]
    assert '"end"' not in first["text"]
    assert json.loads(first["cut"]) == {
        "end": {"calls": 2, "complete": False, "after": first["after"]}
    }


@pytest.mark.usefixtures("small")
def test_an_export_is_limited_and_states_where_the_next_one_begins(auditor, acme, monkeypatch):
    monkeypatch.setattr(exports, "MAX_EXPORTED", 3)
    for number in range(4):
        recorded(acme.tenant, uuid4(), target=f"tool{number}")
    text, found = parts(auditor, "jsonl")
    end = json.loads(text.splitlines()[-1])["end"]
    assert (end["calls"], end["complete"], end["after"]) == (3, False, found[-1]["after"])


@pytest.mark.usefixtures("small")
def test_each_part_of_an_export_checks_the_permission_again(auditor, cast, acme, globex):
    recorded(acme.tenant, uuid4())
    recorded(acme.tenant, uuid4())
    path = "/admin/t/acme/calls/export/part.jsonl"
    following = auditor.get(path).json()["next"]
    set_member(acme.tenant, cast.auditor.user, Role.MEMBER, actor=ACTOR)
    set_member(globex.tenant, cast.auditor.user, Role.AUDITOR, actor=ACTOR)
    assert auditor.get(f"{path}?next={following}").status_code == 403


@pytest.mark.usefixtures("small")
def test_an_export_in_parts_is_recorded_at_its_start_and_at_its_end(auditor, acme):
    for _ in range(4):
        recorded(acme.tenant, uuid4())
    parts(auditor, "csv", "period=24h")
    found = Entry.objects.filter(action="calls.exported").order_by("id")
    assert [(each.facts["calls"], each.facts["complete"]) for each in found] == [
        (2, False),
        (5, True),
    ]
    assert found[0].facts["period"] == "24h"


@pytest.mark.usefixtures("small")
def test_no_part_of_an_export_is_served_without_a_recorded_start(
    auditor, owner, cast, acme, globex
):
    for _ in range(4):
        recorded(acme.tenant, uuid4())
    path = "/admin/t/acme/calls/export/part.jsonl"
    first = auditor.get(f"{path}?tool=echo&sofar=1").json()
    assert Entry.objects.filter(action="calls.exported").count() == 1
    first = auditor.get(f"{path}?sofar=2&after={UUID(int=(1 << 128) - 1)}").json()
    assert Entry.objects.filter(action="calls.exported").count() == 2
    following = first["next"]
    for other in (f"{path}?next={following}x", f"{path}?tool=echo&next={following}"):
        assert auditor.get(other).status_code == 400
    assert auditor.get(f"{path[:-5]}csv?next={following}").status_code == 400
    assert owner.get(f"{path}?next={following}").status_code == 400
    set_member(globex.tenant, cast.auditor.user, Role.AUDITOR, actor=ACTOR)
    assert auditor.get(f"{path.replace('acme', 'globex')}?next={following}").status_code == 400
    assert auditor.get(f"{path}?next={following}").json()["rows"] == 4
