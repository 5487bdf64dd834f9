"""Requests of the stateless revision: the outcome is the answer to the POST that asked."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, assert_never

from mcphost.protocol.errors import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ProtocolError,
)
from mcphost.runtime.call import Call, PrincipalKind
from mcphost.runtime.journal import Journal
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
from mcphost.sealing.tokens import Purpose, Reason, SealError, key_id
from mcphost.serving import opening, states
from mcphost.serving.deliveries import failures
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, Asking, Delivered, Refused, Reply, Sealed
from mcphost.serving.states import Asked, State
from mcphost.serving.turn import Turn
from mcphost.vault.errors import VaultError

LEGS = 8
"""How many requests one call may take: clients give up after ten or so."""


async def deliver(turn: Turn, outcome: Outcome) -> Delivered:
    """What the client is told of an outcome; a failure if it cannot be told what it should be."""
    match outcome:
        case Complete(result):
            return Delivered(outcome, Answered(result))
        case Failed(error):
            return _failed(turn, error)
        case InputRequired(requests, journal):
            return await _ask(turn, outcome, requests, journal)
        case Yielded(journal):
            return await _ask(turn, outcome, (), journal)
        case _:
            assert_never(outcome)


def may_be_shed(turn: Turn) -> bool:
    """Whether the client may be sent to another process: once in a call, and if legs are left."""
    return not turn.was_shed and turn.leg < LEGS


async def _ask(
    turn: Turn, outcome: Outcome, requests: tuple[InputRequest, ...], journal: Journal
) -> Delivered:
    """Seal what the round knows and send the client for what it does not."""
    problem = _why_not(turn, requests)
    if problem is not None:
        return _failed(turn, problem)
    state = _state(turn, requests, journal)
    tenant = turn.call.tenant
    try:
        token = await opening.seal(Purpose.STATE, tenant, states.write(state))
    except (SealError, VaultError) as error:
        return _failed(turn, _unsealed(error, journal))
    wanted = {one.key: {"method": one.method, "params": one.params} for one in requests}
    return Delivered(outcome, Asking(wanted, token), Sealed(state.expires_at, key_id(token)))


def _why_not(turn: Turn, requests: tuple[InputRequest, ...]) -> Failure | None:
    """Why this caller cannot be asked, if so."""
    if turn.leg >= LEGS:
        return Failure(
            FailureKind.ASKED_TOO_OFTEN,
            f"This call has taken {LEGS} requests and still asks for input, so it ends here.",
        )
    nobody = turn.call.principal.kind is PrincipalKind.ANONYMOUS
    if nobody and any(one.params.get("mode") == "url" for one in requests):
        return Failure(
            FailureKind.TOOL_ERROR,
            "This asks the user to open an address, which needs a caller with a credential.",
        )
    return None


def _state(turn: Turn, requests: tuple[InputRequest, ...], journal: Journal) -> State:
    call, now = turn.call, time.time()
    seconds = turn.primitive.answer_within or options().answer_seconds
    lives = states.lifetime(call.principal, min(seconds, options().longest_answer_seconds))
    return State(
        bound=turn.bound,
        call=call.id,
        round=call.round,
        legs=turn.leg,
        shed=turn.was_shed or not requests,
        issued_at=now,
        expires_at=now + lives,
        version=call.version,
        asked={one.key: Asked(one.method, one.digest) for one in requests},
        journal=journal,
    )


def _unsealed(error: SealError | VaultError, journal: Journal) -> Failure:
    if not isinstance(error, SealError) or error.reason is not Reason.TOO_LARGE:
        return Failure(FailureKind.CRASHED, "This cannot ask for input now.", repr(error))
    return Failure(
        FailureKind.JOURNAL_TOO_LARGE,
        "This keeps more between its questions than fits into the state of a call.",
        f"the state of the call is too large; {journal.largest()}",
    )


def _failed(turn: Turn, error: Failure) -> Delivered:
    try:
        reply: Reply = Answered(_failure(error, turn.call))
    except ProtocolError as refusal:
        reply = Refused(refusal)
    return Delivered(Failed(error), reply)


def _failure(error: Failure, call: Call) -> Mapping[str, Any]:
    if error.kind is FailureKind.CAPABILITY_MISSING:
        data = {"requiredCapabilities": error.required or {}}
        raise ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, error.message, data)
    if error.kind is FailureKind.OVERLOADED:
        raise failures.busy(error)
    return _FAILURES[call.method](error, call)


def _told_to_the_model(error: Failure, call: Call) -> Mapping[str, Any]:
    return failures.told_to_the_model(error)


def _refused(error: Failure, call: Call) -> Mapping[str, Any]:
    raise failures.refusal(error)


def _refused_naming_the_uri(error: Failure, call: Call) -> Mapping[str, Any]:
    raise failures.refusal(error, {"uri": call.target})


_FAILURES: Mapping[str, Callable[[Failure, Call], Mapping[str, Any]]] = MappingProxyType(
    {
        "tools/call": _told_to_the_model,
        "prompts/get": _refused,
        "resources/read": _refused_naming_the_uri,
        "completion/complete": _refused,
    }
)
