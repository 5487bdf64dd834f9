"""Build the audit records of a round, with their payloads."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never
from uuid import UUID

from mcphost.audit import records
from mcphost.audit.records import Ending, Record, RecordedRequest
from mcphost.audit.redaction import REDACTED
from mcphost.protocol.errors import ProtocolError
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.journal import TIMED_OUT, Answer
from mcphost.runtime.outcomes import (
    Complete,
    Deferred,
    Failed,
    FailureKind,
    InputRequest,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.runtime.ports import Misuse, SystemClock
from mcphost.serving.context import Incoming, TakenAnswer, Turn
from mcphost.serving.replies import Answered, Delivered, Handle, SealedState

_CLOCK = SystemClock()

COMPLETE = "complete"
TOOL_ERROR = "tool_error"
INPUT_REQUIRED = "input_required"
YIELDED = "yielded"
DEFERRED = "deferred"
CANCELLED = "cancelled"
SUCCESSFUL_ENDINGS = frozenset({COMPLETE, INPUT_REQUIRED, YIELDED, DEFERRED})
"""The endings of rounds that did not fail."""
CLIENT_ASSERTED = "client-asserted"
"""The evidence of an input response: the client says that a person gave it."""
PLAYGROUND = "playground"
"""The evidence of an input response of a trial: the user who ran the trial gave it."""
OBSERVED = "observed"
"""The evidence of an expired input request: this server observed the expiry."""
RECEIVED = "received"
EXPIRED = "expired"
DISCONNECTED = "the client disconnected"
BAD_ARGUMENTS = "The arguments did not fit the input schema."
REASON_LENGTH = 200
MICROS = 1_000_000

_ACTIONS = frozenset({"accept", "decline", "cancel"})
_TEXT_ARGUMENT_METHODS = frozenset({"prompts/get", "resources/read"})
_FIELDS_WITH_ARGUMENTS = frozenset({"description", "messages", "contents"})
"""Fields of a prompt's or resource's result that may contain the caller's arguments, which no schema
describes."""


def before(turn: Turn) -> tuple[Record, ...]:
    """The records to commit before the round runs: its input responses and its start.

    Empty for a read-only primitive's first round.
    """
    if turn.primitive.read_only and not turn.resumed.responses:  # most calls
        return ()
    return (*answers(turn), *started(turn))


def answers(turn: Turn) -> tuple[Record, ...]:
    """The records of the input responses that this request has brought."""
    return tuple(_answer(turn, response) for response in turn.resumed.responses)


def started(turn: Turn) -> tuple[Record, ...]:
    """The record of a round's start; none for a read-only primitive."""
    if turn.primitive.read_only:
        return ()
    return (_record(records.ROUND_STARTED, turn, records.NO_ENDING, turn.primitive.version),)


def after(
    turn: Turn, delivered: Delivered, label: str, seconds: float, size: int
) -> tuple[Record, ...]:
    """The records to commit before the reply is sent: the round's end and its input requests.

    `label` is the `outcome_label` of its outcome; `size` is that of the result as JSON, in bytes.
    """
    outcome, reply, sealed, _ = delivered
    reason, result = "", None
    if isinstance(outcome, Complete):
        result = outcome.result
    else:
        result = reply.result if isinstance(reply, Answered) else None
        reason = _reason(outcome, result)
    facts = None if sealed is None else _facts(outcome, sealed)
    payload = _payload(turn, result)
    ending = Ending(label, reason, int(seconds * MICROS), size, payload, facts)
    end = _record(records.ROUND_FINISHED, turn, ending, turn.primitive.version)
    if not isinstance(outcome, InputRequired):
        return (end,)
    if isinstance(reply, Handle):  # the answers go to the task
        turn = turn._replace(call=turn.call._replace(delivery=Delivery.TASK))
    return (end, *(_question(turn, request) for request in outcome.requests))


def _reason(outcome: Outcome, result: Mapping[str, Any] | None) -> str:
    """Why a round failed; empty if it did not. A message that names the caller's own fields is
    replaced if the payload has it, in `result`."""
    if not isinstance(outcome, Failed):
        return ""
    if result is not None and outcome.error.kind is FailureKind.INVALID_ARGUMENTS:
        return BAD_ARGUMENTS
    return outcome.error.message


def refused(turn: Turn, reason: str, call: UUID | None) -> Record:
    """The record of a state that is not valid for its request; `call` is the state's, if known."""
    ending, version = Ending("refused", reason), turn.call.version
    # The request's new call id and round say nothing: the state was for another call, or for none.
    return _record(records.STATE_REFUSED, turn, ending, version)._replace(call=call, round=None)


def repeated(turn: Turn) -> Record:
    """The record of repeated input responses, for which the stored reply was returned."""
    facts = {
        "keys": [response.key for response in turn.resumed.responses],
        "claim": turn.resumed.claim,
    }
    ending = Ending("repeated", facts=facts)
    return _record(records.ANSWER_REPEATED, turn, ending, turn.call.version)


def task_refused(incoming: Incoming, call: UUID, number: int, error: ProtocolError) -> Record:
    """The record of a task whose next round, the `number`th, may not run."""
    ending = Ending(FailureKind.CRASHED.value, error.message[:REASON_LENGTH])
    return _of_task(records.ROUND_FINISHED, incoming, call, number, ending)


def task_cancelled(incoming: Incoming, call: UUID, number: int, tool: str) -> Record:
    """The record of a client's cancellation of a task, after the round of this number."""
    record = _of_task(records.TASK_CANCELLED, incoming, call, number, Ending(CANCELLED))
    return record._replace(target=tool)


