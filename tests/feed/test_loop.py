"""The reader of the change log, against a real database and real concurrent writers."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcphost.feed import loop as loop_module
from mcphost.feed.loop import ChangeNews, Loop
from mcphost.feed.models import Change, Counter
from mcphost.feed.pruning import prune
from mcphost.feed.services import announce
from mcphost.observability import counters

pytestmark = pytest.mark.django_db(transaction=True)


class HandClock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """A loop with one subscriber that keeps the changes it receives."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.loop = Loop(self.clock)
        self.heard: list[ChangeNews] = []
        self.gaps = 0
        self.loop.subscribe("tool", self.heard.append)
        self.loop.on_gap(self._gap)

    def _gap(self) -> None:
        self.gaps += 1

    @property
    def seqs(self) -> list[int]:
        return [news.seq for news in self.heard]


@pytest.fixture
def reader() -> Iterator[Reader]:
    """A reader at the end of the change log."""
    made = Reader()
    made.loop.poll()
    made.gaps = 0
    yield made
    made.loop.stop()


def change(what: str = "tool", **columns: Any) -> int:
    with transaction.atomic():
        return announce(what, **columns)


def age(seq: int) -> None:
    Change.objects.filter(seq__lte=seq).update(at=timezone.now() - timedelta(days=2))


def wait_until(condition: Any) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)


def test_subscribers_receive_each_subscribed_change_once_with_all_fields(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "READ_AT_ONCE", 3)
    tenant = uuid4()
    first = change(tenant=tenant, object_id="x")
    change("token")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        announce("tool")  # what was rolled back is never heard and leaves no hole
        raise ZeroDivisionError
    last = change()
    for _ in range(3):
        assert reader.loop.poll()
    expected = [ChangeNews(first, tenant, "tool", "x"), ChangeNews(last, None, "tool", "")]
    assert reader.heard == expected
    assert last == first + 2
    seqs = [change() for _ in range(10)]  # more than one reading
    reader.loop.poll()
    assert reader.seqs[2:] == seqs
    assert reader.gaps == 0


def test_the_first_read_of_an_existing_change_log_is_a_gap() -> None:
    change()
    late = Reader()
    late.loop.poll()
    assert (late.seqs, late.gaps) == ([], 1)
    seq = change()
    late.loop.poll()
    assert (late.seqs, late.gaps) == ([seq], 1)


def _prune_some(seqs: list[int]) -> None:
    age(seqs[1])
    assert prune(timezone.now()) == 2
    assert prune(timezone.now()) == 0


def _prune_all(seqs: list[int]) -> None:
    age(seqs[-1])
    assert prune(timezone.now()) == len(seqs)


@pytest.mark.parametrize(
    "lose", [_prune_some, _prune_all, lambda seqs: Change.objects.filter(seq=seqs[1]).delete()]
)
def test_a_reader_that_missed_changes_reports_one_gap_and_continues(
    reader: Reader, lose: Callable[[list[int]], object]
) -> None:
    lose([change() for _ in range(5)])
    reader.loop.poll()
    assert reader.gaps == 1
    reader.heard.clear()
    following = change()
    reader.loop.poll()
    assert reader.seqs == [following]
    assert reader.gaps == 1


def test_pruning_causes_no_gap_for_a_reader_that_is_up_to_date(reader: Reader) -> None:
    seqs = [change() for _ in range(5)]
    reader.loop.poll()
    age(seqs[-1])
    assert prune(timezone.now()) == 5
    reader.loop.poll()
    seqs.append(change())
    reader.loop.poll()
    assert reader.seqs == seqs
    assert reader.gaps == 0


@pytest.mark.parametrize("further", [0, 1, 3])
def test_a_restarted_counter_is_a_gap(reader: Reader, further: int) -> None:
    for _ in range(2):
        change()
    reader.loop.poll()
    Change.objects.all().delete()
    Counter.objects.all().delete()
    for _ in range(further):
        change()
    reader.loop.poll()
    assert reader.gaps == 1
    seq = change()
    reader.loop.poll()
    assert reader.seqs[-1] == seq == further + 1
    assert reader.gaps == 1


