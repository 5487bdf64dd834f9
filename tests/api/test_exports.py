"""Exports: files in two media types with the filters of the lists, bounded, and recorded."""

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.services import record
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.audit.recorded_calls import Story, follow, keep
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

API, ACME = "/api/v1", "/api/v1/tenants/acme"
CALLS, REQUESTS = f"{ACME}/calls/export", f"{ACME}/input_requests/export"
ENTRIES = f"{ACME}/entries/export"
ANSWERED = "start; ask q; back; start; answer q decline; end"


@pytest.fixture(autouse=True)
def stories(cast: Cast, clients: ApiClients) -> list[Story]:
    """Three calls of acme, two of them with an input request, and one of globex."""
    at = timezone.now() - timedelta(minutes=19)
    scripts = (ANSWERED, "start; ask open", "start; end")
    stories = [
        Story.of(cast.acme.id, target, at=at + timedelta(minutes=5 * number)).play(script)
        for number, (target, script) in enumerate(zip("abc", scripts, strict=True))
    ]
    keep(*stories, Story.of(cast.globex.id, "foreign", at=at).play("start; ask foreign"))
    follow()
    return stories


def lines(client: ApiClient, path: str) -> list[dict[str, Any]]:
    response = client.get(path)
    assert response.status_code == 200, response.content
    assert response.headers["Content-Type"] == "application/jsonl; charset=utf-8"
    return [json.loads(line) for line in response.content.decode().splitlines()]


def test_calls_are_exported_in_both_media_types_with_the_filters_of_the_list(
    clients: ApiClients,
) -> None:
    *rows, end = lines(clients.owner, CALLS)
    assert [row["target"] for row in rows] == ["c", "b", "a"]
    assert end == {"end": {"calls": 3, "complete": True, "next": None}}
    *rows, _ = lines(clients.owner, f"{CALLS}?state=open")
    assert [row["target"] for row in rows] == ["b"]
    response = clients.owner.get(f"{CALLS}?target=a", Accept="text/csv")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.headers["Content-Disposition"] == 'attachment; filename="calls-acme.csv"'
    head, row, end_cells = csv.reader(io.StringIO(response.content.decode()))
    assert dict(zip(head, row, strict=True))["target"] == "a"
    assert end_cells == ["end", "calls=1", "complete=True", "next=None"]


def test_a_file_is_bounded_and_the_next_one_begins_where_it_ends(
    clients: ApiClients,
) -> None:
    *rows, end = lines(clients.owner, f"{CALLS}?limit=2")
    assert ([row["target"] for row in rows], end["end"]["complete"]) == (["c", "b"], False)
    cursor = end["end"]["next"]
    *rows, end = lines(clients.owner, f"{CALLS}?limit=2&cursor={cursor}")
    assert ([row["target"] for row in rows], end["end"]["next"]) == (["a"], None)
    others = (CALLS.replace("/export", ""), REQUESTS, f"{CALLS}?target=a")
    for path in others:
        refused = clients.owner.get(f"{path}{'&' if '?' in path else '?'}cursor={cursor}")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "cursor")
    assert clients.owner.get(f"{CALLS}?limit=5001").status_code == 400
    assert clients.owner.get(f"{CALLS}?colour=red").status_code == 400


def test_other_media_types_are_refused_as_a_problem(clients: ApiClients) -> None:
    for accepted in ("application/json", "text/html"):
        response = clients.owner.get(CALLS, Accept=accepted)
        assert response.status_code == 406, accepted
        assert response.headers["Content-Type"] == "application/problem+json"
    assert not Entry.objects.filter(action="calls.exported").exists()


def test_each_file_is_recorded_with_its_filters(cast: Cast, clients: ApiClients) -> None:
    clients.auditor.get(f"{CALLS}?target=a&since=2020-01-01T00:00:00Z", Accept="text/csv")
    entry: Any = Entry.objects.get(action="calls.exported")
    assert (entry.tenant, entry.actor_id) == (cast.acme.id, str(cast.auditor.user.pk))
    assert entry.token_id
    assert entry.facts == {
        "format": "csv",
        "target": "a",
        "since": "2020-01-01T00:00:00Z",
        "calls": 1,
        "complete": True,
        "after": None,
    }


