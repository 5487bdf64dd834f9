"""Counters, gauges and histograms."""

import pytest

from mcphost.observability.instruments import OTHER_LABEL, Metrics


def test_a_declared_number_rises_falls_and_is_read_by_name():
    metrics = Metrics()
    metrics.counter("seen", "Seen.").add(2)
    gauge = metrics.gauge("open", "Open.")
    gauge.add(3)
    gauge.add()
    gauge.add(-2)
    assert metrics.snapshot() == {"seen": 2, "open": 2}


def test_numbers_are_told_apart_by_their_labels_and_a_strange_one_is_called_other():
    metrics = Metrics()
    numbers = metrics.counters("polls", "Polls.", result=("read", "failed"))
    for label in ("read", "read", "canary-1", "canary-2", ""):
        numbers.add(label)
    samples = [tuple(sample) for sample in metrics.families["polls"].read()]
    assert samples == [(("read",), 2, ()), (("failed",), 0, ()), ((OTHER_LABEL,), 3, ())]


def test_strange_values_do_not_make_a_histogram_grow():
    known = Metrics().histograms("seconds", "Seconds.", (1, 2), method=("list",), status=("ok",))
    for number in range(100):
        known.observe(0.5, f"canary-{number}", "ok")
    known.observe(0.5, "list", "ok")
    assert set(known.series) == {(OTHER_LABEL, "ok"), ("list", "ok")}
    assert known.count() == 101


@pytest.mark.parametrize("values", [(), ("read", "read")])
def test_a_wrong_number_of_values_is_an_error_of_the_room(values):
    metrics = Metrics()
    with pytest.raises(ValueError, match="argument"):
        metrics.counters("polls", "Polls.", result=("read",)).add(*values)
    with pytest.raises(ValueError, match="argument"):
        metrics.histograms("seconds", "Seconds.", (1,), result=("read",)).observe(1, *values)
