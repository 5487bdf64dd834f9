"""Metrics and traces of a real server."""

from secrets import token_hex
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import raw
from tests.e2e.handmade_calls import METRICS_TOKEN, wait_until
from tests.e2e.processes import Server
from tests.observability.collectors import Collector, attributes

ECHO = raw.call("echo", {"text": "watched"})


def scrape(server: Server) -> dict[str, float]:
    reply = raw.send(server, "GET", "/metrics", authorization=f"Bearer {METRICS_TOKEN}")
    assert reply.status == 200
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(reply.body.decode()):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


@pytest.fixture(params=["server", "daphne"])
def either(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


def test_calls_appear_in_the_metrics_and_in_the_trace_collector(
    either: Server, collector: Collector
) -> None:
    server, trace = either, token_hex(16)
    echo = raw.call("echo", {"text": "watched"}, traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    assert raw.send(server, "GET", "/metrics").status == 401
    before = scrape(server)
    for _ in range(3):
        assert raw.post(server, echo, server.token).status == 200
    after = scrape(server)
    for name in ("mcphost_request_duration_seconds_count", "mcphost_round_duration_seconds_count"):
        assert after[name] == before.get(name, 0) + 3
    assert after["mcphost_records_written_total"] >= before["mcphost_records_written_total"] + 3
    assert after["mcphost_problem"] == 0
    assert after["process_resident_memory_bytes"] > 0
    wait_until(lambda: [span.name for span in _of(collector, trace)].count("tools/call") == 3)
    found = {attributes(span).get("mcphost.tenant", "demo") for span in _of(collector, trace)}
    assert found == {"demo"}


def _of(collector: Collector, trace: str) -> list[Any]:
    return [span for span in collector.spans if span.trace_id.hex() == trace]
