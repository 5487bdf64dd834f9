"""A request as a span of a trace. Used only where traces are wanted."""

import time
from collections.abc import Awaitable

from mcphost.observability.trace import parse
from mcphost.observability.tracing import Asked, Tracer
from mcphost.serving.incoming import Incoming


async def in_span(
    tracer: Tracer, incoming: Incoming, began: float, answering: Awaitable[int]
) -> int:
    """Answer a request that began at `began` (of `time.perf_counter`). Gives the answer's status.

    What of a session's call goes on after that is below the same span.
    """
    with tracer.request(_asked(incoming, time.perf_counter() - began)):
        return await answering


def _asked(incoming: Incoming, seconds: float) -> Asked:
    exchange = incoming.exchange
    sent, around = exchange.meta.traceparent, incoming.headers.get("traceparent")
    if parse(around) is None:
        around = None
    state = exchange.params.get("_meta", {}).get("tracestate")
    return Asked(
        method=exchange.method,
        revision=exchange.revision,
        id=str(exchange.id),
        leg=str(incoming.leg),
        tenant=incoming.tenant.slug,
        seconds=seconds,
        parent=sent or around,
        state=state if sent and isinstance(state, str) else None,
        around=around if sent else None,
    )
