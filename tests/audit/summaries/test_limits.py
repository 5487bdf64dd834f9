"""One transaction, one pass and one reader do a limited part of the work, and the rest is done later."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.utils import timezone

from mcphost.audit.models import CallSummary, Following, RollUp
from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.audit.summaries import follower, rollups
from mcphost.audit.summaries.bulk_sql import fetch
from mcphost.audit.summaries.follower import LEASE, Follower, catch_up
from mcphost.audit.summaries.rollups import KEPT, Bucket, Resolution
from tests.audit.recorded_calls import MINUTE, asking, follow, keep, plain
from tests.audit.summaries.test_follower import check

SECOND = timedelta(seconds=1)

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)

pytestmark = pytest.mark.django_db


def test_a_pass_that_pauses_keeps_its_lease_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    follow()
    monkeypatch.setattr(follower, "AT_ONCE", 1)
    clock = [timezone.now()]
    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    keep(*(plain() for _ in range(4)))
    one, other = Follower(), Follower()
    took_over = []

    def pause(seconds: float) -> None:
        clock[0] += LEASE / 2
        took_over.append(other._lease(clock[0]))

    assert one.step(pause).written == 4
    assert took_over == [False] * len(took_over)
    assert len(took_over) > 4
    check(clock[0])


@pytest.mark.parametrize("leased", [-MINUTE, MINUTE, None])
def test_a_reader_summarizes_a_few_calls_and_leaves_more_to_the_follower(leased, monkeypatch):
    now = timezone.now()
    follow()
    Following.objects.update(leased_until=leased and now + leased)
    monkeypatch.setattr(follower, "AT_ONCE", 2)
    folds = Following.objects.get().folds
    keep(plain(), plain())
    catch_up(now)
    assert CallSummary.objects.count() == 2
    if leased == MINUTE:
        assert Following.objects.get().folds == folds, "roll-ups are left to that process, too"
    keep(*(plain() for _ in range(3)))
    catch_up(now)
    assert CallSummary.objects.count() == 2
    Following.objects.update(leased_until=None)
    assert follow() == 3
    check()


@contextmanager
def another_process_writes() -> Iterator[Any]:
    """Hold the lock under which summaries are written; the cursor that is yielded ends that with a rollback."""
    with (
        closing(connections.create_connection(DEFAULT_DB_ALIAS)) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM audit_following FOR UPDATE")
        yield cursor


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_reader_waits_for_a_process_that_is_writing_summaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "LOCK_TIMEOUT", "60s")
    follow()
    keep(plain(), plain())

    def read() -> None:
        catch_up(timezone.now())
        connection.close()

    with another_process_writes() as writing, ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read)
        until = time.monotonic() + 30
        while not fetch(WAITING):
            assert time.monotonic() < until, "the reader does not wait"
        writing.execute("ROLLBACK")
        reading.result(timeout=30)
    assert CallSummary.objects.count() == 2


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_reader_stops_waiting_for_the_writing_process_at_its_lock_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "LOCK_TIMEOUT", "1ms")
    follow()
    keep(plain(), plain())
    with another_process_writes():
        catch_up(timezone.now())
    assert CallSummary.objects.count() == 0


def test_the_follower_and_not_readers_marks_calls_under_a_lost_key_in_portions(monkeypatch):
    monkeypatch.setattr(follower, "DUE_AT_ONCE", 2)
    keep(*(asking() for _ in range(5)))
    follow()
    facts = {"compromised": True, "retired": ["k1"]}
    record("key.rotated", actor=Actor.person(7, "sam"), target="k2", facts=facts)
    catch_up(timezone.now())
    lost = CallSummary.objects.filter(state="lost")
    assert lost.count() == 0
    one = Follower()
    assert [(one.step().more, lost.count()) for _ in range(3)] == [(True, 2), (True, 4), (False, 5)]
    assert Following.objects.get().losses == 1
    check()


def test_a_bucket_is_pruned_after_the_retention_of_its_resolution() -> None:
    keep(plain(), plain(ago=timedelta(days=3)))
    follow()
    opened = 1 << 40
    Following.objects.update(open_minute=opened, open_hour=opened, open_day=opened)
    for resolution in Resolution.MINUTE, Resolution.HOUR, Resolution.DAY:
        rows = RollUp.objects.filter(resolution=resolution)
        number = rows.order_by("bucket").values_list("bucket", flat=True)[0]
        bucket = Bucket(resolution, number)
        ends = datetime.fromtimestamp(bucket.begins, UTC) + KEPT[resolution]
        while rollups.prune(ends):
            pass
        assert rows.filter(bucket=number).exists()
        assert rollups.prune(ends + timedelta(seconds=resolution.seconds)) > 0
        assert not rows.filter(bucket=number).exists()
