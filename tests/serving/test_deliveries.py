"""What a client is told of each outcome (spec: server/tools, prompts, resources: Error Handling)."""

import pytest

from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    OVER_LIMIT,
    ProtocolError,
)
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import (
    Complete,
    Failed,
    Failure,
    FailureKind,
    InputRequest,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.serving.deliveries.modern import deliver
from tests.kinds.rounds import a_call

ERRORS = {
    FailureKind.CAPABILITY_MISSING: MISSING_REQUIRED_CLIENT_CAPABILITY,
    FailureKind.OVERLOADED: OVER_LIMIT,
}
"""Failures that a model can do nothing about; all others are results with `isError`."""

CALL = a_call({})._replace(method="tools/call")
OTHERS = ("prompts/get", "resources/read", "completion/complete")


def _refused(outcome: Outcome, method: str = "tools/call") -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        deliver(outcome, CALL._replace(method=method, target="docs:a"))
    return refused.value


def test_a_complete_round_is_answered_with_its_result() -> None:
    result = {"content": [{"type": "text", "text": "hello"}]}
    assert deliver(Complete(result), CALL) == result


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - set(ERRORS)))
def test_a_failure_that_a_model_can_learn_from_is_a_result(kind: FailureKind) -> None:
    result = deliver(Failed(Failure(kind, "it did not work", "a secret detail")), CALL)
    assert result == {"content": [{"type": "text", "text": "it did not work"}], "isError": True}


@pytest.mark.parametrize("method", ["tools/call", *OTHERS])
@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_a_failure_that_it_cannot_is_an_error_with_the_code_of_its_kind(
    kind: FailureKind, method: str
) -> None:
    error = _refused(Failed(Failure(kind, "it did not work", "a secret detail")), method)
    assert (error.code, error.message) == (ERRORS[kind], "it did not work")
    assert "secret" not in str(error.data)


@pytest.mark.parametrize("method", OTHERS)
@pytest.mark.parametrize("kind", sorted(set(FailureKind) - set(ERRORS)))
def test_where_a_result_cannot_say_that_it_failed_it_is_an_error(
    kind: FailureKind, method: str
) -> None:
    error = _refused(Failed(Failure(kind, "it did not work", "a secret detail")), method)
    asked_wrongly = kind in {FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS}
    assert error.code == (INVALID_PARAMS if asked_wrongly else INTERNAL_ERROR)
    assert error.message == "it did not work"
    assert error.data == ({"uri": "docs:a"} if method == "resources/read" else None)


@pytest.mark.parametrize("required", [{"sampling": {}}, None])
def test_a_missing_capability_is_named(required: dict[str, object] | None) -> None:
    error = _refused(Failed(Failure(FailureKind.CAPABILITY_MISSING, "no", required=required)))
    assert error.data == {"requiredCapabilities": required or {}}


def test_who_meets_an_overload_is_told_when_to_return() -> None:
    error = _refused(Failed(Failure(FailureKind.OVERLOADED, "busy")))
    assert error.data is not None
    assert error.data["retryAfter"] > 0


@pytest.mark.parametrize(
    "outcome",
    [
        InputRequired((InputRequest("k", "elicitation/create", {}),), EMPTY),
        Yielded(EMPTY),
    ],
)
def test_what_cannot_be_asked_here_is_an_error_of_the_servers(outcome: Outcome) -> None:
    assert _refused(outcome).code == INTERNAL_ERROR
