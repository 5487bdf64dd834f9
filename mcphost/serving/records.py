"""What is recorded of a round: who, what, how it ended, and the payload kept apart."""

from collections.abc import Mapping
from typing import Any, assert_never

from mcphost.audit import records
from mcphost.audit.records import Ending, Leg, Record
from mcphost.audit.redaction import REDACTED
from mcphost.runtime.call import Call
from mcphost.runtime.outcomes import Complete, Failed, InputRequired, Outcome, Yielded
from mcphost.runtime.ports import SystemClock
from mcphost.serving.turn import Turn

_CLOCK = SystemClock()

COMPLETE = "complete"
TOOL_ERROR = "tool_error"
INPUT_REQUIRED = "input_required"
YIELDED = "yielded"
CANCELLED = "cancelled"
WELL = frozenset({COMPLETE, INPUT_REQUIRED, YIELDED})
"""How rounds end that did not fail."""
HANG_UP = "the client hung up"
REASON_LENGTH = 200

_GIVEN_BY_TEXT = frozenset({"prompts/get", "resources/read"})
_MADE_OF_ARGUMENTS = frozenset({"description", "messages", "contents"})
"""What of a prompt or a resource has the caller's own texts in it, where no schema finds them."""


def started(turn: Turn) -> Record:
    """The entry without which a tool that is not read-only does not run."""
    return records.started(_call(turn), _leg(turn), _CLOCK.now(), turn.primitive.version)


def finished(turn: Turn, outcome: Outcome, seconds: float, size: int) -> Record:
    """The entry of a round that ran to an outcome, whose result is `size` bytes of JSON."""
    reason = outcome.error.message if isinstance(outcome, Failed) else ""
    payload = _payload(turn, outcome.result if isinstance(outcome, Complete) else None)
    ending = Ending(word_for(outcome), reason, _micros(seconds), size, payload)
    return _finished(turn, ending)


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
