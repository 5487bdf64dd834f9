"""The lines of the status: each good, or with a reason."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
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


def test_all_is_well(settings: Settings) -> None:
    found = platform(process("one"), process("two"), process("three", draining=True))
    assert reasons(found) == {}
    assert found.good
    texts = {line.name: line.text for line in found.lines}
    assert texts["processes"] == "2 serving, 1 draining"
    assert texts["writer"] == "9 submissions wait, the oldest for 100 ms"
    assert texts["keys"] == "k2 is active, and read by 3 of 3 processes"
    assert "20 of 100 connections" in texts["database"]


def test_the_writer_s_line_says_how_far_lists_of_calls_are_behind() -> None:
    found = platform(process("one"), process("two", summaries={"leads": True, "lag": 4.5}))
    texts = {line.name: line.text for line in found.lines}
    assert texts["writer"].endswith("; lists and figures of calls are 4.5 s behind")


def test_no_process_writes_the_summaries(settings: Settings) -> None:
    settings.MCPHOST_SUMMARIES_IN_SERVER = False
    assert "start `manage.py worker`" in reasons(platform(process("one")))["writer"]
    assert "writer" not in reasons(platform(process("one"), process("two", role="worker")))


def verified(**changes: Any) -> VerificationState:
    ended = NOW - timedelta(minutes=30)
    return replace(VerificationState(12_345, 0, ended, ended, 0, None), **changes)


def test_the_last_verification_is_shown() -> None:
    texts = {line.name: line.text for line in platform(process("one"), verified=verified()).lines}
    assert texts["verification"] == "the last one ended 30 min ago and read 12,345 payloads"
    going_on = platform(
        process("one"), verified=verified(payloads_now=300, reached=NOW - timedelta(hours=7))
    )
    assert (
        "the present one has read 300, up to entries that are 7 h old"
        in {line.name: line.text for line in going_on.lines}["verification"]
    )
    none = {line.name: line.text for line in platform(process("one")).lines}
    assert none["verification"] == "no payload has been verified yet"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wrong": 3, "first_wrong": UUID(int=7)}, "belongs to the entry 00000000-"),
        ({"read_at": NOW - timedelta(hours=5)}, "No payload has been verified for 5 h."),
        ({"ended_at": None, "read_at": NOW - timedelta(days=3)}, "verified for 3 days."),
    ],
)
def test_payloads_that_are_wrong_or_not_verified_are_a_reason(
    changes: dict[str, Any], said: str
) -> None:
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
def test_a_problem_of_one_process_is_a_reason_of_its_line_alone(
    line: str, facts: dict[str, Any], said: str
) -> None:
    found = platform(process("one"), process("two", **facts))
    assert not found.good
    assert list(reasons(found)) == [line]
    assert said in reasons(found)[line]


def test_what_other_lines_show_is_not_repeated_and_draining_is_no_problem() -> None:
    probes = {"drain": "about to stop", "records": "late", "feed": "x", "database": "y"}
    assert reasons(platform(process("one"), process("two", draining=True, problems=probes))) == {}


def test_a_process_without_a_heartbeat_is_gone_and_its_facts_do_not_count() -> None:
    late = process("two", age=ALIVE.total_seconds() + 60, key="k1", version="0.9")
    found = platform(process("one"), late)
    assert list(reasons(found)) == ["processes"]
    assert "No heartbeat from two (for 75 s)" in reasons(found)["processes"]
    assert [status.state_of(each) for each in found.facts.processes] == ["serves", "gone"]
    assert "The heartbeat is late: two (for 9 s)" in reasons(
        platform(process("one"), process("two", age=9))
    ).get("processes", "")


def test_without_a_process_that_serves_that_is_said() -> None:
    worker = process("w", draining=True, role="worker")
    assert status.state_of(worker) == "works"
    for found in (platform(), platform(worker), platform(process(draining=True))):
        assert "No process takes calls" in reasons(found)["processes"]


def test_a_key_that_was_just_activated_need_not_be_known_everywhere() -> None:
    old = process("one", key="k1")
    assert reasons(platform(old, key=("k2", NOW - SECOND))) == {}
    assert list(reasons(platform(old, key=("k2", NOW - ALIVE - SECOND)))) == ["keys"]
    assert "manage.py init" in reasons(platform(process(), key=None))["keys"]
    unread = platform(process("one"), process("two", key=None))
    assert reasons(unread) == {}, "it has sealed nothing yet"
    (line,) = [line for line in unread.lines if line.name == "keys"]
    assert "read by 1 of 2 processes; the others" in line.text


def test_a_slow_or_full_database_is_a_reason() -> None:
    slow = platform(process(), database=DatabaseFacts(0.7, 20, 100))
    assert "The database is slow" in reasons(slow)["database"]
    full = platform(process(), database=DatabaseFacts(0.01, 90, 100))
    assert "Few connections are left" in reasons(full)["database"]
    away = platform(process(), database=DatabaseFacts(problem="It is away."), key=None, tasks=None)
    assert list(reasons(away)) == ["database"]


def test_redis_that_is_not_used_is_fine_and_one_that_is_away_is_a_reason(
    settings: Settings,
) -> None:
    away = process(warnings={"redis": "Redis is unreachable"})
    settings.MCPHOST_REDIS = False
    assert reasons(platform(away)) == {}
    settings.MCPHOST_REDIS = True
    assert reasons(platform(process())) == {}
    assert "Redis is unreachable from one" in reasons(platform(away))["redis"]


def test_queued_tasks_need_a_process_that_takes_them(queued: None) -> None:
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
def test_processes_with_old_code_are_named(other: Mapping[str, str] | None, said: str) -> None:
    found = platform(loading("one", 20, {**ECHO, **ASK}), loading("two", 60, other))
    assert said in reasons(found)["code"]
    assert "one" not in reasons(found)["code"].partition("Other processes")[0].split()


def test_a_process_of_the_same_code_is_no_reason() -> None:
    assert reasons(platform(loading("one", 20, ECHO), loading("two", 60, ECHO))) == {}
    assert reasons(platform(loading("one", 20, ECHO), loading("two", 1, None))) == {}, "just begun"
    assert reasons(platform(loading("one", 60, None))) == {}, "the only one"


def test_a_published_function_that_no_process_has_is_named() -> None:
    found = platform(loading("one", 20, ECHO), published=frozenset({"demo.echo", "gone.tool"}))
    assert "no process has the code: gone.tool." in reasons(found)["code"]


def test_processes_of_the_same_name_are_told_apart() -> None:
    """As containers that share the host's name, in each of which the process has number 1."""
    found = platform(loading("one", 60, {}), loading("one", 20, ECHO), loading("two", 30, ECHO))
    assert "Functions are missing: one (demo.echo)." in reasons(found)["code"]
    twice = platform(loading("one", 60, {}), loading("one", 50, {}), loading("two", 30, ECHO))
    assert "missing: one (demo.echo), one (demo.echo)." in reasons(twice)["code"]


