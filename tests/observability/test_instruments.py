"""Counters, gauges and histograms."""

import pytest

from mcphost.observability.instruments import OTHER, Metrics, Number


def test_a_number_rises_and_falls():
    number = Number()
    number.add()
    number.add(3)
    number.add(-1)
    assert number.value == 3


def test_a_declared_number_is_read_by_name():
    metrics = Metrics()
    metrics.counter("seen", "Seen.").add(2)
    metrics.gauge("open", "Open.").add()
    assert metrics.snapshot() == {"seen": 2, "open": 1}


def test_numbers_are_told_apart_by_their_labels():
    metrics = Metrics()
    numbers = metrics.counters("polls", "Polls.", result=("read", "failed"))
    numbers.add("read")
    numbers.add("read")
    assert [tuple(sample) for sample in metrics.families["polls"].read()] == [
        (("read",), 2, ()),
        (("failed",), 0, ()),
    ]


def test_a_value_outside_of_the_closed_set_is_called_other():
    metrics = Metrics()
    numbers = metrics.counters("polls", "Polls.", result=("read",))
    for stranger in ("canary-1", "canary-2", ""):
        numbers.add(stranger)
    assert {sample.labels: sample.amount for sample in metrics.families["polls"].read()} == {
        ("read",): 0,
        (OTHER,): 3,
    }


def test_strange_values_do_not_make_a_histogram_grow():
    known = Metrics().histograms("seconds", "Seconds.", (1, 2), method=("list",), status=("ok",))
    for number in range(100):
        known.observe(0.5, f"canary-{number}", "ok")
    known.observe(0.5, "list", "ok")
    assert set(known.series) == {(OTHER, "ok"), ("list", "ok")}
    assert known.count() == 101


@pytest.mark.parametrize(
    ("amount", "bucket"), [(0, 0), (0.5, 0), (1, 0), (1.0001, 1), (2, 1), (2.5, 2), (1e9, 2)]
)
def test_a_bucket_holds_what_is_up_to_its_bound(amount, bucket):
    metrics = Metrics()
    metrics.histograms("seconds", "Seconds.", (1, 2)).observe(amount)
    (sample,) = metrics.families["seconds"].read()
    assert sample.buckets == tuple(int(place == bucket) for place in range(3))
    assert sample.amount == amount


@pytest.mark.parametrize("values", [(), ("read", "read")])
def test_a_wrong_number_of_values_is_an_error_of_the_room(values):
    metrics = Metrics()
    with pytest.raises(ValueError, match="argument"):
        metrics.counters("polls", "Polls.", result=("read",)).add(*values)
    with pytest.raises(ValueError, match="argument"):
        metrics.histograms("seconds", "Seconds.", (1,), result=("read",)).observe(1, *values)


def test_who_knows_is_asked_each_time():
    metrics = Metrics()
    metrics.probed_gauge("lost", "Lost.")
    assert metrics.snapshot() == {"lost": 0}
    answers = iter([3, 1])
    metrics.measure("lost", lambda: next(answers))
    assert [metrics.snapshot()["lost"], metrics.snapshot()["lost"]] == [3, 1]


def test_what_was_not_declared_is_not_asked_for():
    with pytest.raises(KeyError, match="made_up"):
        Metrics().measure("made_up", int)


def test_no_name_is_declared_twice():
    metrics = Metrics()
    metrics.counter("seen", "Seen.")
    with pytest.raises(ValueError, match="seen"):
        metrics.gauge("seen", "Seen, too.")
