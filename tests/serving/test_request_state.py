"""The request state: its content, and for which requests it is valid."""

from dataclasses import replace
from uuid import UUID

import pytest

from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.journal import Answer, Journal
from mcphost.serving import request_state
from mcphost.serving.request_state import (
    AskedQuestion,
    InvalidStateError,
    PartReference,
    RequestState,
)
from tests.kinds.rounds import TENANT

CALL = UUID(int=7)
ADA = Principal(PrincipalKind.TOKEN, TENANT, id="t1")
NOW = 1_000_000.0
BOUND = request_state.bound(ADA, "tools/call", "greet", {"name": "Ada"})
STATE = RequestState(
    bound=BOUND,
    call=CALL,
    round=2,
    requests_made=3,
    shed=True,
    issued_at=NOW,
    expires_at=NOW + 600,
    version="4+abcdef01",
    input_requests={
        "colour": AskedQuestion("elicitation/create", "digest"),
        "who": AskedQuestion("roots/list", "other"),
    },
    journal=Journal({"k": (Answer("d", "1", {"action": "accept"}),)}, {"step": 1}, 2.5),
    claim=2,
)


def _reason(state: RequestState, now: float, bound: request_state.StateBinding) -> str:
    with pytest.raises(InvalidStateError) as refused:
        request_state.check(state, now, bound)
    assert refused.value.call == state.call
    return refused.value.reason


PARTS = (PartReference(UUID(int=1).hex, "a digest"), PartReference(UUID(int=2).hex, "another"))


@pytest.mark.parametrize("parts", [(), PARTS])
@pytest.mark.parametrize("claim", [2, 3])
def test_a_written_state_is_read_unchanged(claim: int, parts: tuple[PartReference, ...]) -> None:
    state = STATE._replace(claim=claim, parts=parts)
    assert request_state.read(request_state.write(state)) == state


def test_a_state_without_its_own_claim_number_is_written_in_the_previous_format() -> None:
    """So processes of the previous version can open it during an upgrade."""
    assert request_state.write(STATE._replace(claim=3)).startswith(b"[1,")
    assert request_state.write(STATE._replace(claim=2)).startswith(b"[2,")


@pytest.mark.parametrize(
    "written", [b"", b"1", b"[]", b"{}", b'[2, "x"]', b"[1, [], 5, 6]", b'[1, ["a"], "no", 1]']
)
def test_an_unreadable_state_is_refused(written: bytes) -> None:
    with pytest.raises(InvalidStateError):
        request_state.read(written)


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(InvalidStateError, match="another format"):
        request_state.read(request_state.write(STATE).replace(b"[2,", b"[9,", 1))


def test_a_state_is_valid_for_its_own_request_and_time() -> None:
    request_state.check(STATE, NOW, BOUND)
    request_state.check(STATE, NOW - 59, BOUND)
    request_state.check(STATE, NOW + 659, BOUND)


@pytest.mark.parametrize(
    ("caller", "method", "target", "arguments", "reason"),
    [
        (replace(ADA, id="t2"), "tools/call", "greet", {"name": "Ada"}, "principal"),
        (replace(ADA, kind=PrincipalKind.SERVICE), "tools/call", "greet", {"name": "Ada"}, "principal"),
        (ADA, "prompts/get", "greet", {"name": "Ada"}, "method"),
        (ADA, "tools/call", "part", {"name": "Ada"}, "target"),
        (ADA, "tools/call", "greet", {"name": "Eve"}, "request: the arguments differ"),
    ],
)  # fmt: skip
def test_a_state_is_refused_for_each_other_part_of_a_request(
    caller: Principal, method: str, target: str, arguments: dict[str, str], reason: str
) -> None:
    bound = request_state.bound(caller, method, target, arguments)
    assert _reason(STATE, NOW, bound) == f"of another {reason}"


def test_a_state_is_refused_before_and_after_its_time() -> None:
    assert _reason(STATE, NOW + 661, BOUND) == "expired"
    assert _reason(STATE, NOW - 61, BOUND) == "issued in the future"


def test_the_digest_of_arguments_ignores_the_order_of_keys() -> None:
    one = request_state.bound(ADA, "tools/call", "t", {"a": 1, "b": {"c": 2, "d": 3}})
    assert one == request_state.bound(ADA, "tools/call", "t", {"b": {"d": 3, "c": 2}, "a": 1})
    assert one != request_state.bound(ADA, "tools/call", "t", {"a": 1.0, "b": {"c": 2, "d": 3}})


def test_arguments_beyond_64_bits_have_no_digest() -> None:
    with pytest.raises(ValueError, match="64-bit"):
        request_state.bound(ADA, "tools/call", "t", {"a": 2**70})


def test_a_state_of_an_anonymous_caller_lasts_at_most_ten_minutes() -> None:
    nobody = Principal(PrincipalKind.ANONYMOUS, TENANT)
    assert request_state.lifetime(nobody, 1800) == 600
    assert request_state.lifetime(nobody, 60) == 60
    assert request_state.lifetime(ADA, 1800) == 1800
