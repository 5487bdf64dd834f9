"""Keep the spans of a test in memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from mcphost.observability import tracing
from mcphost.observability.otel import Traces


class Seen:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def server(self) -> ReadableSpan:
        (span,) = [span for span in self.all() if span.kind is SpanKind.SERVER]
        return span

    def round(self) -> ReadableSpan:
        (span,) = [span for span in self.all() if span.kind is SpanKind.INTERNAL]
        return span


@pytest.fixture
def seen() -> Iterator[Seen]:
    exporter = InMemorySpanExporter()
    tracing.tracer = Traces(SimpleSpanProcessor(exporter), Resource.get_empty())
    yield Seen(exporter)
    tracing.stop(5)


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
