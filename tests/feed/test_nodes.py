"""Which processes serve, by the row that each writes."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.test import override_settings

from mcphost.feed import nodes
from mcphost.feed.loop import Loop
from mcphost.feed.models import Node
from mcphost.feed.nodes import ALIVE, BEAT_SECONDS, KEPT, STEADY_SECONDS, Heartbeat
from tests.feed.test_loop import HandClock

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


def age(heartbeat: Heartbeat, by: timedelta) -> None:
    assert Node.objects.filter(id=heartbeat._id).update(seen_at=Now() - by)


def becomes(test: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 20
    while not test() and time.monotonic() < ends:
        threading.Event().wait(0.01)  # between looks at another thread
    return test()


def test_a_process_counts_live_processes_that_do_not_drain() -> None:
    one, two, three = Heartbeat(), Heartbeat(), Heartbeat()
    for each in (one, two, three, one):
        each.beat()
    assert (one.live(), three.live()) == (3, 3)
    two.drains = lambda: True
    two.beat()
    one.beat()
    assert (one.live(), two.live()) == (2, 2)
    age(three, ALIVE + SECOND)
    one.beat()
    assert one.live() == 1
    three.beat()
    one.beat()
    assert one.live() == 2
    assert [row.draining for row in nodes.rows()].count(True) == 1


def test_threads_that_beat_at_once_write_one_row() -> None:
    heartbeat, begin = Heartbeat(), threading.Barrier(8, timeout=20)

    def beat() -> None:
        begin.wait()
        try:
            heartbeat.beat()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        beats = [threads.submit(beat) for _ in range(8)]
    assert [each.exception() for each in beats] == [None] * 8
    assert heartbeat.live() == Node.objects.count() == 1


def test_a_process_counts_other_processes_with_free_capacity() -> None:
    one, two, three = Heartbeat(), Heartbeat(), Heartbeat()
    one.beat()
    assert one.free() == 0, "it does not count itself"
    for each in (two, three, one):
        each.beat()
    assert one.free() == 2
    two.overloaded = lambda: True
    two.beat()
    one.beat()
    assert (one.free(), one.live()) == (1, 3)
    three.drains = lambda: True
    three.beat()
    one.beat()
    assert one.free() == 0
    two.beat()
    assert two.free() == 1, "one is not overloaded"
    two.overloaded = lambda: False
    two.beat()
    one.beat()
    assert one.free() == 1


def test_an_unregistered_process_is_no_longer_counted_and_may_return() -> None:
    one, two = Heartbeat(), Heartbeat()
    assert one.live() == nodes.live() == 1, "one that never beat counts itself"
    one.beat()
    two.beat()

    def unreachable(*_: object) -> None:
        raise DatabaseError("away")

    with connection.execute_wrapper(unreachable), pytest.raises(DatabaseError):
        two.beat()
    assert two.live() == 2, "without a database what was known stays"
    two.unregister()
    one.beat()
    assert one.live() == 1
    two.beat()
    one.beat()
    assert one.live() == 2
    two.unregister()
    one.drains = lambda: True
    one.beat()
    assert one.live() == 1, "one that drains alone still counts itself"


def test_the_first_heartbeat_of_a_process_deletes_rows_of_long_dead_ones() -> None:
    dead, dying = Heartbeat(), Heartbeat()
    dead.beat()
    dying.beat()
    age(dead, KEPT + SECOND)
    age(dying, KEPT - SECOND)
    Heartbeat().beat()
    left = set(Node.objects.values_list("id", flat=True))
    assert dead._id not in left
    assert dying._id in left


def test_a_process_judges_others_dead_only_after_beating_for_a_whole_lease() -> None:
    clock = HandClock()
    heartbeat = Heartbeat(clock)
    assert heartbeat.can_judge(), "what never beats serves nothing, or alone"
    lease = ALIVE.total_seconds()
    heartbeat.beat()
    beats = 0.0
    while beats < lease:
        assert not heartbeat.can_judge()
        clock.now += BEAT_SECONDS
        heartbeat.beat()
        beats += BEAT_SECONDS
    assert heartbeat.can_judge()
    clock.now += STEADY_SECONDS + 1
    assert not heartbeat.can_judge(), "it could not beat, and perhaps none could"
    heartbeat.beat()
    assert not heartbeat.can_judge()
    for _ in range(int(lease // BEAT_SECONDS)):
        clock.now += BEAT_SECONDS
        heartbeat.beat()
    assert heartbeat.can_judge()
    heartbeat.unregister()
    assert heartbeat.can_judge()


@override_settings(MCPHOST_ALONE=False, MCPHOST_FEED_SECONDS=0.01)
def test_the_change_log_thread_sends_heartbeats_and_unregisters_at_its_end() -> None:
    clock, heartbeat = HandClock(), Heartbeat()
    loop = Loop(clock, heartbeat)
    loop.start()
    assert becomes(lambda: Node.objects.filter(id=heartbeat._id).exists())
    age(heartbeat, ALIVE + SECOND)
    assert not any(row.alive for row in nodes.rows())
    clock.now += BEAT_SECONDS
    assert becomes(lambda: [row.alive for row in nodes.rows()] == [True])
    loop.stop()
    assert not Node.objects.exists()


def test_heartbeats_carry_facts_and_a_dead_process_is_listed_for_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, two = Heartbeat(), Heartbeat()
    one.report = lambda: {"version": "1", "loop": {"lag": 0.5}}
    two.report = lambda: {"a": 1 // 0}
    for each in (one, two):
        each.beat()
    first, second = nodes.rows()
    assert (first.facts, second.facts) == ({"version": "1", "loop": {"lag": 0.5}}, {})
    assert second.alive
    assert "could not report its facts" in caplog.text
    one.report = lambda: {"version": "2"}
    one.beat()
    assert [row.facts.get("version") for row in nodes.rows()] == ["2", None]
    age(one, ALIVE + SECOND)
    assert [row.alive for row in nodes.rows()] == [False, True]
    age(one, KEPT + SECOND)
    assert [row.facts for row in nodes.rows()] == [{}]
