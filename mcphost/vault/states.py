"""The states of ring keys, and their transitions, as tables.

A key is written as `standby`, so that every process can read it before anything is sealed under it.
The `active` key seals and opens. A `retiring` one opens until its last token has expired. A
`retired` one opens nothing, but its secret is still stored. A `destroyed` one has no secret left.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from django.db.models import TextChoices


class KeyState(TextChoices):
    STANDBY = "standby"
    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"
    DESTROYED = "destroyed"


class KeyVerb(StrEnum):
    """The transitions of a key."""

    PROMOTE = "promote"
    """Every process has had time to read it: it becomes active."""
    REPLACE = "replace"
    """Another key was promoted."""
    COMPROMISE = "compromise"
    """It may be known to others: processes stop using it as soon as they learn of this."""
    RETIRE = "retire"
    """Its last token has expired, or an operator retires it before."""
    DESTROY = "destroy"
    """Its secret is erased."""


TRANSITIONS: Final[Mapping[KeyState, Mapping[KeyVerb, KeyState]]] = {
    KeyState.STANDBY: {
        KeyVerb.PROMOTE: KeyState.ACTIVE,
        KeyVerb.COMPROMISE: KeyState.RETIRED,
        KeyVerb.RETIRE: KeyState.RETIRED,
    },
    KeyState.ACTIVE: {KeyVerb.REPLACE: KeyState.RETIRING, KeyVerb.COMPROMISE: KeyState.RETIRED},
    KeyState.RETIRING: {KeyVerb.RETIRE: KeyState.RETIRED},
    KeyState.RETIRED: {KeyVerb.DESTROY: KeyState.DESTROYED},
    KeyState.DESTROYED: {},
}

SEALS: Final = KeyState.ACTIVE
# A standby key opens tokens already: another process may learn of its activation first.
OPENS: Final = frozenset({KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING})


def next_state(state: KeyState, verb: KeyVerb) -> KeyState | None:
    """The state that `verb` leads to, or None when it is not possible from `state`."""
    return TRANSITIONS[state].get(verb)


def diagram() -> Iterator[str]:
    """One line per transition, as shown in the documentation."""
    for state, verbs in TRANSITIONS.items():
        for verb, target in verbs.items():
            yield f"{state.value} --{verb.value}--> {target.value}"
