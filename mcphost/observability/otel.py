"""The spans of requests, rounds and outgoing requests, with their attributes; sent by OTLP over HTTP.

OpenTelemetry's SDK sends them in batches, from a thread of its own.

Names and attributes follow the semantic conventions for MCP; attributes that these do not define
begin with `mcphost.`. Spans never contain arguments, results, messages, tokens or addresses.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcphost.observability import context, counters, labels
from mcphost.observability.tracing import Run, SpannedRequest

OTHER_METHOD = "_OTHER"
MAX_ID = 128
# By method: the first word of the span's name, and the attribute for the primitive's name.
VERBS = {
    "tools/call": ("execute_tool", "gen_ai.tool.name"),
    "prompts/get": ("get_prompt", "gen_ai.prompt.name"),
    "resources/read": ("read_resource", "mcphost.primitive"),
    "completion/complete": ("complete", "mcphost.primitive"),
}

log = logging.getLogger(__name__)

_propagator = TraceContextTextMapPropagator()


class TraceIdGenerator(RandomIdGenerator):
    """Gives a new trace of a request the trace id of the request's log lines and records."""

    def generate_trace_id(self) -> int:
        facts = context.current()
        return int(facts.trace, 16) if facts is not None else super().generate_trace_id()


class RequestSpan:
    """The span of a request, or of a round in it."""

    def __init__(self, span: trace.Span, request_span: trace.Span | None = None) -> None:
        self._spans = [span] if request_span is None else [span, request_span]

    def end_with(self, outcome: str, *, failed: bool) -> None:
        """Set the round's outcome; a failure also on the request: its response may not show it."""
        self._spans[0].set_attribute("mcphost.outcome", outcome)
        for span in self._spans if failed else ():
            _fail(span, outcome)


class Traces:
    """Implements `tracing.Tracer` with a tracer provider of its own, not the global one."""

    def __init__(self, processor: SpanProcessor, resource: Resource) -> None:
        self._processor = processor
        provider = TracerProvider(
            resource=resource, id_generator=TraceIdGenerator(), shutdown_on_exit=False
        )
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("mcphost")

    @contextmanager
    def request(self, request: SpannedRequest) -> Iterator[RequestSpan]:
        method = request.method if request.method in labels.METHODS else OTHER_METHOD
        links = []
        if request.http_parent is not None:  # the HTTP request's trace differs from the message's
            there = trace.get_current_span(_remote(request.http_parent, None)).get_span_context()
            links = [Link(there)] if there.is_valid else []
        span = self._tracer.start_span(
            method,
            context=_remote(request.parent, request.state),
            kind=SpanKind.SERVER,
            links=links,
            start_time=time.time_ns() - int(request.seconds * 1e9),
            attributes={
                "mcp.method.name": method,
                "mcp.protocol.version": request.revision,
                "jsonrpc.request.id": request.id[:MAX_ID],
                "network.transport": "tcp",
                "network.protocol.name": "http",
                "mcphost.tenant": request.tenant,
                "mcphost.request": request.http_request_id,
            },
        )
        with _as_current(span):
            yield RequestSpan(span)

    @contextmanager
    def round(self, run: Run) -> Iterator[RequestSpan]:
        verb, key = VERBS.get(run.method, (OTHER_METHOD, "mcphost.primitive"))
        request_span = trace.get_current_span()
        named = {key: run.name}
        if run.method == "tools/call":
            named["gen_ai.operation.name"] = verb
        request_span.set_attributes(named)
        span = self._tracer.start_span(f"{verb} {run.name}", attributes=named)
        span.set_attribute("mcphost.version", run.version)
        span.set_attribute("mcphost.call", run.call)
        span.set_attribute("mcphost.round", run.round)
        with _as_current(span):
            yield RequestSpan(span, request_span)

    def refuse(self, code: int) -> None:
        span = trace.get_current_span()
        span.set_attribute("rpc.response.status_code", str(code))
        _fail(span, str(code))

    def stop(self, seconds: float) -> None:
        """Send the remaining spans, waiting at most `seconds` for the collector."""
        sending = threading.Thread(target=self._processor.shutdown, daemon=True)
        sending.start()
        sending.join(seconds)
        if sending.is_alive():
            log.warning("shutdown: some spans were not sent")


class Exporter(SpanExporter):
    """Counts the spans that an exporter sends, and logs once that it fails and that it recovered.

    `logger` is the logger on which the exporter would report every failed batch: its messages are
    suppressed, and the last one is logged as the reason.
    """

    def __init__(self, exporter: SpanExporter, logger: str) -> None:
        self._exporter = exporter
        self._logger = logging.getLogger(logger)
        self._logger.addFilter(self._note_reason)
        self._well = True
        self._reason = ""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - the next batch is tried again
            self._reason = repr(error)
            result = SpanExportResult.FAILURE
        well = result is SpanExportResult.SUCCESS
        (counters.spans_sent if well else counters.spans_lost).add(len(spans))
        if well is not self._well:
            self._well = well
            if well:
                log.info("traces can be sent again")
            else:
                log.warning("traces cannot be sent (calls are not affected): %s", self._reason)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
        self._logger.removeFilter(self._note_reason)

    def _note_reason(self, record: logging.LogRecord) -> bool:
        self._reason = record.getMessage()
        return False


def exporting(version: str) -> Traces:
    """Make traces that are sent to the endpoint in OpenTelemetry's standard variables.

    Raises what the SDK raises for a variable that it cannot use.
    """
    logging.getLogger("opentelemetry.sdk").setLevel(logging.ERROR)  # it warns of each dropped span
    exporter = Exporter(OTLPSpanExporter(), OTLPSpanExporter.__module__)
    try:
        processor = BatchSpanProcessor(exporter)
        # OpenTelemetry's variables take precedence over our own name and version.
        environment = Resource.create()
        unnamed = str(environment.attributes["service.name"]).startswith("unknown_service")
        names = {"service.name": "mcphost"} if unnamed else {}
        resource = Resource({"service.version": version}).merge(environment).merge(Resource(names))
        return Traces(processor, resource)
    except Exception:
        exporter.shutdown()
        raise


@contextmanager
def _as_current(span: trace.Span) -> Iterator[None]:
    with trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        yield


def _remote(parent: str | None, state: str | None) -> Context:
    """The context of the client's span; an empty one without it, never the current context."""
    carrier = {"traceparent": parent or "", "tracestate": state or ""}
    return _propagator.extract(carrier, Context())


def _fail(span: trace.Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR))
