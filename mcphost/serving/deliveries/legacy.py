"""Requests of a session: the outcome is the answer to the request, on the stream of the POST that made it.

Clients of these revisions cannot be asked yet: what would ask them is told so as if they were not
able to.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from mcphost.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, OVER_LIMIT, ProtocolError
from mcphost.runtime.call import Call
from mcphost.runtime.outcomes import (
    Complete,
    Failed,
    Failure,
    FailureKind,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.serving.replies import Answered, Delivered, Refused, Reply
from mcphost.serving.turn import Turn

CANNOT_ASK = "This asks for input, which clients of this protocol revision cannot be asked for"
RETRY_SECONDS = 1

_ASKED_WRONGLY = frozenset({FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS})


async def deliver(turn: Turn, outcome: Outcome) -> Delivered:
    """What the client is told of an outcome."""
    match outcome:
        case Complete(result):
            return Delivered(outcome, Answered(result))
        case Failed(error):
            return Delivered(outcome, _failed(error, turn.call))
        case InputRequired() | Yielded():
            failure = Failure(FailureKind.CAPABILITY_MISSING, CANNOT_ASK)
            return Delivered(Failed(failure), _failed(failure, turn.call))
        case _:
            assert_never(outcome)


def _failed(error: Failure, call: Call) -> Reply:
    """Tools say in a result what went wrong, for models to learn from; nothing else can."""
    if error.kind is FailureKind.OVERLOADED:
        busy = {"retryAfter": RETRY_SECONDS}
        return Refused(ProtocolError(OVER_LIMIT, error.message, busy))
    if call.method == "tools/call":
        return Answered(_told_to_the_model(error))
    code = INVALID_PARAMS if error.kind in _ASKED_WRONGLY else INTERNAL_ERROR
    data = {"uri": call.target} if call.method == "resources/read" else None
    return Refused(ProtocolError(code, error.message, data))


def _told_to_the_model(error: Failure) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": error.message}], "isError": True}
