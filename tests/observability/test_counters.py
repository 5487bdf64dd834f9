"""The metrics of the process."""

from mcphost.observability import counters
from mcphost.observability.instruments import OTHER_LABEL


def requests_seen() -> dict[tuple[str, ...], float]:
    return {s.labels: sum(s.buckets) for s in counters.metrics.families[REQUESTS].read()}


REQUESTS = "request_duration_seconds"


def test_a_request_counts_as_running_until_it_ends_and_unknown_methods_are_not_labels():
    before = counters.snapshot()["requests_running"]
    counters.requests.add()
    assert counters.snapshot()["requests_running"] == before + 1
    counters.request_ended(0.1, "canary/method", 404)
    assert counters.snapshot()["requests_running"] == before
    assert (OTHER_LABEL, "4xx") in requests_seen()
    assert "canary" not in str(requests_seen())
