"""Convert a round's outcome to a reply, for stateless requests and for sessions.

A round of a stateless request is answered by the response to that request; the state for the next
round is sealed into `requestState`, which the client carries. A round of a session's request is
answered on the event stream of the request's POST; the state for the next round is sealed into a
row.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol, assert_never
from uuid import UUID

from mcphost.observability import counters
from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    ProtocolError,
    missing_capability,
    over_limit,
)
from mcphost.protocol.legacy import questions
from mcphost.protocol.legacy.questions import NotCarriedError
from mcphost.protocol.revisions import REVISIONS, Era
from mcphost.runtime.call import Call, Delivery
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import (
    Complete,
    Deferred,
    Failed,
    Failure,
    FailureKind,
    InputRequest,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.runtime.ports import NO_USER
from mcphost.runtime.questions import CapabilityMissingError
from mcphost.sealing.tokens import Purpose, Reason, SealError, key_id
from mcphost.serving import request_state, sealing
from mcphost.serving.context import Turn
from mcphost.serving.execution import state_parts, stored_tasks
from mcphost.serving.execution.state_parts import PartNotStoredError
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, Asking, Delivered, Handle, Refused, Reply, SealedState
from mcphost.serving.request_state import AskedQuestion, RequestState
from mcphost.vault.errors import VaultError

KEPT_FOR_MOVES: Final = 1
KEPT_FOR_REPETITIONS: Final = 2
"""How many of the replies of a stateless call are kept for these: clients give up after a number of
replies of any sort, and a mistake or a move must not take the place of a new question."""
MAX_QUESTIONS: Final = 32
"""How many input requests a session call may send, repetitions included."""
MAX_TASK_QUESTIONS: Final = 256
"""How many input requests a task may make, repetitions included."""
TRIAL_SECONDS: Final = 600.0
"""How long an input request of a trial can be answered at most."""
RETRY_SECONDS: Final = 1
CANNOT_ASK: Final = "This program requests input, which is not possible in this kind of call"
_TOO_MANY: Final = (
    "The call was ended: it requests more input than clients allow in one call, {} replies. A tool that needs "
    "more can become a task (its setting `tasks`), if the client supports tasks."
)
NO_PERSON: Final = Failure(FailureKind.TOOL_ERROR, NO_USER)

_ASKED_WRONGLY: Final = frozenset({FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS})
"""Failures for which the request is to blame. All others are the server's."""

Requests = tuple[InputRequest, ...]


class Policy(Protocol):
    """The differences between stateless requests and requests of sessions."""

    purpose: Purpose
    """The purpose with which the state is sealed."""

    def refuses(self, turn: Turn, requests: Requests) -> Failure | None:
        """The failure if these input requests, or none and the move of the call, cannot be sent to this
        client now; else None."""

    def requests_made(self, turn: Turn, requests: Requests) -> int:
        """`RequestState.requests_made` of the state with which this round ends."""

    def expires_at(self, turn: Turn, seconds: float, now: float) -> float:
        """The expiry of the state, in seconds since 1970."""

    def context(self, call: UUID) -> bytes:
        """The context to which the sealed state is bound, besides purpose and tenant."""


class Stateless:
    """Requests of the stateless revision (spec: basic/patterns/mrtr)."""

    purpose = Purpose.STATE

    def refuses(self, turn: Turn, requests: Requests) -> Failure | None:
        limit = options().stateless_replies
        if not requests:
            over = turn.attempt > limit
        else:
            asking_attempts = turn.attempt - turn.was_shed
            fresh = 0 if _repeats(turn, requests) else asking_attempts - _repetitions(turn)
            over = asking_attempts > limit - KEPT_FOR_MOVES
            over |= fresh > limit - KEPT_FOR_MOVES - KEPT_FOR_REPETITIONS
        return Failure(FailureKind.ASKED_TOO_OFTEN, _TOO_MANY.format(limit)) if over else None

    def requests_made(self, turn: Turn, requests: Requests) -> int:
        return turn.attempt

    def expires_at(self, turn: Turn, seconds: float, now: float) -> float:
        return turn.answer_by(request_state.lifetime(turn.call.principal, seconds), now)

    def context(self, call: UUID) -> bytes:
        return b""


