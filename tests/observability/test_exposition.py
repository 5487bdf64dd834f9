"""The metrics as Prometheus reads them."""

from contextlib import ExitStack

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

from mcphost.observability import counters, exposition, health

OPEN = "application/openmetrics-text; version=1.0.0"


def sample(name: str, **labels: str) -> float | None:
    text = exposition.render("")[0].decode()
    found = [
        s.value for f in plain(text) for s in f.samples if s.name == name and s.labels == labels
    ]
    return found[0] if found else None


@pytest.mark.parametrize(("accept", "parse"), [("", plain), (OPEN, open_metrics)])
def test_both_formats_can_be_parsed_and_contain_every_metric(accept, parse):
    counters.request_ended(0.1, "tools/call", 200)
    body, _ = exposition.render(accept)
    names = {family.name for family in parse(body.decode())}
    ours = {exposition.PREFIX + name for name in counters.metrics.families}
    assert ours <= names
    assert {"process_cpu_seconds", "python_gc_collections", "mcphost_problem"} <= names


def test_counters_and_cumulative_buckets_show_what_was_counted():
    lost = sample("mcphost_records_lost_total")
    assert lost is not None
    counters.records_lost.add(2)
    assert sample("mcphost_records_lost_total") == lost + 2
    family = "mcphost_commit_rows"
    before = {le: sample(f"{family}_bucket", le=le) or 0 for le in ("1.0", "5.0", "+Inf")}
    total, count = sample(f"{family}_sum") or 0, sample(f"{family}_count") or 0
    for rows in (1, 4, 5000):
        counters.committed(rows, 0.01)
    after = {le: sample(f"{family}_bucket", le=le) for le in before}
    assert after == {"1.0": before["1.0"] + 1, "5.0": before["5.0"] + 2, "+Inf": before["+Inf"] + 3}
    assert sample(f"{family}_sum") == total + 5005
    assert sample(f"{family}_count") == count + 3


def test_failing_health_probes_appear_as_metrics():
    with ExitStack() as removals:
        removals.callback(health.register("weather", lambda: "it is raining"))
        removals.callback(health.register("coffee", lambda: None))
        assert sample("mcphost_problem", probe="weather") == 1
        assert sample("mcphost_problem", probe="coffee") == 0
