import pytest

from mcphost.observability import counters
from mcphost.observability.counters import Number


def test_every_number_is_there_from_the_start():
    snapshot = counters.snapshot()
    assert {"requests", "records_lost", "streams_open", "records_waiting"} <= set(snapshot)
    assert all(isinstance(value, int) for value in snapshot.values())


def test_a_number_rises_and_falls():
    number = Number()
    number.add()
    number.add(3)
    number.add(-1)
    assert number.value == 3


def test_what_is_added_is_seen_at_once():
    before = counters.snapshot()["feed_gaps"]
    counters.feed_gaps.add()
    assert counters.snapshot()["feed_gaps"] == before + 1


def test_a_probe_is_asked_each_time(monkeypatch):
    monkeypatch.setattr(counters, "_probes", {**counters._probes, "threads_lost": None})
    assert counters.snapshot()["threads_lost"] == 0
    answers = iter([3, 1])
    counters.measure("threads_lost", lambda: next(answers))
    assert counters.snapshot()["threads_lost"] == 3
    assert counters.snapshot()["threads_lost"] == 1


def test_a_number_outside_the_set_is_refused():
    with pytest.raises(KeyError, match="made_up"):
        counters.measure("made_up", int)