class Sessions:
    """Requests of a session. The `requests_made` of a state count the input requests of the call."""

    purpose = Purpose.ROW

    def refuses(self, turn: Turn, requests: Requests) -> Failure | None:
        if turn.incoming.owned_call is None:
            return Failure(FailureKind.CAPABILITY_MISSING, CANNOT_ASK)
        return self.refuses_requests(turn, requests)

    def refuses_requests(self, turn: Turn, requests: Requests) -> Failure | None:
        """The failure for too many input requests, or for one that the revision does not have."""
        if self.requests_made(turn, requests) > MAX_QUESTIONS:
            message = f"The call was ended: it made more than {MAX_QUESTIONS} input requests."
            return Failure(FailureKind.ASKED_TOO_OFTEN, message)
        return _cannot_carry(turn.call, requests)

    def requests_made(self, turn: Turn, requests: Requests) -> int:
        state = turn.resumed.state
        return len(requests) + (0 if state is None else state.requests_made)

    def expires_at(self, turn: Turn, seconds: float, now: float) -> float:
        return now + seconds

    def context(self, call: UUID) -> bytes:
        return state_context(call)


class Tasks:
    """Rounds of tasks. The `requests_made` of a state count the input requests of the task."""

    purpose = Purpose.ROW

    def refuses(self, turn: Turn, requests: Requests) -> Failure | None:
        if self.requests_made(turn, requests) > MAX_TASK_QUESTIONS:
            message = f"The task was ended: it made more than {MAX_TASK_QUESTIONS} input requests."
            return Failure(FailureKind.ASKED_TOO_OFTEN, message)
        return None

    def requests_made(self, turn: Turn, requests: Requests) -> int:
        state = turn.resumed.state
        is_counted = state is not None and turn.call.delivery is Delivery.TASK
        return len(requests) + (state.requests_made if is_counted and state is not None else 0)

    def expires_at(self, turn: Turn, seconds: float, now: float) -> float:
        return now + request_state.lifetime(turn.call.principal, seconds)

    def context(self, call: UUID) -> bytes:
        return state_context(call)


class Trials:
    """Rounds of a trial, as the client that it plays would get them. The form carries the
    state, and no client can use it. A browser that is gone cannot end its trial, so it ends soon."""

    purpose = Purpose.TRIAL

    def refuses(self, turn: Turn, requests: Requests) -> Failure | None:
        if turn.call.era is Era.LEGACY:
            return Sessions().refuses_requests(turn, requests)
        return Stateless().refuses(turn, requests)

    def requests_made(self, turn: Turn, requests: Requests) -> int:
        policy = Sessions() if turn.call.era is Era.LEGACY else Stateless()
        return policy.requests_made(turn, requests)

    def expires_at(self, turn: Turn, seconds: float, now: float) -> float:
        return turn.answer_by(min(seconds, TRIAL_SECONDS), now)

    def context(self, call: UUID) -> bytes:
        return b""


POLICIES: Final[Mapping[Delivery, Policy]] = MappingProxyType(
    {
        Delivery.MODERN: Stateless(),
        Delivery.LEGACY: Sessions(),
        Delivery.TASK: Tasks(),
        Delivery.PLAYGROUND: Trials(),
    }
)


def state_context(call: UUID) -> bytes:
    """The context to which a call's state in a row is bound."""
    return call.bytes + b"state"


async def deliver(turn: Turn, outcome: Outcome) -> Delivered:
    """Convert an outcome to a reply. It becomes a failure if its input requests cannot be sent."""
    match outcome:
        case Complete(result):
            return Delivered(outcome, Answered(result))
        case Failed(error):
            return _failed(turn, error)
        case InputRequired(requests, journal):
            return await _ask(turn, outcome, requests, journal)
        case Yielded(journal, reason):
            counters.rounds_shed.add(reason)
            return await _ask(turn, outcome, (), journal)
        case Deferred(journal):
            return await _become_task(turn, outcome, (), journal)
        case _:
            assert_never(outcome)


