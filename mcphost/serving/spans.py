"""A round as a span of a trace. Used only where traces are wanted."""

import asyncio
from collections.abc import Awaitable

from mcphost.observability.tracing import Run, Tracer
from mcphost.runtime.outcomes import Outcome
from mcphost.serving import records
from mcphost.serving.turn import Turn

Measured = tuple[Outcome, int]


async def in_span(tracer: Tracer, turn: Turn, running: Awaitable[Measured]) -> Measured:
    """Run the round, and say how it ended."""
    with tracer.round(_run(turn)) as span:
        try:
            outcome, size = await running
        except asyncio.CancelledError:
            span.end_with(records.CANCELLED, failed=False)
            raise
        word = records.word_for(outcome)
        span.end_with(word, failed=word not in records.WELL)
        return outcome, size


def _run(turn: Turn) -> Run:
    call, primitive = turn.call, turn.primitive
    return Run(call.method, primitive.name, primitive.version, str(call.id), call.round)
