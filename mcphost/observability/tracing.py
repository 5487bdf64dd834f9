"""Spans of traces, if an OpenTelemetry collector is configured.

Packages use `tracer`, which is None unless the standard variables of OpenTelemetry set an endpoint.
Its library is loaded only then: see `otel`.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import NamedTuple, Protocol

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTER = "OTEL_TRACES_EXPORTER"
DISABLED = "OTEL_SDK_DISABLED"
SPOKEN = "http/protobuf"

log = logging.getLogger(__name__)


class SpannedRequest(NamedTuple):
    """The data of a request's span.

    `id` is the JSON-RPC id; `http_request_id` is the id of the HTTP request in logs and records; `tenant` is a
    slug; `seconds` have passed since the request began. `parent` and `state` are the trace context
    of its message, `http_parent` is that of the HTTP headers.
    """

    method: str
    revision: str
    id: str
    http_request_id: str
    tenant: str
    seconds: float
    parent: str | None = None
    state: str | None = None
    http_parent: str | None = None


class Run(NamedTuple):
    """The data of a round's span: the method, the primitive's name and version, call and round."""

    method: str
    name: str
    version: str
    call: str
    round: int


class Span(Protocol):
    """A span that has begun."""

    def end_with(self, outcome: str, *, failed: bool) -> None:
        """Set how a round ended."""


class Tracer(Protocol):
    """Makes spans. A span is the current one inside its block, and so the parent of the next."""

    def request(self, request: SpannedRequest) -> AbstractContextManager[Span]: ...

    def round(self, run: Run) -> AbstractContextManager[Span]: ...

    def refuse(self, code: int) -> None:
        """Mark the current request as answered with an error."""

    def stop(self, seconds: float) -> None:
        """Send the remaining spans, for at most `seconds`."""


tracer: Tracer | None = None


def refused(code: int) -> None:
    """Mark the current request as answered with a JSON-RPC error."""
    if tracer is not None:
        tracer.refuse(code)


def should_trace(environ: Mapping[str, str]) -> bool:
    """Whether spans should and can be sent; logs a protocol that is not supported."""
    if not any(environ.get(name) for name in ENDPOINTS):
        return False
    off = environ.get(DISABLED, "").strip().lower() == "true"
    if off or environ.get(EXPORTER, "otlp").strip() != "otlp":
        return False
    protocol = next(filter(None, map(environ.get, PROTOCOLS)), SPOKEN)
    if protocol != SPOKEN:
        log.error("tracing is off: the OTLP protocol must be %s, not %s", SPOKEN, protocol)
        return False
    return True


def start(version: str) -> None:
    """Make spans from now on, if configured. A missing collector does not prevent the start."""
    global tracer  # noqa: PLW0603 - one process, one tracer
    if tracer is not None or not should_trace(os.environ):
        return
    try:
        tracer = import_module("mcphost.observability.otel").exporting(version)
    except Exception:
        log.exception("tracing is off: it could not be started as configured")


def stop(seconds: float) -> None:
    """Make no more spans, and send the remaining ones within `seconds`."""
    global tracer
    last, tracer = tracer, None
    if last is not None:
        last.stop(seconds)
