"""Figures as numbers, what waits at the moment, and the status of the platform."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.samples import http_config
from tests.audit.recorded_calls import Story, follow, keep
from tests.cast import Cast
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db

API, ACME = "/api/v1", "/api/v1/tenants/acme"
SCRIPTS = (
    "start; ask q; back; start; answer q; end",
    "start; ask q; back; start; answer q decline; end",
    "start; end tool_error",
    "start; ask open",
)


@pytest.fixture
def told(cast: Cast, clients: ApiClients) -> None:
    """Four calls of acme and one of globex, within the last hour, and a task of acme that waits."""
    at = timezone.now() - timedelta(minutes=25)
    keep(*(Story.of(cast.acme.id, "refund", at=at).play(script) for script in SCRIPTS))
    keep(Story.of(cast.globex.id, "foreign", at=at).play("start; ask foreign"))
    follow()
    a_question(a_task(cast.acme.id), "colour")


def read(client: ApiClient, path: str) -> Any:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_summary_has_the_figures_of_the_overview(clients: ApiClients, told: None) -> None:
    draft = {"name": "draft", "kind": "http", "description": "A draft."}
    clients.owner.made(f"{ACME}/tools", {**draft, "config": http_config("orders")})
    summary = read(clients.auditor, f"{ACME}/summary?period=1h")
    total = summary["total"]
    assert (total["calls"], total["errors"], total["error_rate"]) == (4, 1, 0.25)
    assert (total["input_requests"], total["endings"]["answered"]) == (3, 1)
    assert (total["endings"]["declined"], total["endings"]["open"]) == (1, 1)
    assert total["p50_us"] is not None
    assert total["p95_answer_ms"] is not None
    assert summary["before"]["calls"] == 0
    assert summary["before"]["error_rate"] is None
    points = summary["series"]
    assert (len(points), points[0]["at"]) == (60, summary["since"])
    assert sum(point["figures"]["calls"] for point in points) == 4
    assert summary["top_targets"] == [{"tenant": "acme", "name": "refund", "calls": 4, "errors": 1}]
    current = summary["current"]
    assert (current["open_input_requests"], current["tasks_waiting"]) == (2, 1)
    assert summary["primitives"]["tools"]["draft"] == 1
    assert read(clients.owner, f"{ACME}/summary")["period"] == "24h"


def test_figures_of_another_end_have_no_current_counts_and_old_ones_are_refused(
    clients: ApiClients, told: None
) -> None:
    past = timezone.now() - timedelta(hours=2)
    summary = read(clients.owner, f"{ACME}/summary?period=1h&as_of={past:%Y-%m-%dT%H:%M:%SZ}")
    assert (summary["total"]["calls"], summary["current"]) == (0, None)
    day = timezone.now() - timedelta(days=2)
    for name, value in (
        ("as_of", f"{day:%Y-%m-%dT%H:%M:%SZ}"),
        ("as_of", "2099-01-01T00:00:00Z"),
        ("as_of", "yesterday"),
        ("colour", "red"),
        ("tenant", "globex"),
    ):
        refused = clients.owner.get(f"{ACME}/summary?period=1h&{name}={value}")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, name)
    assert clients.owner.get(f"{ACME}/summary?period=2h").status_code == 400
    past = timezone.now() - timedelta(days=2)
    later = read(clients.owner, f"{ACME}/summary?period=24h&as_of={past:%Y-%m-%dT%H:%M:%SZ}")
    assert later["total"]["calls"] == 0


def test_input_requests_are_summed_by_target_and_client(clients: ApiClients, told: None) -> None:
    summary = read(clients.operator, f"{ACME}/input_request_summary?period=1h")
    (row,) = summary["rows"]
    assert (row["tenant"], row["target"], row["input_requests"]) == ("acme", "refund", 3)
    assert row["endings"] == summary["total"]["endings"]
    assert summary["complete"] is True


def test_staff_read_the_figures_of_all_tenants_and_owners_only_their_own(
    clients: ApiClients, told: None
) -> None:
    assert read(clients.staff, f"{API}/summary?period=1h")["total"]["calls"] == 5
    rows = read(clients.staff, f"{API}/input_request_summary?period=1h")["rows"]
    assert {row["tenant"] for row in rows} == {"acme", "globex"}
    for end in ("summary", "input_request_summary"):
        assert "foreign" not in clients.owner.get(f"{ACME}/{end}?period=1h").content.decode()
        assert clients.stranger.get(f"{ACME}/{end}").status_code == 404
        for client in (clients.owner, clients.auditor, clients.stranger):
            assert client.get(f"{API}/{end}").status_code == 403


def test_staff_read_the_status_of_the_platform(clients: ApiClients, settings: Any) -> None:
    settings.MCPHOST_ALONE = True  # this process counts, also without a heartbeat
    status = read(clients.staff, f"{API}/status")
    lines = {line["name"]: line["status"] for line in status["lines"]}
    assert {"processes", "keys", "database", "workers"} <= set(lines)
    assert (status["status"] == "problem") is ("problem" in lines.values())
    assert status["processes"][0]["name"]
    for client in (clients.owner, clients.operator, clients.auditor):
        assert client.get(f"{API}/status").status_code == 403
    assert clients.staff.get(f"{API}/status?verbose=1").status_code == 400
