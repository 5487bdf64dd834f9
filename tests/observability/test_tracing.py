"""Whether spans are made, and where they are sent."""

import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest

from mcphost.observability import counters, tracing
from mcphost.observability.tracing import Run, SpannedRequest
from tests.observability.collectors import Collector, attributes

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ASKED = SpannedRequest("tools/call", "2026-07-28", "1", str(uuid4()), "acme", 0.5)
RUN = Run("tools/call", "echo", "1+00000000", str(uuid4()), 1)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment configures; tracing is stopped at the end."""
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    yield collector
    tracing.stop(10)
    collector.close()


def started() -> tracing.Tracer:
    tracing.start("1.2.3")
    assert tracing.tracer is not None
    return tracing.tracer


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "x", tracing.PROTOCOLS[0]: "http/protobuf"}, True),
    ],
)
def test_tracing_is_enabled_by_the_standard_variables(environ, wanted):
    assert tracing.should_trace(environ) is wanted


def test_without_an_endpoint_no_tracer_is_started(monkeypatch):
    for name in tracing.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    tracing.start("1.2.3")
    assert tracing.tracer is None
    tracing.refused(-32603)
    tracing.stop(1)


def test_spans_reach_the_collector_with_the_attributes_of_the_conventions(collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector")
    sent = counters.spans_sent.value
    tracer = started()
    assert started() is tracer, "a second start changes nothing"
    with tracer.request(ASKED._replace(parent=PARENT)), tracer.round(RUN) as span:
        span.end_with("complete", failed=False)
    tracing.stop(10)
    by_name = {span.name: span for span in collector.spans}
    request, run = by_name["tools/call"], by_name["execute_tool echo"]
    assert attributes(request) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "1",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "mcphost.tenant": "acme",
        "mcphost.request": ASKED.http_request_id,
    }
    assert attributes(run) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "mcphost.version": RUN.version,
        "mcphost.call": RUN.call,
        "mcphost.round": 1,
        "mcphost.outcome": "complete",
    }
    assert {request.trace_id.hex(), run.trace_id.hex()} == {TRACE}
    assert request.parent_span_id.hex() == "00f067aa0ba902b7"
    assert run.parent_span_id == request.span_id
    assert request.kind == request.SPAN_KIND_SERVER
    assert request.status.code == request.status.STATUS_CODE_UNSET
    assert request.start_time_unix_nano + 4e8 < run.start_time_unix_nano
    assert collector.headers[0]["authorization"] == "Bearer collector"
    assert counters.spans_sent.value == sent + 2


def test_stopping_sends_the_remaining_spans_and_ends_tracing(collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    tracer = started()
    for _ in range(20):
        with tracer.request(ASKED):
            pass
    assert collector.spans == []
    tracing.stop(10)
    assert len(collector.spans) == 20
    assert tracing.tracer is None


def test_a_failing_collector_is_logged_once_and_its_recovery_once(collector, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    lost = counters.spans_lost.value
    collector.status = 400
    tracer = started()
    for _ in range(3):
        with tracer.request(ASKED):
            pass
        collector.heard()
    collector.status = 200
    with tracer.request(ASKED):
        pass
    collector.heard()
    tracing.stop(10)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("mcphost")]
    assert len(said) == 2
    assert said[0].startswith("traces cannot be sent (calls are not affected): ")
    assert "400" in said[0]
    assert said[1] == "traces can be sent again"
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert counters.spans_lost.value == lost + 3
