"""Counters, gauges and histograms."""

import pytest

from mcphost.observability.instruments import OTHER_LABEL, Metrics


def test_counters_and_gauges_rise_and_fall_and_are_read_by_name():
    metrics = Metrics()
    metrics.counter("seen", "Seen.").add(2)
    gauge = metrics.gauge("open", "Open.")
    gauge.add(3)
    gauge.add()
    gauge.add(-2)
    assert metrics.snapshot() == {"seen": 2, "open": 2}


def test_counts_are_kept_per_label_and_undeclared_labels_count_as_other():
    metrics = Metrics()
    numbers = metrics.counters("polls", "Polls.", result=("read", "failed"))
    for label in ("read", "read", "canary-1", "canary-2", ""):
        numbers.add(label)
    samples = [tuple(sample) for sample in metrics.families["polls"].read()]
    assert samples == [(("read",), 2, ()), (("failed",), 0, ()), ((OTHER_LABEL,), 3, ())]


def test_invalid_values_do_not_make_a_histogram_grow():
    known = Metrics().histograms("seconds", "Seconds.", (1, 2), method=("list",), status=("ok",))
    for number in range(100):
        known.observe(0.5, f"canary-{number}", "ok")
    known.observe(0.5, "list", "ok")
    assert set(known.series) == {(OTHER_LABEL, "ok"), ("list", "ok")}
    assert known.count() == 101


@pytest.mark.parametrize("values", [(), ("read", "read")])
def test_a_wrong_number_of_label_values_raises_an_error(values):
    metrics = Metrics()
    with pytest.raises(ValueError, match="argument"):
        metrics.counters("polls", "Polls.", result=("read",)).add(*values)
    with pytest.raises(ValueError, match="argument"):
        metrics.histograms("seconds", "Seconds.", (1,), result=("read",)).observe(1, *values)
