"""The states of a tool, and which verb leads from which to which.

A published tool that is edited stays published: edits change the working copy, and what is served
is the version written when it was last published.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from django.db.models import TextChoices


class State(TextChoices):
    """Where a tool stands. Only a published one is listed and can be called."""

    DRAFT = "draft"
    PUBLISHED = "published"
    DISABLED = "disabled"


class Verb(StrEnum):
    """What an operator does to a tool's state."""

    PUBLISH = "publish"
    DISABLE = "disable"
    ENABLE = "enable"


TRANSITIONS: Mapping[State, Mapping[Verb, State]] = {
    State.DRAFT: {Verb.PUBLISH: State.PUBLISHED},
    State.PUBLISHED: {Verb.PUBLISH: State.PUBLISHED, Verb.DISABLE: State.DISABLED},
    State.DISABLED: {Verb.PUBLISH: State.PUBLISHED, Verb.ENABLE: State.PUBLISHED},
}
"""Publishing always writes a new version; enabling serves the last one again."""


def following(state: State, verb: Verb) -> State | None:
    """The state that `verb` leads to, or None when it is not possible from `state`."""
    return TRANSITIONS[state].get(verb)


def diagram() -> Iterator[str]:
    """One line for each transition, as the documentation shows them."""
    for state, verbs in TRANSITIONS.items():
        for verb, target in verbs.items():
            yield f"{state.value} --{verb.value}--> {target.value}"
