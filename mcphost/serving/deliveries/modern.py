"""Requests of the stateless revision: the outcome is the answer to the POST that asked."""

from collections.abc import Mapping
from typing import Any, assert_never

from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    OVER_LIMIT,
    ProtocolError,
)
from mcphost.runtime.outcomes import (
    Complete,
    Failed,
    Failure,
    FailureKind,
    InputRequired,
    Outcome,
    Yielded,
)

RETRY_SECONDS = 1


def deliver(outcome: Outcome) -> Mapping[str, Any]:
    """The result of a `tools/call` (spec: server/tools, Error Handling).

    What a model can learn from is a result with `isError`. Raises ProtocolError for the rest.
    """
    match outcome:
        case Complete(result):
            return result
        case Failed(error):
            return _failure(error)
        case InputRequired() | Yielded():
            message = "This tool asks for input, which it cannot do in this kind of call"
            raise ProtocolError(INTERNAL_ERROR, message)
        case _:
            assert_never(outcome)


def _failure(error: Failure) -> Mapping[str, Any]:
    if error.kind is FailureKind.CAPABILITY_MISSING:
        data = {"requiredCapabilities": error.required or {}}
        raise ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, data)
    if error.kind is FailureKind.OVERLOADED:
        raise ProtocolError(OVER_LIMIT, error.message, {"retryAfter": RETRY_SECONDS})
    return {"content": [{"type": "text", "text": error.message}], "isError": True}
