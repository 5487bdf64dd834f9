"""Spans of traces, where an OpenTelemetry collector is configured; nothing at all where none is.

Rooms ask `tracer`, which is None unless the standard variables of OpenTelemetry name an endpoint.
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


class Asked(NamedTuple):
    """What a request's span says of it.

    `id` is the JSON-RPC id; `leg` names the request in logs and records; `tenant` is a slug;
    `seconds` have passed since it began. `parent` and `state` are the trace context that its
    message carried, `around` is that of its HTTP request.
    """

    method: str
    revision: str
    id: str
    leg: str
    tenant: str
    seconds: float
    parent: str | None = None
    state: str | None = None
    around: str | None = None


class Run(NamedTuple):
    """What a round's span says of it: which call's, of what (`method` asks, `name` answers)."""

    method: str
    name: str
    version: str
    call: str
    round: int


class Span(Protocol):
    """A span under way."""

    def end_with(self, outcome: str, *, failed: bool) -> None:
        """Say how a round ended."""


class Tracer(Protocol):
    """Makes spans. A span is the current one inside its block, and so the parent of the next."""

    def request(self, asked: Asked) -> AbstractContextManager[Span]: ...

    def round(self, run: Run) -> AbstractContextManager[Span]: ...

    def refuse(self, code: int) -> None:
        """The current request is answered with an error."""

    def stop(self, seconds: float) -> None:
        """Send what is left, for at most so long."""


tracer: Tracer | None = None


def refused(code: int) -> None:
    """The current request is answered with an error of JSON-RPC."""
    if tracer is not None:
        tracer.refuse(code)


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether spans are to be sent, and can be; what cannot be used is logged."""
    if not any(environ.get(name) for name in ENDPOINTS):
        return False
    off = environ.get(DISABLED, "").strip().lower() == "true"
    if off or environ.get(EXPORTER, "otlp").strip() != "otlp":
        return False
    protocol = next(filter(None, map(environ.get, PROTOCOLS)), SPOKEN)
    if protocol != SPOKEN:
        log.error("no traces are sent: OTLP is spoken as %s only, not as %s", SPOKEN, protocol)
        return False
    return True


def start(version: str) -> None:
    """Make spans from now on, if they are wanted. A collector that is not there stops nothing."""
    global tracer  # noqa: PLW0603 - one process, one tracer
    if tracer is not None or not wanted(os.environ):
        return
    try:
        tracer = import_module("mcphost.observability.otel").exporting(version)
    except Exception:
        log.exception("no traces are sent: what is configured cannot be used")


def stop(seconds: float) -> None:
    """Make no more spans, and send what is left within so many seconds."""
    global tracer
    last, tracer = tracer, None
    if last is not None:
        last.stop(seconds)
