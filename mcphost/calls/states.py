"""The lives of claims, of calls on streams, and of their questions, as tables.

A claim is written as `running`. A `released` one waits for whoever comes with the same answers, and
so does a running one whose owner has died: to be taken over is to be running anew. A `finished` one
is that for good, until it is forgotten.
"""

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices


class ClaimState(TextChoices):
    RUNNING = "running"
    RELEASED = "released"
    FINISHED = "finished"


TRANSITIONS: Final[Mapping[ClaimState, frozenset[ClaimState]]] = {
    ClaimState.RUNNING: frozenset({ClaimState.RUNNING, ClaimState.RELEASED, ClaimState.FINISHED}),
    ClaimState.RELEASED: frozenset({ClaimState.RUNNING}),
    ClaimState.FINISHED: frozenset(),
}


class CallState(TextChoices):
    """A call on a stream runs, or waits for answers, until it is over in one of two ways."""

    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    CANCELLED = "cancelled"


CALLS: Final[Mapping[CallState, frozenset[CallState]]] = {
    CallState.RUNNING: frozenset(
        {CallState.RUNNING, CallState.WAITING, CallState.FINISHED, CallState.CANCELLED}
    ),
    CallState.WAITING: frozenset({CallState.RUNNING, CallState.FINISHED, CallState.CANCELLED}),
    CallState.FINISHED: frozenset(),
    CallState.CANCELLED: frozenset(),
}


class QuestionState(TextChoices):
    """A question is open until it is answered, or nobody waits for its answer any more."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


QUESTIONS: Final[Mapping[QuestionState, frozenset[QuestionState]]] = {
    QuestionState.OPEN: frozenset(
        {QuestionState.ANSWERED, QuestionState.CANCELLED, QuestionState.EXPIRED}
    ),
    QuestionState.ANSWERED: frozenset(),
    QuestionState.CANCELLED: frozenset(),
    QuestionState.EXPIRED: frozenset(),
}


def before(state: ClaimState) -> frozenset[ClaimState]:
    """The states of which a claim may become one in `state`."""
    return frozenset(each for each in ClaimState if state in TRANSITIONS[each])