def may_move(turn: Turn) -> bool:
    """Whether the call can move to another process: only once, and if its client can follow it."""
    if turn.call.delivery is Delivery.TASK:
        return True
    if turn.was_shed or turn.call.delivery is Delivery.PLAYGROUND:
        return False
    if turn.call.delivery is Delivery.LEGACY:
        owned_call = turn.incoming.owned_call
        return owned_call is not None and owned_call.movable
    return turn.attempt <= options().stateless_replies


def _repeats(turn: Turn, requests: Requests) -> bool:
    """Whether the client's last HTTP request was to respond to all these input requests already."""
    state = turn.resumed.state
    before = {} if state is None else state.input_requests
    input_requests = {
        request.key: AskedQuestion(request.method, request.digest) for request in requests
    }
    return bool(requests) and input_requests.items() <= before.items()


def _repetitions(turn: Turn) -> int:
    state = turn.resumed.state
    return 0 if state is None else state.repetitions


def _explained(turn: Turn, outcome: Outcome, problem: Failure) -> Failure:
    """The failure of a call that asks too often, with what its user has answered, and with why the last
    response was not accepted."""
    if problem.kind is not FailureKind.ASKED_TOO_OFTEN or not isinstance(outcome, InputRequired):
        return problem
    texts = [problem.message]
    if answered := [key for key, answers in outcome.journal.answers.items() if answers]:
        texts.append(f"Answered were: {', '.join(sorted(answered))}.")
    texts += [
        f"The response to {key} was not accepted: {why}." for key, why in outcome.invalid.items()
    ]
    return replace(problem, message=" ".join(texts))


async def _ask(turn: Turn, outcome: Outcome, requests: Requests, journal: Journal) -> Delivered:
    """Seal the state and build the reply with the input requests, or a failure."""
    policy = POLICIES[turn.call.delivery]
    problem = policy.refuses(turn, requests)
    if problem is not None and turn.task.possible:
        return await _become_task(turn, outcome, requests, journal)
    if problem is None and _lacks_person(turn.call, requests):
        problem = NO_PERSON
    if problem is not None:
        return _failed(turn, _explained(turn, outcome, problem))
    state = _state(turn, policy, requests, journal)
    try:
        token = await _sealed(turn, policy, state)
    except (SealError, VaultError) as error:
        return _failed(turn, _unsealed(error, journal))
    except PartNotStoredError as error:
        return _failed(turn, Failure(FailureKind.JOURNAL_TOO_LARGE, str(error), journal.largest()))
    input_requests = {
        request.key: {"method": request.method, "params": request.params} for request in requests
    }
    return Delivered(outcome, Asking(input_requests, token), SealedState(state, key_id(token)))


async def _sealed(turn: Turn, policy: Policy, state: RequestState) -> str:
    if policy.purpose is Purpose.STATE:
        return await state_parts.seal(turn, state)
    written, context = request_state.write(state), policy.context(turn.call.id)
    return await sealing.seal(policy.purpose, turn.call.tenant, written, context=context)


async def _become_task(
    turn: Turn, outcome: Outcome, requests: Requests, journal: Journal
) -> Delivered:
    """Make a task of the call, which goes on from the journal; it asks `requests`."""
    if _lacks_person(turn.call, requests):
        return _failed(turn, NO_PERSON)
    policy = POLICIES[Delivery.TASK]
    state = _state(turn, policy, requests, journal)
    try:
        token = await _sealed(turn, policy, state)
        new_questions = await stored_tasks.prepare_questions(
            turn.call.tenant, requests, (), state.expires_at
        )
        created = await stored_tasks.create(turn, token, new_questions)
    except (SealError, VaultError) as error:
        return _failed(turn, _unsealed(error, journal))
    sealed = SealedState(state, key_id(token))
    return Delivered(outcome, Handle(created.view), sealed, created)


