"""What is answered to a leg of a call, before it is dressed for the wire.

A reply can be kept as JSON and given again, to a client that asks the same a second time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_never

import orjson

from mcphost.protocol import results
from mcphost.protocol.errors import ProtocolError
from mcphost.runtime.outcomes import Outcome

Dress = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answered:
    """The call is over; the method's result, without its envelope."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """The call goes on once the client comes back with the state, and with answers if it was asked."""

    requests: Mapping[str, Mapping[str, Any]]
    state: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The call is over with a JSON-RPC error."""

    error: ProtocolError


Reply = Answered | Asking | Refused


class Sealed(NamedTuple):
    """The state that goes with a reply: until when it is good, and under which key it is sealed.

    The time is in seconds since 1970.
    """

    expires_at: float
    key_id: str


class Delivered(NamedTuple):
    """What a round came to in the end, what is answered, and the state that goes with it."""

    outcome: Outcome
    reply: Reply
    sealed: Sealed | None = None


def finish(reply: Reply, server: Mapping[str, Any], dress: Dress = dict) -> Mapping[str, Any]:
    """The method's result for the wire; `dress` adds what belongs to a complete one.

    Raises ProtocolError for a refusal.
    """
    match reply:
        case Answered(result):
            return results.complete(dress(result), server)
        case Asking(requests, state):
            return results.input_required(requests, state, server)
        case Refused(error):
            raise error
        case _:
            assert_never(reply)


def write(reply: Reply) -> bytes:
    """The reply as JSON."""
    match reply:
        case Answered(result):
            return orjson.dumps(["answered", result])
        case Asking(requests, state):
            return orjson.dumps(["asking", requests, state])
        case Refused(error):
            return orjson.dumps(["refused", error.code, error.message, error.data])
        case _:
            assert_never(reply)


def read(written: bytes) -> Reply:
    """What `write` wrote."""
    word, *values = orjson.loads(written)
    if word == "refused":
        return Refused(ProtocolError(*values))
    return Answered(*values) if word == "answered" else Asking(*values)
