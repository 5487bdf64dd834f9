"""Tests of the filters above the list of calls: chips, ranges of dates, and what an empty list says."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED, STATE_REFUSED
from mcphost.audit.selectors import PAGE, first_id
from mcphost.audit.texts import MAX_TEXT
from mcphost.console.dashboards.calls_behind import whole
from tests.console.tenant_data import Things, recorded

CALLS = "/admin/t/acme/calls/"
OTHERS = [
    "/admin/t/acme/audit-log/", "/admin/t/acme/refusals/", "/admin/audit-log/",
    "/admin/refusals/",
]  # fmt: skip

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def page(client: Client, query: str, path: str = CALLS) -> str:
    return unescape(client.get(f"{path}{query}").content.decode())


def removed_by(client: Client, query: str, path: str = CALLS) -> dict[str, str]:
    """The links that remove a filter, by its name."""
    found = page(client, query, path)
    return {
        label: link
        for link, label in re.findall(
            r'class="c-pill-off" href="([^"]*)" aria-label="Remove the filter ([^"]*)"', found
        )
    }


def targets(client: Client, query: str) -> list[str]:
    return [row.entry.target for row, _ in client.get(f"{CALLS}{query}").context["calls"]]


def test_the_longest_name_that_a_record_keeps_can_be_filtered_by(
    auditor: Client, acme: Things
) -> None:
    name = "é" * MAX_TEXT
    recorded(acme.tenant, uuid4(), client_name=name, target="longest")
    recorded(acme.tenant, uuid4(), client_name=f"{name[:-1]}x", target="other")
    assert targets(auditor, f"?{urlencode({'client': whole(name)})}") == ["longest"]


def test_each_active_filter_is_a_chip_that_removes_only_itself(auditor: Client, staff: Client):
    assert removed_by(auditor, "") == {}
    found = removed_by(auditor, "?tool=a%20b&client=x&since=2026-01-01")
    assert found == {
        "Period": f"{CALLS}?tool=a+b&client=x",
        "Target": f"{CALLS}?client=x&since=2026-01-01",
        "Client": f"{CALLS}?tool=a+b&since=2026-01-01",
    }
    assert removed_by(auditor, "?period=24h") == {"Period": CALLS}
    assert removed_by(auditor, "?trace=0af7651916cd43dd8448eb211c80319c") == {"Trace": CALLS}
    assert removed_by(staff, "?tenant=acme", "/admin/calls/") == {"Tenant": "/admin/calls/"}


def test_a_hostile_filter_value_is_escaped_in_its_chip(auditor: Client) -> None:
    found = auditor.get(f"{CALLS}?tool=%3Cscript%3E%E2%80%AEx%22").content.decode()
    assert "<script>\u202e" not in found
    assert "&lt;script&gt;⟨U+202E⟩x&quot;" in found


def test_an_empty_list_names_the_filter_to_remove(auditor):
    found = auditor.get(f"{CALLS}?tool=canary-acme-tool&client=nobody&period=30d").context
    assert [each.label for each in found["removals"]] == ["Client"]
    assert [each.shown_value for each in found["removals"]] == ["nobody"]
    none = auditor.get(f"{CALLS}?tool=nothing&client=nobody")
    assert none.context["removals"] == []
    assert "No matching calls" in none.content.decode()
    assert auditor.get(f"{CALLS}?client=nobody").context["removals"] == []


def test_only_staff_are_offered_to_remove_the_tenant_filter_of_an_empty_list(
    staff, auditor, globex
):
    query = "?tool=canary-globex-tool&tenant=acme"
    found = staff.get(f"/admin/calls/{query}").context["removals"]
    assert [each.label for each in found] == ["Tenant", "Target"]
    on_a_tenant = "?tool=canary-globex-tool&period=30d"
    assert [each.label for each in auditor.get(f"{CALLS}{on_a_tenant}").context["removals"]] == [
        "Target"
    ]


def test_dates_limit_the_list_in_the_time_zone_of_the_link(auditor: Client, acme: Things) -> None:
    at = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
    Entry.objects.create(
        id=UUID(int=int(at.timestamp() * 1000) << 80 | 7),
        at=at,
        tenant=acme.tenant,
        call=uuid4(),
        action=ROUND_FINISHED,
        outcome="complete",
        round=1,
        actor_kind="token",
        method="tools/call",
        target="old",
    )
    assert targets(auditor, "?since=2026-03-01&until=2026-03-01") == ["old"]
    assert targets(auditor, "?since=2026-03-02&until=2026-03-02") == []
    in_berlin = "?since=2026-03-01T23:30&until=2026-03-01T23:31&zone=Europe/Berlin"
    assert targets(auditor, in_berlin) == ["old"]
    assert targets(auditor, in_berlin.replace("Europe/Berlin", "UTC")) == []
    assert targets(auditor, "?until=2026-03-02") == ["old"]
    assert targets(auditor, "?since=2026-03-01&period=24h") == ["canary-acme-tool"]
    assert targets(auditor, "?since=2000-01-01&until=2099-12-31") == ["canary-acme-tool", "old"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=0001-01-01", "“0001-01-01” is no date from 2000 to 2099"),
        (
            "since=2026-03-02&until=2026-03-01",
            "The range ends (2026-03-01) before it begins (2026-03-02).",
        ),
        ("since=2026-03-02&zone=../../etc/passwd", "There is no time zone “../../etc/passwd”."),
        ("before=zzz", "There is no page “zzz”."),
    ],
)
def test_an_invalid_date_range_is_refused_with_a_message(auditor: Client, query: str, said: str):
    for path in (CALLS, *OTHERS[:2]):
        text = page(auditor, f"?{query}", path)
        assert said in text
        assert "Nothing is shown." in text


def entries_at(path: str, tenant: UUID, *times: datetime) -> list[UUID]:
    """Entries of the list at `path`, one at each time; their ids."""
    refused = "refusals" in path
    made = []
    for number, at in enumerate(times):
        id = UUID(int=first_id(at).int + number + 1)
        action = STATE_REFUSED if refused else "tool.updated"
        Entry(id=id, at=at, tenant=tenant, action=action, actor_kind="user", target="t").save()
        made.append(id)
    return made


def ids(client: Client, path: str, query: str) -> list[UUID]:
    return [entry.id for entry, _ in client.get(f"{path}?tool=t&{query}").context["entries"]]


@pytest.mark.parametrize("path", OTHERS)
def test_the_audit_log_and_refusals_are_limited_to_dates_of_a_time_zone(cast, browse, acme, path):
    client = browse(cast.staff if "/t/" not in path else cast.auditor)
    late, early = entries_at(
        path,
        acme.tenant,
        datetime(2026, 3, 1, 22, 30, tzinfo=UTC),
        datetime(2026, 3, 1, 12, tzinfo=UTC),
    )
    day = "since=2026-03-02&until=2026-03-02"
    assert ids(client, path, f"{day}&zone=Europe/Berlin") == []
    assert ids(client, path, f"{day}&zone=Asia/Tokyo") == [late]
    assert ids(client, path, "since=2026-03-01T11:00&until=2026-03-01T13:00") == [early]
    assert removed_by(client, "?tool=t&since=2026-03-01", path) == {
        "Period": f"{path}?tool=t",
        "Target": f"{path}?since=2026-03-01",
    }


@pytest.mark.parametrize("path", OTHERS[:2])
def test_pages_of_the_audit_log_and_refusals_link_to_older_and_newer_ones(cast, browse, acme, path):
    client = browse(cast.staff if "/t/" not in path else cast.auditor)
    now = timezone.now()
    times = (now - timedelta(seconds=age) for age in range(PAGE + 1))
    every = entries_at(path, acme.tenant, *times)
    first = client.get(f"{path}?tool=t")
    assert first.context["newer"] == ""
    last = client.get(f"{path}?{first.context['older']}")
    assert (len(last.context["entries"]), last.context["older"]) == (1, "")
    back = client.get(f"{path}?{last.context['newer']}")
    assert back.context["newer"] == ""
    assert [entry.id for entry, _ in back.context["entries"]] == every[:PAGE]
    empty = client.get(f"{path}?tool=t&after={min(every)}")
    assert empty.context["entries"] == []
    newest = client.get(f"{path}?{empty.context['newer']}").context["entries"]
    assert min(every) in [entry.id for entry, _ in newest]
