"""What a call takes from one leg to the next, and what that is good for."""

from uuid import UUID

import pytest

from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.journal import Answer, Journal
from mcphost.serving import states
from mcphost.serving.states import Asked, InvalidState, State
from tests.kinds.rounds import TENANT

CALL = UUID(int=7)
ADA = Principal(PrincipalKind.TOKEN, TENANT, id="t1")
NOW = 1_000_000.0
BOUND = states.bound(ADA, "tools/call", "greet", {"name": "Ada"})
STATE = State(
    bound=BOUND,
    call=CALL,
    round=2,
    legs=3,
    shed=True,
    issued_at=NOW,
    expires_at=NOW + 600,
    version="4+abcdef01",
    asked={"colour": Asked("elicitation/create", "digest"), "who": Asked("roots/list", "other")},
    journal=Journal({"k": (Answer("d", "1", {"action": "accept"}),)}, {"step": 1}, 2.5),
)


def _reason(state: State, now: float, bound: states.Bound) -> str:
    with pytest.raises(InvalidState) as refused:
        states.check(state, now, bound)
    assert refused.value.call == state.call
    return refused.value.reason


def test_what_is_written_is_read() -> None:
    assert states.read(states.write(STATE)) == STATE


@pytest.mark.parametrize(
    "written", [b"", b"1", b"[]", b"{}", b'[2, "x"]', b"[1, [], 5, 6]", b'[1, ["a"], "no", 1]']
)
def test_what_is_no_state_is_refused(written: bytes) -> None:
    with pytest.raises(InvalidState):
        states.read(written)


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(InvalidState, match="another format"):
        states.read(states.write(STATE).replace(b"[1,", b"[2,", 1))


def test_a_state_is_good_for_its_own_request_and_time() -> None:
    states.check(STATE, NOW, BOUND)
    states.check(STATE, NOW - 59, BOUND)
    states.check(STATE, NOW + 659, BOUND)


def test_a_state_is_good_for_its_time_only() -> None:
    assert _reason(STATE, NOW + 661, BOUND) == "expired"
    assert _reason(STATE, NOW - 61, BOUND) == "issued in the future"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (states.bound(ADA, "tools/call", "greet", {"name": "Bob"}), "the arguments differ"),
        (states.bound(ADA, "tools/call", "other", {"name": "Ada"}), "of another target"),
        (states.bound(ADA, "prompts/get", "greet", {"name": "Ada"}), "of another method"),
        (
            states.bound(
                Principal(PrincipalKind.TOKEN, TENANT, id="t2"),
                "tools/call",
                "greet",
                {"name": "Ada"},
            ),
            "of another principal",
        ),
        (
            states.bound(
                Principal(PrincipalKind.PERSON, TENANT, id="t1"),
                "tools/call",
                "greet",
                {"name": "Ada"},
            ),
            "of another principal",
        ),
    ],
)
def test_a_state_is_good_for_no_other_request(other: states.Bound, reason: str) -> None:
    assert reason in _reason(STATE, NOW, other)


def test_arguments_are_the_same_whatever_their_order() -> None:
    one = states.bound(ADA, "tools/call", "t", {"a": 1, "b": {"c": 2, "d": 3}})
    assert one == states.bound(ADA, "tools/call", "t", {"b": {"d": 3, "c": 2}, "a": 1})
    assert one != states.bound(ADA, "tools/call", "t", {"a": 1.0, "b": {"c": 2, "d": 3}})


def test_arguments_beyond_64_bits_have_no_digest() -> None:
    with pytest.raises(ValueError, match="64-bit"):
        states.bound(ADA, "tools/call", "t", {"a": 2**70})


def test_who_has_no_name_gets_ten_minutes_at_most() -> None:
    nobody = Principal(PrincipalKind.ANONYMOUS, TENANT)
    assert states.lifetime(nobody, 1800) == 600
    assert states.lifetime(nobody, 60) == 60
    assert states.lifetime(ADA, 1800) == 1800