def test_texts_of_input_requests_are_for_auditors_and_recorded(
    cast: Cast, clients: ApiClients
) -> None:
    *rows, end = lines(clients.operator, f"{REQUESTS}?state=declined")
    assert [(row["tool"], row["state"], "answer" in row) for row in rows] == [
        ("a", "decline", False)
    ]
    assert end["end"]["input_requests"] == 1
    for client in (clients.owner, clients.operator, clients.staff):
        assert client.get(f"{REQUESTS}?texts=true").status_code == 403
    assert not Entry.objects.filter(facts__texts=True).exists()
    *rows, _ = lines(clients.auditor, f"{REQUESTS}?texts=true")
    assert {(row["tool"], row["question"]) for row in rows} == {
        ("a", "not recorded"),
        ("b", "not recorded"),
    }
    assert Entry.objects.get(facts__texts=True).actor_id == str(cast.auditor.user.pk)


def test_no_export_has_rows_of_another_tenant_but_that_of_staff(clients: ApiClients) -> None:
    for path in (CALLS, REQUESTS, ENTRIES):
        assert "foreign" not in clients.owner.get(path).content.decode()
        assert clients.stranger.get(path).status_code == 404
        assert clients.owner.get(f"{path}?tenant=globex").status_code == 400
    for name in ("calls", "input_requests"):
        path = f"{API}/{name}/export"
        *rows, _ = lines(clients.staff, path)
        assert {row["tenant"] for row in rows} == {"acme", "globex"}
        *rows, _ = lines(clients.staff, f"{path}?tenant=globex")
        assert {row["tenant"] for row in rows} == {"globex"}
        for client in (clients.owner, clients.auditor, clients.stranger):
            assert client.get(path).status_code == 403
    for client in (clients.owner, clients.auditor, clients.stranger):
        assert client.get(f"{API}/entries/export").status_code == 403
    recorded = Entry.objects.filter(action="calls.exported", tenant=None)
    assert recorded.count() == 2


def test_the_audit_log_is_exported_with_the_filters_of_its_list(
    cast: Cast, clients: ApiClients
) -> None:
    at = {"actor": ACTOR, "tenant": cast.acme.id}
    for target in "abc":
        record("tool.updated", target=target, facts={"changed": ["title"]}, **at)
    record("tool.published", target="a", **at)
    record("tool.updated", actor=ACTOR, tenant=cast.globex.id, target="foreign")
    record("user.created", actor=ACTOR, target="of-the-platform")
    path = f"{ENTRIES}?action=tool.updated"
    *rows, end = lines(clients.auditor, f"{path}&limit=2")
    assert [(row["target"], row["facts"]) for row in rows] == [
        ("c", {"changed": ["title"]}),
        ("b", {"changed": ["title"]}),
    ]
    *rows, end = lines(clients.auditor, f"{path}&limit=2&cursor={end['end']['next']}")
    assert ([row["target"] for row in rows], end["end"]["next"]) == (["a"], None)
    response = clients.owner.get(f"{path}&target=a", Accept="text/csv")
    assert response.headers["Content-Disposition"] == 'attachment; filename="entries-acme.csv"'
    head, row, _ = csv.reader(io.StringIO(response.content.decode()))
    assert json.loads(dict(zip(head, row, strict=True))["facts"]) == {"changed": ["title"]}
    entry = Entry.objects.filter(action="entries.exported").latest("id")
    assert (entry.tenant, entry.facts["target"], entry.facts["entries"]) == (cast.acme.id, "a", 1)


def test_staff_export_the_audit_log_of_the_platform_and_all_tenants(
    cast: Cast, clients: ApiClients
) -> None:
    for tenant in (cast.acme.id, cast.globex.id):
        record("tool.updated", actor=ACTOR, tenant=tenant, target="x")
    record("user.created", actor=ACTOR, target="of-the-platform")
    path = f"{API}/entries/export"
    *rows, _ = lines(clients.staff, path)
    assert {row["tenant"] for row in rows} >= {"", "acme", "globex"}
    *rows, _ = lines(clients.staff, f"{path}?tenant=globex")
    assert {row["tenant"] for row in rows} == {"globex"}
