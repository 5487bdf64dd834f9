"""Requests of the stateless revision: the outcome is the answer to the POST that asked."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, assert_never

from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    OVER_LIMIT,
    ProtocolError,
)
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

RETRY_SECONDS = 1

_ASKED_WRONGLY = frozenset({FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS})
"""Failures that are about what was asked. All others are about how it was answered."""


def deliver(outcome: Outcome, call: Call) -> Mapping[str, Any]:
    """The result of a call, without its envelope. Raises ProtocolError when it has none."""
    match outcome:
        case Complete(result):
            return result
        case Failed(error):
            return _failure(error, call)
        case InputRequired() | Yielded():
            message = "This asks for input, which it cannot do in this kind of call"
            raise ProtocolError(INTERNAL_ERROR, message)
        case _:
            assert_never(outcome)


def _failure(error: Failure, call: Call) -> Mapping[str, Any]:
    if error.kind is FailureKind.CAPABILITY_MISSING:
        data = {"requiredCapabilities": error.required or {}}
        raise ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, data)
    if error.kind is FailureKind.OVERLOADED:
        raise ProtocolError(OVER_LIMIT, error.message, {"retryAfter": RETRY_SECONDS})
    return _FAILURES[call.method](error, call)


def _told_to_the_model(error: Failure, call: Call) -> Mapping[str, Any]:
    """A result that a model can learn from (spec: server/tools, Error Handling)."""
    return {"content": [{"type": "text", "text": error.message}], "isError": True}


def _refused(error: Failure, call: Call) -> Mapping[str, Any]:
    """An error: these results have no way to say what went wrong (spec: server/prompts,
    utilities/completion, Error Handling)."""
    raise ProtocolError(_code(error), error.message)


def _refused_naming_the_uri(error: Failure, call: Call) -> Mapping[str, Any]:
    """The same with the URI that was asked for (spec: server/resources, Error Handling)."""
    raise ProtocolError(_code(error), error.message, {"uri": call.target})


def _code(error: Failure) -> int:
    return INVALID_PARAMS if error.kind in _ASKED_WRONGLY else INTERNAL_ERROR


_FAILURES: Mapping[str, Callable[[Failure, Call], Mapping[str, Any]]] = MappingProxyType(
    {
        "tools/call": _told_to_the_model,
        "prompts/get": _refused,
        "resources/read": _refused_naming_the_uri,
        "completion/complete": _refused,
    }
)
