"""The states of claims, of calls on streams, and of questions, and the transitions between them.

A claim is written as `running`, or as `released` by a process that cannot run its round. A released
one can be taken by any process that gets the same answers or has the round's function, and so can a
running one whose owner has died: it is then `running` again. A released one that no process takes in
time is `finished` with a reply that only sends the client elsewhere. A finished one stays so until it
is deleted.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from django.db.models import TextChoices

_State = TypeVar("_State", bound=TextChoices)


class ClaimState(TextChoices):
    RUNNING = "running"
    RELEASED = "released"
    FINISHED = "finished"


CLAIM: Final[Mapping[ClaimState, frozenset[ClaimState]]] = {
    ClaimState.RUNNING: frozenset({ClaimState.RUNNING, ClaimState.RELEASED, ClaimState.FINISHED}),
    ClaimState.RELEASED: frozenset({ClaimState.RUNNING, ClaimState.FINISHED}),
    ClaimState.FINISHED: frozenset(),
}


class CallState(TextChoices):
    """The row of a call on a stream: it is running or waiting for answers, until it is finished or cancelled."""

    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    CANCELLED = "cancelled"


CALL: Final[Mapping[CallState, frozenset[CallState]]] = {
    CallState.RUNNING: frozenset(CallState),
    CallState.WAITING: frozenset(CallState),
    # Its owner may have ended it by then, and not know of the cancellation: what it sends last counts.
    CallState.CANCELLED: frozenset({CallState.CANCELLED, CallState.FINISHED}),
    CallState.FINISHED: frozenset({CallState.FINISHED}),
}
"""Repeating a change is allowed: whether a commit was confirmed can be unknown."""


class QuestionState(TextChoices):
    """A question of a session's call or of a task is open until it is answered, cancelled with its call, or expired."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


QUESTION: Final[Mapping[QuestionState, frozenset[QuestionState]]] = {
    QuestionState.OPEN: frozenset(QuestionState) - {QuestionState.OPEN},
    QuestionState.ANSWERED: frozenset({QuestionState.ANSWERED}),
    QuestionState.CANCELLED: frozenset(),
    QuestionState.EXPIRED: frozenset(),
}
"""An answer may be repeated, if it is the same."""


def before(table: Mapping[_State, frozenset[_State]], state: _State) -> frozenset[_State]:
    """The states from which a row may change to `state`."""
    return frozenset(source for source, targets in table.items() if state in targets)


class OwnedCallState(StrEnum):
    """What the owner process does with a session's call."""

    RUNNING = "running"
    """A task runs a round, or prepares the next one."""
    RESTING = "resting"
    """The call waits for input responses, without a task."""
    RELEASED = "released"
    """The call is let go: another process continues it."""
    ENDING = "ending"
    """Its end is being written. Nothing interrupts that."""


class OwnedCallEvent(StrEnum):
    """What can happen to a session's call in its owner process."""

    REST = "rest"
    WAKE = "wake"
    RELEASE = "release"
    END = "end"


OWNED_CALL: Final[Mapping[tuple[OwnedCallState, OwnedCallEvent], OwnedCallState]] = (
    MappingProxyType(
        {
            (OwnedCallState.RUNNING, OwnedCallEvent.REST): OwnedCallState.RESTING,
            (OwnedCallState.RUNNING, OwnedCallEvent.RELEASE): OwnedCallState.RELEASED,
            (OwnedCallState.RUNNING, OwnedCallEvent.END): OwnedCallState.ENDING,
            (OwnedCallState.RESTING, OwnedCallEvent.WAKE): OwnedCallState.RUNNING,
            (OwnedCallState.RESTING, OwnedCallEvent.RELEASE): OwnedCallState.RELEASED,
        }
    )
)
"""What each event makes of each state. A pair that is missing changes nothing."""


class StreamState(StrEnum):
    """What the owner process does with the event stream of a session's call."""

    SILENT = "silent"
    """Nothing is sent yet: the call may still be answered as JSON."""
    OPEN = "open"
    """Messages are written and shown."""
    LAST = "last"
    """The last message waits to be written."""
    ENDED = "ended"
    """Nothing more is written here."""
    MOVED = "moved"
    """Another process writes; readers here are shown that."""
    DROPPED = "dropped"
    """It has ended before anything was sent."""


class StreamStep(StrEnum):
    """What can happen to a stream in the process that writes it."""

    OPEN = "open"
    FINISH = "finish"
    UNRECORDED = "unrecorded"
    """The last message could not be recorded."""
    WRITTEN = "written"
    """The last message is written."""
    ABANDON = "abandon"
    MOVE = "move"


STREAM: Final[Mapping[tuple[StreamState, StreamStep], StreamState]] = MappingProxyType(
    {
        (StreamState.SILENT, StreamStep.OPEN): StreamState.OPEN,
        (StreamState.SILENT, StreamStep.ABANDON): StreamState.DROPPED,
        (StreamState.OPEN, StreamStep.FINISH): StreamState.LAST,
        (StreamState.OPEN, StreamStep.ABANDON): StreamState.ENDED,
        (StreamState.OPEN, StreamStep.MOVE): StreamState.MOVED,
        (StreamState.LAST, StreamStep.UNRECORDED): StreamState.OPEN,
        (StreamState.LAST, StreamStep.WRITTEN): StreamState.ENDED,
        (StreamState.LAST, StreamStep.ABANDON): StreamState.ENDED,
    }
)
"""What each event makes of each state. A pair that is missing changes nothing."""


def diagram(table: Mapping[tuple[StrEnum, StrEnum], StrEnum]) -> Iterator[str]:
    """One line per transition, as shown in the documentation."""
    for (state, event), then in table.items():
        yield f"{state} --{event}--> {then}"
