"""The lines of the status: each good, or with a reason."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.verification import VerificationState
from mcphost.feed import nodes
from mcphost.feed.models import Node
from mcphost.feed.nodes import ALIVE, Heartbeat, NodeRow
from mcphost.serving.options import options
from mcphost.serving.process import status
from mcphost.serving.process.status import DatabaseFacts, PlatformFacts, PlatformStatus
from mcphost.tasks.listing import WorkingTasks
from mcphost.vault.lifecycle import rotate, run_due_transitions
from mcphost.vault.models import RingKey
from mcphost.vault.selectors import forget_ring, ring, sealing_key
from mcphost.vault.services import ensure_ring
from tests.cast import ACTOR

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FINE: Mapping[str, Any] = {
    "role": "server",
    "version": "1.0",
    "key": "k2",
    "keys": ["k1", "k2"],
    "writer": {"waiting": 3, "lag": 0.1, "problem": None},
    "summaries": {"leads": True, "lag": 0.4},
    "loop": {"lag": 0.01, "limit": 0.25},
    "change_log": {"pause": 0.5, "position": 7},
    "requests": 4,
    "rounds": 2,
    "tasks": {"running": 1, "takes": True},
    "threads": {"busy": 1, "lost": 0},
    "database": {"waiting": 0},
    "sandbox": {"most": 4, "in_use": 4, "idle": 0, "waiting": 3},
    "problems": {},
    "warnings": {},
}


def process(name: str = "one", age: float = 1, draining: bool = False, **facts: Any) -> NodeRow:
    since = timedelta(seconds=age)
    return NodeRow(name, NOW - 60 * SECOND, NOW - since, draining, since, {**FINE, **facts}, {})


def loading(name: str, started: float, functions: Mapping[str, str] | None) -> NodeRow:
    """A process that started `started` seconds ago and has loaded these functions."""
    return replace(process(name), started_at=NOW - started * SECOND, functions=functions)


def platform(*processes: NodeRow, **read: Any) -> PlatformStatus:
    """The status of these processes, with all else in order."""
    key, tasks = ("k2", NOW - timedelta(days=1)), WorkingTasks(5, 2, 1)
    values = {"key": key, "tasks": tasks, "database": DatabaseFacts(0.01, 20, 100), **read}
    return status._status(PlatformFacts(NOW, processes, **values))


def reasons(found: PlatformStatus) -> dict[str, str]:
    return {line.name: line.reason for line in found.lines if line.reason}


@pytest.fixture
def queued(settings: Settings) -> None:
    settings.MCPHOST_TASK_ENGINE = "procrastinate"
    assert options().tasks.queued


def test_a_healthy_platform_has_no_reasons(settings: Settings) -> None:
    found = platform(process("one"), process("two"), process("three", draining=True))
    assert reasons(found) == {}
    assert found.good
    texts = {line.name: line.text for line in found.lines}
    assert texts["processes"] == "2 serving, 1 draining"
    assert texts["writer"] == "9 submissions wait, the oldest for 100 ms"
    assert texts["keys"] == "k2 is active, and read by 3 of 3 processes"
    assert "20 of 100 connections" in texts["database"]


def test_a_missing_summary_writer_is_a_reason(settings: Settings) -> None:
    settings.MCPHOST_SUMMARIES_IN_SERVER = False
    assert "start `manage.py worker`" in reasons(platform(process("one")))["writer"]
    assert "writer" not in reasons(platform(process("one"), process("two", role="worker")))


def verified(**changes: Any) -> VerificationState:
    ended = NOW - timedelta(minutes=30)
    return replace(VerificationState(12_345, 0, ended, ended, 0, None), **changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wrong": 3, "first_wrong": UUID(int=7)}, "belongs to the entry 00000000-"),
        ({"read_at": NOW - timedelta(hours=5)}, "No payload has been verified for 5 h."),
        ({"ended_at": None, "read_at": NOW - timedelta(days=3)}, "verified for 3 days."),
    ],
)
def test_modified_or_unverified_payloads_are_a_reason(changes: dict[str, Any], said: str) -> None:
    found = reasons(platform(process("one"), verified=verified(**changes)))
    assert list(found) == ["verification"]
    assert said in found["verification"]


@pytest.mark.parametrize(
    ("line", "facts", "said"),
    [
        ("versions", {"version": "0.9"}, "Different versions run"),
        ("keys", {"key": "k1"}, "still seal with another key: two"),
        (
            "writer",
            {"writer": {"waiting": 9, "lag": 6.0, "problem": "the queue is filling up"}},
            "not written in time: two (the queue is filling up)",
        ),
        ("event_loop", {"loop": {"lag": 0.3, "limit": 0.25}}, "late: two (300 ms)"),
        ("event_loop", {"loop": {"lag": 0.21, "limit": 0}}, "late: two (210 ms)"),
        ("change_log", {"change_log": {"pause": 6.5}}, "read late: two (6.5 s)"),
        ("pool", {"database": {"waiting": 4}}, "wait for the database: two (4)"),
        ("pool", {"threads": {"busy": 3, "lost": 2}}, "time limit: two (2)"),
        ("sandbox", {"sandbox": {"most": 4, "in_use": 4, "waiting": 4}}, "as may run: two."),
        ("processes", {"problems": {"tools": "a file is broken"}}, "two: tools: a file is broken."),
    ],
)
def test_a_problem_of_one_process_is_a_reason_in_its_own_line_only(
    line: str, facts: dict[str, Any], said: str
) -> None:
    found = platform(process("one"), process("two", **facts))
    assert not found.good
    assert list(reasons(found)) == [line]
    assert said in reasons(found)[line]


def test_a_process_without_a_heartbeat_counts_as_gone_and_its_facts_are_ignored() -> None:
    late = process("two", age=ALIVE.total_seconds() + 60, key="k1", version="0.9")
    found = platform(process("one"), late)
    assert list(reasons(found)) == ["processes"]
    assert "No heartbeat from two (for 75 s)" in reasons(found)["processes"]
    assert [status.state_of(each) for each in found.facts.processes] == ["serves", "gone"]
    assert "The heartbeat is late: two (for 9 s)" in reasons(
        platform(process("one"), process("two", age=9))
    ).get("processes", "")


def test_without_a_serving_process_the_status_says_so() -> None:
    worker = process("w", draining=True, role="worker")
    assert status.state_of(worker) == "works"
    for found in (platform(), platform(worker), platform(process(draining=True))):
        assert "No process takes calls" in reasons(found)["processes"]


def test_a_key_activated_recently_need_not_be_known_to_every_process() -> None:
    old = process("one", key="k1")
    assert reasons(platform(old, key=("k2", NOW - SECOND))) == {}
    assert list(reasons(platform(old, key=("k2", NOW - ALIVE - SECOND)))) == ["keys"]
    assert "manage.py init" in reasons(platform(process(), key=None))["keys"]
    unread = platform(process("one"), process("two", key=None))
    assert reasons(unread) == {}, "it has sealed nothing yet"
    (line,) = [line for line in unread.lines if line.name == "keys"]
    assert "read by 1 of 2 processes; the others" in line.text


def test_queued_tasks_without_a_worker_are_a_reason(queued: None) -> None:
    idle = {"running": 0, "takes": False}
    found = platform(process("one", tasks=idle), process("two", tasks=idle))
    assert "manage.py worker" in reasons(found)["workers"]
    assert reasons(platform(process("one", tasks=idle), process("two"))) == {}


ECHO, ASK = {"demo.echo": "1"}, {"demo.ask": "1"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, "Functions are missing: two (demo.ask, demo.echo)."),
        (ECHO, "Functions are missing: two (demo.ask)."),
        ({**ASK, "demo.echo": "0"}, "differ from those of the newest process: two (demo.echo)."),
        (None, "do not say which functions they have, because their version is older: two."),
    ],
)
def test_processes_with_an_old_version_are_named(
    other: Mapping[str, str] | None, said: str
) -> None:
    found = platform(loading("one", 20, {**ECHO, **ASK}), loading("two", 60, other))
    assert said in reasons(found)["code"]
    assert "one" not in reasons(found)["code"].partition("Other processes")[0].split()


# --- read ---

in_database = pytest.mark.django_db(transaction=True)


@pytest.fixture
def together(settings: Settings) -> Callable[..., Heartbeat]:
    """Processes that write heartbeats."""
    settings.MCPHOST_ALONE = False

    def beat(**facts: Any) -> Heartbeat:
        made = Heartbeat()
        made.report = lambda: {**FINE, "key": sealing_key(), **facts}
        made.beat()
        return made

    return beat


@in_database
def test_the_status_is_read_from_the_rows_of_all_processes(
    together: Callable[..., Heartbeat],
) -> None:
    ensure_ring()
    ring()
    together()
    two = together(version="0.9")
    found = status.read()
    assert [status.state_of(each) for each in found.facts.processes] == ["serves", "serves"]
    assert list(reasons(found)) == ["versions"]
    Node.objects.filter(id=two.id).update(seen_at=timezone.now() - ALIVE - SECOND)
    assert list(reasons(status.read())) == ["processes"]
    assert status.read().as_json()["processes"][1]["state"] == "gone"


@in_database
def test_a_rotation_not_read_by_a_process_is_detected(
    together: Callable[..., Heartbeat],
) -> None:
    old = ensure_ring()
    together(key=old)
    assert "keys" not in reasons(status.read())
    rotate(ACTOR, compromised=True)
    RingKey.objects.filter(state="active").update(state_since=timezone.now() - ALIVE - SECOND)
    assert "restart them" in reasons(status.read())["keys"]
    forget_ring()
    ring()
    Node.objects.all().delete()
    together()
    assert "keys" not in reasons(status.read())
    run_due_transitions()


@in_database
@pytest.mark.postgresql
def test_a_locked_table_delays_the_status_by_two_seconds_at_most(
    together: Callable[..., Heartbeat],
) -> None:
    ensure_ring()
    together()
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("LOCK TABLE feed_node IN ACCESS EXCLUSIVE MODE")
            found = status.read()
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert "took more than 2 s" in reasons(found)["database"]
    assert len(found.facts.processes) == 1, "this process is known without the database"
    assert nodes.rows()


def test_without_the_database_only_this_process_is_reported() -> None:
    found = status.without_database("It is unreachable.")
    assert "It is unreachable. See whether the database runs" in reasons(found)["database"]
    assert len(found.as_json()["processes"]) == 1
