"""What is recorded of a round: who, what, how it ended, and the payload kept apart."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never
from uuid import UUID

from mcphost.audit import records
from mcphost.audit.records import Ending, Leg, Record
from mcphost.audit.redaction import REDACTED
from mcphost.runtime.call import Call
from mcphost.runtime.journal import TIMED_OUT, Answer
from mcphost.runtime.outcomes import (
    Complete,
    Failed,
    InputRequest,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.runtime.ports import SystemClock
from mcphost.serving.replies import Delivered, Sealed
from mcphost.serving.resumed import Taken
from mcphost.serving.turn import Turn

_CLOCK = SystemClock()

COMPLETE = "complete"
TOOL_ERROR = "tool_error"
INPUT_REQUIRED = "input_required"
YIELDED = "yielded"
CANCELLED = "cancelled"
WELL = frozenset({COMPLETE, INPUT_REQUIRED, YIELDED})
"""How rounds end that did not fail."""
CLIENT_ASSERTED = "client-asserted"
"""How we know of an answer: a client said that somebody gave it."""
OBSERVED = "observed"
"""The same where nobody said anything: we saw that the time was over."""
LATE = "over"
"""Why what a program said was kept from leaving: its call had ended."""
RECEIVED = "received"
EXPIRED = "expired"
HANG_UP = "the client hung up"
REASON_LENGTH = 200

_ACTIONS = frozenset({"accept", "decline", "cancel"})
_GIVEN_BY_TEXT = frozenset({"prompts/get", "resources/read"})
_MADE_OF_ARGUMENTS = frozenset({"description", "messages", "contents"})
"""What of a prompt or a resource has the caller's own texts in it, where no schema finds them."""


def before(turn: Turn) -> tuple[Record, ...]:
    """What is committed before the round runs: the answers that it will act on, and its start.

    Nothing for a read-only tool's first round.
    """
    answers = tuple(_answer(turn, one) for one in turn.resumed.taken)
    return answers if turn.primitive.read_only else (*answers, _started(turn))


def after(turn: Turn, delivered: Delivered, seconds: float, size: int) -> tuple[Record, ...]:
    """What is committed before the reply leaves: how the round ended, and what it asks.

    `size` is that of the result as JSON, in bytes.
    """
    outcome = delivered.outcome
    reason = outcome.error.message if isinstance(outcome, Failed) else ""
    payload = _payload(turn, outcome.result if isinstance(outcome, Complete) else None)
    facts = _facts(outcome, delivered.sealed)
    ending = Ending(word_for(outcome), reason, _micros(seconds), size, payload, facts)
    end = _finished(turn, ending)
    if not isinstance(outcome, InputRequired):
        return (end,)
    return (end, *(_question(turn, one) for one in outcome.requests))


def refused(turn: Turn, reason: str, call: UUID | None) -> Record:
    """The entry of a state that was not good for its request; `call` is the state's, if known."""
    now, ending = _CLOCK.now(), Ending("refused", reason)
    return records.state_refused(_call(turn), _leg(turn), now, ending)._replace(call=call)


def late(turn: Turn) -> Record:
    """The entry of what a program tried after its round had ended."""
    return records.message_refused(_call(turn), _leg(turn), _CLOCK.now(), Ending("refused", LATE))


def _started(turn: Turn) -> Record:
    """The entry without which a tool that is not read-only does not run."""
    return records.started(_call(turn), _leg(turn), _CLOCK.now(), turn.primitive.version)


def _question(turn: Turn, one: InputRequest) -> Record:
    facts = {**_named(one.key, one.digest, one.method), "mode": one.params.get("mode", "")}
    ending = Ending("", payload={"question": one.params}, facts=facts)
    return records.asked(_call(turn), _leg(turn), _CLOCK.now(), ending, turn.primitive.version)


def _answer(turn: Turn, one: Taken) -> Record:
    resumed, now = turn.resumed, _CLOCK.now()
    took = None if resumed.state is None else now.timestamp() - resumed.state.issued_at
    facts = {
        **_named(one.key, one.answer.question, one.method),
        "evidence": OBSERVED if one.answer.failure == TIMED_OUT else CLIENT_ASSERTED,
        "seconds": took and max(0.0, round(took, 3)),
        "sealed_by": resumed.sealed_by,
        "unasked": not one.method,
    }
    word = _word_of(one.answer)
    ending = Ending(word, payload={"answer": one.answer.result}, facts=facts)
    return records.answered(_call(turn), _leg(turn), now, ending, turn.primitive.version)


def _word_of(answer: Answer) -> str:
    """How a question was answered, in a word."""
    if answer.failure:
        return EXPIRED if answer.failure == TIMED_OUT else answer.failure
    said = answer.result.get("action")
    return said if said in _ACTIONS else RECEIVED


def _named(key: str, question: str, method: str) -> dict[str, Any]:
    return {"key": key, "question": question, "method": method}


def _facts(outcome: Outcome, sealed: Sealed | None) -> Mapping[str, Any] | None:
    """What is to be known of a round that did not end its call; nothing of one that did."""
    if sealed is None:
        return None
    facts: dict[str, Any] = {
        "sealed_by": sealed.key_id,
        "expires_at": datetime.fromtimestamp(sealed.expires_at, UTC).isoformat(),
    }
    if isinstance(outcome, InputRequired):
        facts["asked"] = [one.key for one in outcome.requests]
        if outcome.invalid:
            facts["invalid"] = dict(outcome.invalid)
    return facts


def word_for(outcome: Outcome) -> str:
    """The word that records, metrics and traces have for it."""
    match outcome:
        case Complete():
            return TOOL_ERROR if outcome.is_error else COMPLETE
        case Failed(error):
            return error.kind.value
        case InputRequired():
            return INPUT_REQUIRED
        case Yielded():
            return YIELDED
        case _:
            assert_never(outcome)


def cancelled(turn: Turn, seconds: float, end: BaseException) -> Record:
    """The entry of a round that was cancelled: its client went away, or what the message says."""
    reason = str(end)[:REASON_LENGTH] or HANG_UP
    return _finished(turn, Ending(CANCELLED, reason, _micros(seconds), 0, _payload(turn, None)))


def _finished(turn: Turn, ending: Ending) -> Record:
    return records.finished(_call(turn), _leg(turn), _CLOCK.now(), ending, turn.primitive.version)


def _call(turn: Turn) -> Call:
    """The call under the name that it may be looked up by: a URI with a secret in it is none."""
    if turn.call.target != turn.primitive.name and _tells(turn):
        return turn.call._replace(target=turn.primitive.name)
    return turn.call


def _leg(turn: Turn) -> Leg:
    return Leg(turn.incoming.leg, turn.incoming.source, turn.incoming.size)


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _payload(turn: Turn, result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What was asked and answered, with what is secret by its schema taken out."""
    primitive = turn.primitive
    payload: dict[str, Any] = {"arguments": primitive.input_redactor.redact(turn.call.arguments)}
    if result is not None:
        made = primitive.output_redactor.redact(result)
        payload["result"] = _without(_MADE_OF_ARGUMENTS, made) if _tells(turn) else made
    return payload


def _tells(turn: Turn) -> bool:
    """Whether what is asked for, and so what is made of it, may have a secret in it."""
    return turn.call.method in _GIVEN_BY_TEXT and not turn.primitive.input_redactor.is_empty


def _without(names: frozenset[str], result: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: REDACTED if name in names else value for name, value in result.items()}