def _of_task(action: str, incoming: Incoming, call: UUID, number: int, ending: Ending) -> Record:
    exchange = incoming.exchange
    info = exchange.meta.client_info
    of_task = Call(
        call,
        incoming.tenant.id,
        incoming.principal,
        exchange.method,
        str(exchange.params.get("name", "")),
        {},
        Client(str(info.get("name", "")), str(info.get("version", ""))),
        exchange.revision,
        exchange.era,
        Delivery.TASK,
        round=number,
        trace_id=incoming.trace_id,
    )
    request = RecordedRequest(incoming.http_request_id, incoming.source, incoming.size)
    return records.of_round(action, of_task, request, _CLOCK.now(), ending)


def misused(turn: Turn, misuse: Misuse) -> Record:
    """The record of a misused tool context (`Misuse`). It names only this call."""
    return _record(records.MESSAGE_REFUSED, turn, Ending("refused", misuse), turn.call.version)


def _question(turn: Turn, request: InputRequest) -> Record:
    facts = {
        **_question_facts(request.key, request.digest, request.method),
        "mode": request.params.get("mode", ""),
    }
    ending = Ending("", payload={"question": request.params}, facts=facts)
    return _record(records.QUESTION_ASKED, turn, ending, turn.primitive.version)


def _answer(turn: Turn, response: TakenAnswer) -> Record:
    resumed, now = turn.resumed, _CLOCK.now()
    seconds = None if resumed.state is None else now.timestamp() - resumed.state.issued_at
    facts = {
        **_question_facts(response.key, response.answer.question, response.method),
        "evidence": _evidence(turn, response.answer),
        "seconds": seconds and max(0.0, round(seconds, 3)),
        "sealed_by": resumed.sealed_by,
        "unasked": not response.method,
    }
    label = _response_label(response.answer)
    ending = Ending(label, payload={"answer": response.answer.result}, facts=facts)
    return _record(records.ANSWER_RECEIVED, turn, ending, turn.primitive.version, now)


def _evidence(turn: Turn, answer: Answer) -> str:
    """How this server knows the answer."""
    if answer.failure == TIMED_OUT:
        return OBSERVED
    return PLAYGROUND if turn.call.delivery is Delivery.PLAYGROUND else CLIENT_ASSERTED


def _response_label(answer: Answer) -> str:
    """How an input request was answered, in one word."""
    if answer.failure:
        return EXPIRED if answer.failure == TIMED_OUT else answer.failure
    action = answer.result.get("action")
    return action if isinstance(action, str) and action in _ACTIONS else RECEIVED


def _question_facts(key: str, question: str, method: str) -> dict[str, Any]:
    return {"key": key, "question": question, "method": method}


def _facts(outcome: Outcome, sealed: SealedState) -> Mapping[str, Any]:
    """The facts of a round that did not end its call: its state and input requests."""
    facts: dict[str, Any] = {
        "sealed_by": sealed.key_id,
        "expires_at": datetime.fromtimestamp(sealed.state.expires_at, UTC).isoformat(),
    }
    if isinstance(outcome, InputRequired):
        facts["asked"] = [request.key for request in outcome.requests]
        if outcome.invalid:
            facts["invalid"] = dict(outcome.invalid)
    return facts


def outcome_label(outcome: Outcome) -> str:
    """Return the name of an outcome in records, metrics and traces."""
    match outcome:
        case Complete():
            return TOOL_ERROR if outcome.result.get("isError") else COMPLETE
        case Failed(error):
            return error.kind.value
        case InputRequired():
            return INPUT_REQUIRED
        case Yielded():
            return YIELDED
        case Deferred():
            return DEFERRED
        case _:
            assert_never(outcome)


def cancelled(turn: Turn, seconds: float, end: BaseException) -> Record:
    """The record of a cancelled round. The reason is the exception's text, or else a disconnect."""
    reason = str(end)[:REASON_LENGTH] or DISCONNECTED
    ending = Ending(CANCELLED, reason, int(seconds * MICROS), 0, _payload(turn, None))
    return _record(records.ROUND_FINISHED, turn, ending, turn.primitive.version)


def _record(
    action: str, turn: Turn, ending: Ending, version: str, at: datetime | None = None
) -> Record:
    call, incoming = turn.call, turn.incoming
    # A target that may contain a secret is replaced by the name.
    if call.target != turn.primitive.name and _may_hold_secrets(turn):
        call = call._replace(target=turn.primitive.name)
    request = RecordedRequest(incoming.http_request_id, incoming.source, incoming.size)
    return records.of_round(action, call, request, at or _CLOCK.now(), ending, version)


def _payload(turn: Turn, result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Arguments and result, without what the schema marks as secret."""
    primitive = turn.primitive
    payload: dict[str, Any] = {"arguments": primitive.input_redactor.redact(turn.call.arguments)}
    if result is not None:
        redacted = primitive.output_redactor.redact(result)
        payload["result"] = (
            _without(_FIELDS_WITH_ARGUMENTS, redacted) if _may_hold_secrets(turn) else redacted
        )
    return payload


def _may_hold_secrets(turn: Turn) -> bool:
    """Whether the target or arguments, and so the result, may contain a secret as plain text."""
    return turn.call.method in _TEXT_ARGUMENT_METHODS and bool(turn.primitive.input_redactor.rules)


def _without(names: frozenset[str], result: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: REDACTED if name in names else value for name, value in result.items()}
