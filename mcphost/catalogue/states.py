"""The states of a primitive, and the transitions between them.

A published primitive that is edited stays published: edits change the working copy, and what is
served is the version written when it was last published.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from django.db.models import TextChoices


class PrimitiveState(TextChoices):
    """The state of a primitive. Only a published one is listed and can be called."""

    DRAFT = "draft"
    PUBLISHED = "published"
    DISABLED = "disabled"
    ARCHIVED = "archived"


class PrimitiveVerb(StrEnum):
    """An operator's action on the state of a primitive."""

    PUBLISH = "publish"
    DISABLE = "disable"
    ENABLE = "enable"
    ARCHIVE = "archive"
    RESTORE = "restore"


TRANSITIONS: Mapping[PrimitiveState, Mapping[PrimitiveVerb, PrimitiveState]] = {
    PrimitiveState.DRAFT: {PrimitiveVerb.PUBLISH: PrimitiveState.PUBLISHED},
    PrimitiveState.PUBLISHED: {
        PrimitiveVerb.PUBLISH: PrimitiveState.PUBLISHED,
        PrimitiveVerb.DISABLE: PrimitiveState.DISABLED,
        PrimitiveVerb.ARCHIVE: PrimitiveState.ARCHIVED,
    },
    PrimitiveState.DISABLED: {
        PrimitiveVerb.PUBLISH: PrimitiveState.PUBLISHED,
        PrimitiveVerb.ENABLE: PrimitiveState.PUBLISHED,
        PrimitiveVerb.ARCHIVE: PrimitiveState.ARCHIVED,
    },
    PrimitiveState.ARCHIVED: {PrimitiveVerb.RESTORE: PrimitiveState.DISABLED},
}
"""Publishing writes a new version; enabling serves the last one again.

An archived primitive is not in the lists; its name stays taken.
"""

DELETABLE = frozenset({PrimitiveState.DRAFT, PrimitiveState.ARCHIVED})
"""The states in which a primitive, with its versions, can be deleted."""


def following(state: PrimitiveState, verb: PrimitiveVerb) -> PrimitiveState | None:
    """The state that `verb` leads to, or None when it is not possible from `state`."""
    return TRANSITIONS[state].get(verb)


def possible(state: PrimitiveState) -> frozenset[PrimitiveVerb]:
    """The verbs that `state` allows."""
    return frozenset(TRANSITIONS[state])


def diagram() -> Iterator[str]:
    """One line for each transition, as the documentation shows them."""
    for state, verbs in TRANSITIONS.items():
        for verb, target in verbs.items():
            yield f"{state.value} --{verb.value}--> {target.value}"
