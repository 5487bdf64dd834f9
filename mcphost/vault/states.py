"""The life of a key of the ring, as tables.

A key is written as `standby`, so that every process can read it before anything is sealed under it;
the `active` one seals; a `retiring` one opens until the last token under it has expired; a
`retired` one opens nothing but is still there; of a `destroyed` one only the row is left.
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


class Verb(StrEnum):
    """What happens to a key."""

    PROMOTE = "promote"
    """Every process has had time to read it: it seals from now on."""
    REPLACE = "replace"
    """Another key was promoted."""
    COMPROMISE = "compromise"
    """Somebody may know it: it opens nothing from the moment that this is heard."""
    RETIRE = "retire"
    """Its last token has expired, or an operator does not wait for that."""
    DESTROY = "destroy"
    """Its secret is erased."""


TRANSITIONS: Final[Mapping[KeyState, Mapping[Verb, KeyState]]] = {
    KeyState.STANDBY: {
        Verb.PROMOTE: KeyState.ACTIVE,
        Verb.COMPROMISE: KeyState.RETIRED,
        Verb.RETIRE: KeyState.RETIRED,
    },
    KeyState.ACTIVE: {Verb.REPLACE: KeyState.RETIRING, Verb.COMPROMISE: KeyState.RETIRED},
    KeyState.RETIRING: {Verb.RETIRE: KeyState.RETIRED},
    KeyState.RETIRED: {Verb.DESTROY: KeyState.DESTROYED},
    KeyState.DESTROYED: {},
}

SEALS: Final = KeyState.ACTIVE
# A standby key opens already: another process may have heard of its activation first.
OPENS: Final = frozenset({KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING})


def following(state: KeyState, verb: Verb) -> KeyState | None:
    """The state that `verb` leads to, or None when it is not possible from `state`."""
    return TRANSITIONS[state].get(verb)


def diagram() -> Iterator[str]:
    """One line for each transition, as the documentation shows them."""
    for state, verbs in TRANSITIONS.items():
        for verb, target in verbs.items():
            yield f"{state.value} --{verb.value}--> {target.value}"
