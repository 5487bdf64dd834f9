"""What a call takes from one leg to the next, sealed into `requestState` (spec: basic/patterns/mrtr).

A leg is one HTTP request of the call. The client keeps the state and nobody looks into it; whoever
it is shown to checks all of it: for whom, for which request, until when.
"""

import hmac
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from mcphost.protocol.canonical import digest
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.journal import Journal, as_json, from_json

SKEW_SECONDS = 60
ANONYMOUS_SECONDS = 600

_FORMAT = 1


class InvalidState(Exception):  # noqa: N818 - a refusal that says what happened
    """A state that is not valid for the request it came with. `reason` is for log and record.

    `call` is the call that it is of, where it is ours and says so.
    """

    def __init__(self, reason: str, call: UUID | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.call = call


class Bound(NamedTuple):
    """What a state is good for, and for nothing else: who asked, by what method, for what.

    `arguments` is their digest.
    """

    principal: str
    method: str
    target: str
    arguments: str


class Asked(NamedTuple):
    """A question that the state says was asked: its method, and its digest."""

    method: str
    question: str


class State(NamedTuple):
    """Where a call stands. Times are in seconds since 1970.

    `round` is the one that asked, `legs` how many the call took so far, `shed` whether it was moved
    off a process that was leaving, `version` that of the program that asked. `asked` are the
    questions by the author's key; none when the round only wants to go on elsewhere.
    """

    bound: Bound
    call: UUID
    round: int
    legs: int
    shed: bool
    issued_at: float
    expires_at: float
    version: str
    asked: Mapping[str, Asked]
    journal: Journal


def bound(principal: Principal, method: str, target: str, arguments: Mapping[str, Any]) -> Bound:
    """What a state for this request is good for. Raises ValueError for arguments without a digest."""
    return Bound(who(principal), method, target, digest(arguments))


def who(principal: Principal) -> str:
    """The caller, as far as states know: nobody in particular where nobody signed in."""
    return f"{principal.kind}:{principal.id}"


def lifetime(principal: Principal, seconds: float) -> float:
    """How long a state may live: a caller without a name holds all that it takes to use it."""
    if principal.kind is PrincipalKind.ANONYMOUS:
        return min(seconds, ANONYMOUS_SECONDS)
    return seconds


def write(state: State) -> bytes:
    """The state as it is sealed."""
    to, call, *plain, _, _ = state
    asked = {key: list(one) for key, one in state.asked.items()}
    return orjson.dumps([_FORMAT, list(to), call, *plain, asked, as_json(state.journal)])


def read(written: bytes) -> State:
    """What `write` wrote. Raises InvalidState for a state of a format that is not known here."""
    try:
        form, to, call, *plain, asked, journal = orjson.loads(written)
        if form != _FORMAT:
            raise InvalidState("of another format")
        questions = {key: Asked(*one) for key, one in asked.items()}
        return State(Bound(*to), UUID(call), *(*plain, questions, from_json(journal)))
    except (ValueError, TypeError, AttributeError):
        raise InvalidState("not written as states are") from None


def check(state: State, now: float, wanted: Bound) -> None:
    """Raises InvalidState unless the state is good for this request at this time."""
    if state.issued_at > now + SKEW_SECONDS:
        raise InvalidState("issued in the future", state.call)
    if state.expires_at < now - SKEW_SECONDS:
        raise InvalidState("expired", state.call)
    for name, meant, given in zip(Bound._fields, state.bound, wanted, strict=True):
        if not hmac.compare_digest(meant.encode(), given.encode()):
            raise InvalidState(f"of another {_NAMES[name]}", state.call)


_NAMES = {
    "principal": "principal",
    "method": "method",
    "target": "target",
    "arguments": "request: the arguments differ",
}
