"""The states of claims, of calls on streams, and of their questions.

A claim is written as `running`, or as `released` by a process that cannot run its round. A released
one can be taken by any process that gets the same answers or has the round's function, and so can a
running one whose owner has died: it is then `running` again. A released one that no process takes in
time is `finished` with a reply that only sends the client elsewhere. A finished one stays so until it
is deleted.
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
    ClaimState.RELEASED: frozenset({ClaimState.RUNNING, ClaimState.FINISHED}),
    ClaimState.FINISHED: frozenset(),
}


class CallState(TextChoices):
    """A call on a stream is running or waiting for answers, until it is finished or cancelled."""

    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class QuestionState(TextChoices):
    """A question is open until it is answered, cancelled with its call, or expired."""

    OPEN = "open"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


def before(state: ClaimState) -> frozenset[ClaimState]:
    """The states from which a claim may change to `state`."""
    return frozenset(each for each in ClaimState if state in TRANSITIONS[each])
