"""Metrics and traces of a real server."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import raw
from tests.e2e.processes import Server, serving
from tests.observability.collectors import Collector, attributes

TOKEN = "a-token-for-prometheus"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ECHO = raw.call("echo", {"text": "watched"}, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")


def scrape(server: Server) -> dict[str, float]:
    """Every number by its name, those of all labels together."""
    reply = raw.send(server, "GET", "/metrics", authorization=f"Bearer {TOKEN}")
    assert reply.status == 200
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(reply.body.decode()):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


def test_without_a_token_set_a_server_has_no_metrics(any_server: Server) -> None:
    assert raw.send(any_server, "GET", "/metrics").status == 404


@pytest.mark.parametrize("kind", ["uvicorn", "daphne"])
def test_calls_are_seen_in_the_metrics_and_by_the_collector(home: Path, kind: str) -> None:
    collector = Collector()
    variables = {"MCPHOST_METRICS_TOKEN": TOKEN, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    try:
        with serving(kind, home, **variables) as server:
            assert raw.send(server, "GET", "/metrics").status == 401
            before = scrape(server)
            for _ in range(3):
                assert raw.post(server, ECHO, server.token).status == 200
            after = scrape(server)
    finally:
        collector.close()
    for name in ("mcphost_request_duration_seconds_count", "mcphost_round_duration_seconds_count"):
        assert after[name] == before.get(name, 0) + 3
    assert after["mcphost_records_written_total"] >= before["mcphost_records_written_total"] + 3
    assert after["mcphost_problem"] == 0
    assert after["process_resident_memory_bytes"] > 0
    assert [span.name for span in collector.spans].count("tools/call") == 3
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert {attributes(s).get("mcphost.tenant", "demo") for s in collector.spans} == {"demo"}


def test_a_collector_that_is_not_there_costs_nothing_but_a_line_of_the_log(home: Path) -> None:
    gone = Collector()
    gone.close()
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": gone.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with serving("uvicorn", home, **variables) as server:
        for _ in range(3):
            assert raw.post(server, ECHO, server.token).status == 200
    assert server.log.read_text().count("traces cannot be sent") == 1
