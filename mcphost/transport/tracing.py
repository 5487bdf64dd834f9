"""Make a request a span of a trace. Used only if traces are exported."""

import time
from collections.abc import Awaitable

from mcphost.observability.trace import parse
from mcphost.observability.tracing import SpannedRequest, Tracer
from mcphost.serving.context import Incoming


async def in_span(
    tracer: Tracer, incoming: Incoming, began: float, answering: Awaitable[int]
) -> int:
    """Answer a request that began at `began` (`time.perf_counter`) in a span; return the status.

    A session call that continues after the response stays below the same span.
    """
    with tracer.request(_spanned_request(incoming, time.perf_counter() - began)):
        return await answering


def _spanned_request(incoming: Incoming, seconds: float) -> SpannedRequest:
    exchange = incoming.exchange
    message_parent = exchange.meta.traceparent
    http_parent = incoming.headers.get("traceparent")
    if parse(http_parent) is None:
        http_parent = None
    state = exchange.params.get("_meta", {}).get("tracestate")
    return SpannedRequest(
        method=exchange.method,
        revision=exchange.revision,
        id=str(exchange.id),
        http_request_id=str(incoming.http_request_id),
        tenant=incoming.tenant.slug,
        seconds=seconds,
        parent=message_parent or http_parent,
        state=state if message_parent and isinstance(state, str) else None,
        http_parent=http_parent if message_parent else None,
    )
