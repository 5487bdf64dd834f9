"""The state of a call between its HTTP requests, sealed as `requestState` (spec:
basic/patterns/mrtr).

The client keeps the state and cannot read it. The process that receives it checks all of it: the
principal, the request and the expiry.
"""

import hmac
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from mcphost.protocol.json_values import digest
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.journal import Journal, as_json, from_json

log = logging.getLogger(__name__)

SKEW_SECONDS = 60
"""How far the clocks of two processes may be apart: of the one that sealed a state, and of the one that
opens it. Neither asks the database for the time, which would be a query more in each round."""
ANONYMOUS_SECONDS = 600

_FORMAT, _FORMAT_WITH_CLAIM, _FORMAT_WITH_PARTS, _FORMAT_WITH_REPETITIONS = 1, 2, 3, 4


class InvalidStateError(Exception):
    """A state that is not valid for its request. `reason` is for the log and the record.

    `call` is the id of the state's call, if the state could be opened.
    """

    def __init__(self, reason: str, call: UUID | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.call = call


class StateBinding(NamedTuple):
    """The only request for which a state is valid. `arguments` is the digest of its arguments."""

    principal: str
    method: str
    target: str
    arguments: str


class AskedQuestion(NamedTuple):
    """An input request that the state lists: its method and its digest."""

    method: str
    question: str


class PartReference(NamedTuple):
    """A row with large values that are not in the state (`serving.execution.state_parts`): its id, and
    the digest of its content."""

    id: str
    digest: str


class RequestState(NamedTuple):
    """The state of a call after a round. Times are in seconds since 1970.

    `round` is the number of that round, `requests_made` what the limit of its delivery counts: the HTTP
    requests of a stateless call so far, or the input requests of a session's call or of a task. `shed` is
    whether a process has sent the call to another, `version` the program's version. `input_requests` are those by the author's key; none if the round only moves to another process. `claim` is
    the number under which the round that takes in responses to this state is claimed. All states
    that descend from one another without a response have the same number, and so share one set of
    responses. `parts` are the rows with those recorded values that are not in `journal`. `repetitions`
    are the replies that only repeated input requests.
    """

    bound: StateBinding
    call: UUID
    round: int
    requests_made: int
    shed: bool
    issued_at: float
    expires_at: float
    version: str
    input_requests: Mapping[str, AskedQuestion]
    journal: Journal
    claim: int
    parts: tuple[PartReference, ...] = ()
    repetitions: int = 0


def bound(
    principal: Principal, method: str, target: str, arguments: Mapping[str, Any]
) -> StateBinding:
    """The binding of a state for this request. Raises ValueError for arguments without a digest."""
    return StateBinding(principal_key(principal), method, target, digest(arguments))


def principal_key(principal: Principal) -> str:
    """The caller as states identify it. Anonymous callers without a session are all the same."""
    return f"{principal.kind}:{principal.id}"


def lifetime(principal: Principal, seconds: float) -> float:
    """The lifetime of a state in seconds: shorter for an anonymous caller, as its client needs
    nothing else to use it."""
    if principal.kind is PrincipalKind.ANONYMOUS:
        return min(seconds, ANONYMOUS_SECONDS)
    return seconds


def write(state: RequestState) -> bytes:
    """Encode the state for sealing.

    The claim number is left out if it is the default, and parts and repetitions if there are none, so
    that processes of the previous version can open the state during an upgrade.
    """
    to, call, *plain, _, _, claim, parts, repetitions = state
    input_requests = {
        key: list(input_request) for key, input_request in state.input_requests.items()
    }
    written = [list(to), call, *plain, input_requests, as_json(state.journal)]
    rows = [list(part) for part in parts]
    if repetitions:
        return orjson.dumps([_FORMAT_WITH_REPETITIONS, *written, claim, rows, repetitions])
    if parts:
        return orjson.dumps([_FORMAT_WITH_PARTS, *written, claim, rows])
    if claim == state.round + 1:
        return orjson.dumps([_FORMAT, *written])
    return orjson.dumps([_FORMAT_WITH_CLAIM, *written, claim])


def read(written: bytes) -> RequestState:
    """Decode what `write` wrote. Raises InvalidStateError for an unknown format."""
    try:
        form, to, call, number, *rest = orjson.loads(written)
        if form not in range(_FORMAT, _FORMAT_WITH_REPETITIONS + 1):
            raise InvalidStateError("of another format")
        repetitions = rest.pop() if form >= _FORMAT_WITH_REPETITIONS else 0
        parts = rest.pop() if form >= _FORMAT_WITH_PARTS else ()
        claim = number + 1 if form == _FORMAT else rest.pop()
        *plain, rows, journal = rest
        input_requests = {key: AskedQuestion(*row) for key, row in rows.items()}
        references = tuple(PartReference(*reference) for reference in parts)
        more = (*plain, input_requests, from_json(journal), claim, references, repetitions)
        return RequestState(StateBinding(*to), UUID(call), number, *more)
    except (ValueError, TypeError, AttributeError):
        log.exception("what was sealed as a request state is none")
        raise InvalidStateError("not written as states are") from None


def check(state: RequestState, now: float, binding: StateBinding) -> None:
    """Raises InvalidStateError unless the state is valid for this request at this time."""
    if state.issued_at > now + SKEW_SECONDS:
        raise InvalidStateError("issued in the future", state.call)
    if state.expires_at < now - SKEW_SECONDS:
        raise InvalidStateError("expired", state.call)
    for name, state_value, request_value in zip(
        StateBinding._fields, state.bound, binding, strict=True
    ):
        if not hmac.compare_digest(state_value.encode(), request_value.encode()):
            raise InvalidStateError(f"of another {_NAMES[name]}", state.call)


_NAMES = {
    "principal": "principal",
    "method": "method",
    "target": "target",
    "arguments": "request: the arguments differ",
}