async def journal_before(turn: Turn) -> str:
    """The sealed state from which a process can run this very round again, as a task's.

    Raises SealError, VaultError.
    """
    policy = POLICIES[Delivery.TASK]
    state = _state(turn, policy, (), turn.journal)
    return await _sealed(turn, policy, state._replace(round=state.round - 1))


def may_publish(turn: Turn, request: InputRequest) -> bool:
    """Whether an input request of a task can be sent: else the round's end says why not."""
    refused = POLICIES[Delivery.TASK].refuses(turn, (request,))
    return refused is None and not _lacks_person(turn.call, (request,))


def answer_by(turn: Turn) -> float:
    """Until when an input request of this round can be answered, in seconds since 1970."""
    now = time.time()
    return POLICIES[turn.call.delivery].expires_at(turn, _answer_seconds(turn), now)


def _answer_seconds(turn: Turn) -> float:
    seconds = turn.primitive.answer_within or options().answer_seconds
    return min(seconds, options().longest_answer_seconds)


def _state(turn: Turn, policy: Policy, requests: Requests, journal: Journal) -> RequestState:
    """The state from which the next round resumes."""
    call, now = turn.call, time.time()
    return RequestState(
        bound=turn.bound,
        call=call.id,
        round=call.round,
        requests_made=policy.requests_made(turn, requests),
        shed=turn.was_shed or not requests,
        issued_at=now,
        expires_at=policy.expires_at(turn, _answer_seconds(turn), now),
        version=call.version,
        input_requests={
            request.key: AskedQuestion(request.method, request.digest) for request in requests
        },
        journal=journal,
        claim=turn.next_claim,
        repetitions=_repetitions(turn) + _repeats(turn, requests),
    )


def _cannot_carry(call: Call, requests: Requests) -> Failure | None:
    """The failure for the first input request that the session's revision does not have, if any."""
    for request in requests:
        try:
            questions.question_params_for(REVISIONS[call.revision], request.method, request.params)
        except NotCarriedError as why:
            missing = CapabilityMissingError(why.capability, call.method)
            detail = f"the question {request.key!r} cannot be put: {why}"
            message = f"{missing} Protocol revision {call.revision} has no such input request."
            kind = FailureKind.CAPABILITY_MISSING
            return Failure(kind, message, detail, required=missing.required)
    return None


def _lacks_person(call: Call, requests: Iterable[InputRequest]) -> bool:
    """Whether a call without a user account uses URL mode elicitation, where the server must
    identify the user who opens the address (spec: client/elicitation, "Identifying the User")."""
    wants = any(request.params.get("mode") == "url" for request in requests)
    return wants and call.principal.user_id is None


def _unsealed(error: SealError | VaultError, journal: Journal) -> Failure:
    if not isinstance(error, SealError) or error.reason is not Reason.TOO_LARGE:
        return Failure(FailureKind.CRASHED, "Input cannot be requested at the moment.", repr(error))
    return Failure(
        FailureKind.JOURNAL_TOO_LARGE,
        "The call's journal is too large for the request state.",
        f"the state of the call is too large; {journal.largest()}",
    )


def _failed(turn: Turn, error: Failure) -> Delivered:
    return Delivered(Failed(error), _reply(error, turn.call))


def _reply(error: Failure, call: Call) -> Reply:
    """The reply for a failure. Only tools report failures in a result, where models can read them
    (spec: server/tools, server/prompts, server/resources, utilities/completion, Error Handling)."""
    if error.kind is FailureKind.OVERLOADED:
        return Refused(over_limit(error.message, RETRY_SECONDS))
    if error.kind is FailureKind.CAPABILITY_MISSING and call.era is Era.MODERN:
        return Refused(missing_capability(error.message, error.required or {}))
    if call.method == "tools/call":
        content = [{"type": "text", "text": error.message}]
        return Answered({"content": content, "isError": True})
    code = INVALID_PARAMS if error.kind in _ASKED_WRONGLY else INTERNAL_ERROR
    data = {"uri": call.target} if call.method == "resources/read" else None
    return Refused(ProtocolError(code, error.message, data))
