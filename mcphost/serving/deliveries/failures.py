"""What callers are told of a failure, in whichever way their call reached the platform."""

from collections.abc import Mapping
from typing import Any, Final

from mcphost.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, OVER_LIMIT, ProtocolError
from mcphost.runtime.outcomes import Failure, FailureKind

RETRY_SECONDS: Final = 1

_ASKED_WRONGLY: Final = frozenset({FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS})
"""Failures that are about what was asked. All others are about how it was answered."""


def told_to_the_model(error: Failure) -> Mapping[str, Any]:
    """A result that a model can learn from (spec: server/tools, Error Handling)."""
    return {"content": [{"type": "text", "text": error.message}], "isError": True}


def busy(error: Failure) -> ProtocolError:
    """That nothing ran, and when to try again."""
    return ProtocolError(OVER_LIMIT, error.message, {"retryAfter": RETRY_SECONDS})


def refusal(error: Failure, data: Any = None) -> ProtocolError:
    """An error, where a result has no way to say what went wrong (spec: server/prompts,
    server/resources, utilities/completion, Error Handling)."""
    code = INVALID_PARAMS if error.kind in _ASKED_WRONGLY else INTERNAL_ERROR
    return ProtocolError(code, error.message, data)