def test_an_exception_in_one_subscriber_does_not_stop_others(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[ChangeNews] = []

    def broken(*news: ChangeNews) -> None:
        raise ZeroDivisionError

    reader.loop.subscribe("member", broken)
    reader.loop.subscribe("member", heard.append)
    reader.loop.on_gap(broken)
    change("member")
    change("member")
    with caplog.at_level(logging.ERROR):
        assert reader.loop.poll()
        assert len(heard) == 2
        Counter.objects.all().delete()
        assert reader.loop.poll()
    assert caplog.text.count("a subscriber of the change log raised") == 3


def test_the_change_log_is_a_problem_after_5_seconds_without_a_read() -> None:
    fresh = Reader()
    fresh.loop.stop()  # what never ran
    assert fresh.loop.problem() == "the change log has not been read yet"
    assert fresh.loop.silent() == 0
    fresh.loop.poll()
    fresh.clock.now += 4.9
    assert fresh.loop.problem() is None
    fresh.clock.now += 0.1
    assert fresh.loop.silent() == pytest.approx(5)
    assert fresh.loop.problem() == "the change log has not been read for 5 s"
    fresh.loop.poll()
    assert fresh.loop.problem() is None
    assert fresh.loop.silent() == 0


class Failing:
    """Makes the database refuse the given number of the loop's reads."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times = times
        self.error = error

    def __call__(self, execute: Any, sql: str, *args: Any) -> Any:
        if self.times and "FROM feed_counter k" in sql:
            self.times -= 1
            raise self.error
        return execute(sql, *args)


def test_the_reader_misses_no_change_after_a_database_error(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    seq = change()
    polls = {result: counters.change_log_polls.series[(result,)] for result in ("read", "failed")}
    before = {result: number.value for result, number in polls.items()}
    changes = counters.change_log_changes.value
    with connection.execute_wrapper(Failing(2, OperationalError("secret words"))):
        reader.clock.now += 5
        assert reader.loop.poll() is False
        assert reader.loop.poll() is False
        assert reader.loop.problem() is not None
        assert reader.loop.poll() is True
    assert reader.loop.problem() is None
    assert reader.seqs == [seq]
    assert "secret words" not in caplog.text
    assert polls["failed"].value == before["failed"] + 2
    assert polls["read"].value == before["read"] + 1
    assert counters.change_log_changes.value == changes + 1


def test_the_thread_polls_at_once_when_woken_and_ends_when_stopped(reader: Reader) -> None:
    reader.loop.start()
    thread = reader.loop._thread
    reader.loop.start()
    assert reader.loop._thread is thread
    seq = change()
    reader.loop.wake()
    wait_until(lambda: reader.seqs == [seq])
    reader.loop.stop()
    assert thread is not None
    assert not thread.is_alive()
    reader.loop.start()
    seq = change()
    wait_until(lambda: reader.seqs[-1] == seq)


def test_the_thread_survives_an_unexpected_exception(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    met = threading.Event()

    def surprise(now: Any) -> int:
        met.set()
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "prune", surprise)
        reader.loop.start()
        assert met.wait(20)
    seq = change()
    wait_until(lambda: reader.seqs == [seq])
    assert "goes on after an error" in caplog.text


def test_the_reader_replaces_a_lost_connection_and_misses_no_change(reader: Reader) -> None:
    if connection.vendor == "postgresql":
        other = connections.create_connection("default")
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        other.close()
        assert reader.loop.poll() is False
    else:
        connection.close()
    assert reader.loop.poll() is True
    seq = change()
    reader.loop.poll()
    assert reader.seqs == [seq]


@example(writers=6, changes=15, pollers=3, seed=1)
@given(
    writers=st.integers(1, 5),
    changes=st.integers(1, 6),
    pollers=st.integers(0, 3),
    seed=st.integers(0, 2**16),
)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_readers_skip_no_change_and_numbers_follow_the_order_of_commits(
    writers: int, changes: int, pollers: int, seed: int
) -> None:
    Change.objects.all().delete()
    Counter.objects.all().delete()
    made = Reader()
    made.loop.poll()
    made.gaps = 0
    _race(made, writers, changes, seed, pollers)


class _Race:
    """Many threads announce and delay their commit or rollback, while others poll."""

    def __init__(self, reader: Reader, seed: int) -> None:
        self.reader = reader
        self.seed = seed
        self.committed: list[int] = []
        self.errors: list[BaseException] = []
        self.finished = threading.Event()

    def write(self, number: int, changes: int) -> None:
        chance = random.Random(self.seed * 100 + number)
        for _ in range(changes):
            with transaction.atomic():
                seq = announce("tool", tenant=UUID(int=number), object_id=str(number))
                time.sleep(chance.random() / 500)
                if chance.random() < 0.2:
                    transaction.set_rollback(True)
                else:
                    transaction.on_commit(partial(self.committed.append, seq))

    def poll(self) -> None:
        while not self.finished.is_set():
            assert self.reader.loop.poll()

    def thread(self, work: Any, *args: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*args)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.errors.append(error)
            finally:
                connections.close_all()

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread


def _race(reader: Reader, writers: int, changes: int, seed: int, pollers: int) -> None:
    race = _Race(reader, seed)
    reader.loop.start()
    polling = [race.thread(race.poll) for _ in range(pollers)]
    for thread in [race.thread(race.write, number, changes) for number in range(writers)]:
        thread.join(60)
    race.finished.set()
    for thread in polling:
        thread.join(60)
    reader.loop.stop()
    reader.loop.poll()
    assert race.errors == []
    assert reader.gaps == 0
    assert reader.seqs == sorted(race.committed), "each once, in order, none skipped"
    numbers = list(Change.objects.values_list("seq", flat=True))
    assert numbers == list(range(1, len(numbers) + 1)), "no holes"
