"""Requests of a session: the outcome is the answer to the request, on the stream of the POST that made
it, and so is what it asks before.

What the next round goes on from stays here, sealed; the client carries nothing.
"""

import time
from typing import Final, assert_never
from uuid import UUID

from mcphost.protocol.legacy import questions
from mcphost.protocol.legacy.questions import NotCarried
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Call
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
from mcphost.runtime.questions import CapabilityMissing
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import opening, states
from mcphost.serving.deliveries import failures
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, Asking, Delivered, Refused, Reply, Sealed
from mcphost.serving.states import Asked, State
from mcphost.serving.turn import Turn
from mcphost.vault.errors import VaultError

CANNOT_ASK: Final = "This asks for input, which cannot be asked for in this kind of call"
MOST_QUESTIONS: Final = 32
"""How many questions one call may ask, each time that one is asked again among them."""


async def deliver(turn: Turn, outcome: Outcome) -> Delivered:
    """What the client is told of an outcome, or what it is asked."""
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


def place_of(call: UUID) -> bytes:
    """Where what the next round of a call goes on from lies."""
    return call.bytes + b"state"


async def _ask(
    turn: Turn, outcome: Outcome, requests: tuple[InputRequest, ...], journal: Journal
) -> Delivered:
    """Seal what the round knows, for the next one."""
    problem = _why_not(turn, requests)
    if problem is not None:
        return _failed(turn, problem)
    state = _state(turn, requests, journal)
    content = place_of(turn.call.id) + states.write(state)
    try:
        kept = await opening.seal(Purpose.ROW, turn.call.tenant, content)
    except (SealError, VaultError) as error:
        message = "This cannot ask for input now."
        return _failed(turn, Failure(FailureKind.CRASHED, message, repr(error)))
    wanted = {one.key: {"method": one.method, "params": one.params} for one in requests}
    return Delivered(outcome, Asking(wanted, kept), Sealed(state.expires_at, key_id(kept)))


def _why_not(turn: Turn, requests: tuple[InputRequest, ...]) -> Failure | None:
    """Why this client cannot be asked, if so."""
    if turn.incoming.held is None:
        return Failure(FailureKind.CAPABILITY_MISSING, CANNOT_ASK)
    if _asked_before(turn) + len(requests) > MOST_QUESTIONS:
        message = f"This call has asked {MOST_QUESTIONS} questions and goes on, so it ends here."
        return Failure(FailureKind.ASKED_TOO_OFTEN, message)
    revision = REVISIONS[turn.call.revision]
    for one in requests:
        try:
            questions.params_of(revision, one.method, one.params, one.key)
        except NotCarried as why:
            missing = CapabilityMissing(why.capability)
            detail = f"the question {one.key!r} cannot be put: {why}"
            message = f"{missing} Revision {revision.name} cannot carry what it asks."
            kind = FailureKind.CAPABILITY_MISSING
            return Failure(kind, message, detail, required=missing.required)
    return None


def _asked_before(turn: Turn) -> int:
    state = turn.resumed.state
    return 0 if state is None else state.legs


def _state(turn: Turn, requests: tuple[InputRequest, ...], journal: Journal) -> State:
    """What the next round goes on from. Its `legs` are the questions that the call has asked."""
    call, now = turn.call, time.time()
    seconds = turn.primitive.answer_within or options().answer_seconds
    return State(
        bound=turn.bound,
        call=call.id,
        round=call.round,
        legs=_asked_before(turn) + len(requests),
        shed=turn.was_shed or not requests,
        issued_at=now,
        expires_at=now + min(seconds, options().longest_answer_seconds),
        version=call.version,
        asked={one.key: Asked(one.method, one.digest) for one in requests},
        journal=journal,
    )


def _failed(turn: Turn, error: Failure) -> Delivered:
    return Delivered(Failed(error), _told(error, turn.call))


def _told(error: Failure, call: Call) -> Reply:
    """Tools say in a result what went wrong, for models to learn from; nothing else can."""
    if error.kind is FailureKind.OVERLOADED:
        return Refused(failures.busy(error))
    if call.method == "tools/call":
        return Answered(failures.told_to_the_model(error))
    data = {"uri": call.target} if call.method == "resources/read" else None
    return Refused(failures.refusal(error, data))
