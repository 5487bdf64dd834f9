"""What is recorded of a round: who, what, how it ended, and the payload kept apart."""

from collections.abc import Mapping
from typing import Any, assert_never

from mcphost.audit import records
from mcphost.audit.records import Ending, Leg, Record
from mcphost.runtime.outcomes import Complete, Failed, InputRequired, Outcome, Yielded
from mcphost.runtime.ports import SystemClock
from mcphost.serving.turn import Turn

_CLOCK = SystemClock()

COMPLETE = "complete"
TOOL_ERROR = "tool_error"
INPUT_REQUIRED = "input_required"
YIELDED = "yielded"
CANCELLED = "cancelled"
HANG_UP = "the client hung up"
REASON_LENGTH = 200


def started(turn: Turn) -> Record:
    """The entry without which a tool that is not read-only does not run."""
    return records.started(turn.call, _leg(turn), _CLOCK.now(), turn.primitive.version)


def finished(turn: Turn, outcome: Outcome, seconds: float, size: int) -> Record:
    """The entry of a round that ran to an outcome, whose result is `size` bytes of JSON."""
    match outcome:
        case Complete(result):
            word, reason = (TOOL_ERROR if outcome.is_error else COMPLETE), ""
            answer: Mapping[str, Any] | None = result
        case Failed(error):
            word, reason, answer = error.kind.value, error.message, None
        case InputRequired():
            word, reason, answer = INPUT_REQUIRED, "", None
        case Yielded():
            word, reason, answer = YIELDED, "", None
        case _:
            assert_never(outcome)
    return _finished(turn, Ending(word, reason, _micros(seconds), size, _payload(turn, answer)))


def cancelled(turn: Turn, seconds: float, end: BaseException) -> Record:
    """The entry of a round that was cancelled: its client went away, or what the message says."""
    reason = str(end)[:REASON_LENGTH] or HANG_UP
    return _finished(turn, Ending(CANCELLED, reason, _micros(seconds), 0, _payload(turn, None)))


def _finished(turn: Turn, ending: Ending) -> Record:
    return records.finished(turn.call, _leg(turn), _CLOCK.now(), ending, turn.primitive.version)


def _leg(turn: Turn) -> Leg:
    return Leg(turn.incoming.leg, turn.incoming.source, turn.incoming.size)


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


def _payload(turn: Turn, result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What was asked and answered, with what is secret by its schema taken out."""
    primitive = turn.primitive
    payload: dict[str, Any] = {"arguments": primitive.input_redactor.redact(turn.call.arguments)}
    if result is not None:
        payload["result"] = primitive.output_redactor.redact(result)
    return payload