def test_a_process_that_has_just_started_does_not_know_yet_what_others_have() -> None:
    others = loading("one", 60, None), loading("two", 60, None)
    assert reasons(platform(*others, settled=False)) == {}
    assert "do not say" in reasons(platform(*others))["code"]


def test_the_processes_of_another_version_than_the_newest_are_named() -> None:
    old, new = (
        replace(process(name, version=version), started_at=NOW - started * SECOND)
        for name, version, started in (("old", "0.9", 60), ("new", "1.0", 20))
    )
    said = reasons(platform(new, old))["versions"]
    assert "another version than the newest process: old (0.9)." in said
    older = reasons(platform(new, replace(old, facts={})))["versions"]
    assert "another version than the newest process: old (older)." in older


def test_many_functions_are_named_by_the_first_few() -> None:
    every = {f"many.tool{number}": "" for number in range(9)}
    found = platform(loading("one", 20, every), loading("two", 60, {}))
    assert "two (many.tool0, many.tool1, many.tool2 and 6 more)" in reasons(found)["code"]


HOSTILE = "<script>alert(1)</script>`x`\u202e\"'{{ 7 }}" + "x" * 5000


@pytest.mark.parametrize("wrong", [None, "x", 5, [], {"lag": "x"}, {"lag": None}, HOSTILE])
def test_facts_of_any_form_are_read(wrong: Any) -> None:
    facts = dict.fromkeys(FINE, wrong)
    bare = NodeRow(HOSTILE, NOW, NOW, False, SECOND, {}, {})
    found = platform(process("one"), bare, process("two", **facts))
    assert orjson.loads(orjson.dumps(found.as_json()))["processes"][1]["name"] == HOSTILE
    assert all(line.text for line in found.lines)


def test_many_processes_are_named_by_the_first_few() -> None:
    late = {"loop": {"lag": 1, "limit": 0.2}}
    found = platform(*(process(f"p{number}", **late) for number in range(9)))
    assert "p4 (1.0 s) and 4 more" in reasons(found)["event_loop"]
    assert "p5" not in reasons(found)["event_loop"]


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
def test_a_process_that_serves_alone_reports_itself(settings: Settings) -> None:
    settings.MCPHOST_ALONE = True
    ensure_ring()
    (own,) = status.read().facts.processes
    assert own.alive
    assert own.facts.keys() == FINE.keys()
    assert orjson.dumps(dict(nodes.own(NOW).facts))


@in_database
def test_a_rotation_that_a_process_has_not_read_is_seen(
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
def test_reading_takes_the_same_few_queries_for_any_number_of_processes(
    together: Callable[..., Heartbeat], django_assert_max_num_queries: Any
) -> None:
    ensure_ring()
    for _ in range(20):
        together()
    with django_assert_max_num_queries(9):
        assert len(status.read().facts.processes) == 20


@in_database
def test_what_processes_have_loaded_is_read_from_their_rows(
    together: Callable[..., Heartbeat], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_ring()
    own = nodes.heartbeat
    own._begin()
    monkeypatch.setattr(own, "functions", lambda: {**ECHO, **ASK})
    monkeypatch.setattr(own, "started_at", timezone.now() - 60 * SECOND)
    other = together()
    try:
        own.beat()
        name = nodes.own(NOW).name
        said = reasons(status.read())["code"]
        assert f"Functions are missing: {name} (demo.ask, demo.echo)." in said
        other.leave()
        own.beat()
        assert "code" not in reasons(status.read())
    finally:
        own.leave()


@in_database
def test_a_slow_database_is_measured(together: Callable[..., Heartbeat]) -> None:
    ensure_ring()
    together()
    times = iter([0.0, 3.0])
    found = status.read(lambda: next(times))
    assert "The database is slow" in reasons(found)["database"]


@in_database
@pytest.mark.postgresql
def test_a_locked_table_costs_two_seconds_and_not_the_page(
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


def test_without_the_database_this_process_is_reported() -> None:
    found = status.without_database("It is unreachable.")
    assert "It is unreachable. See whether the database runs" in reasons(found)["database"]
    assert len(found.as_json()["processes"]) == 1
