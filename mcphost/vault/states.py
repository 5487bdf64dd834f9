"""The life of a key of the ring, as tables.

A key is written as `standby`, so that every process can read it before anything is sealed under it;
the `active` one seals; a `retiring` one opens until the last token under it has expired; a
`retired` one opens nothing but is still there; of a `destroyed` one only the row is left.
"""

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices


class KeyState(TextChoices):
    STANDBY = "standby"
    ACTIVE = "active"
    RETIRING = "retiring"
    RETIRED = "retired"
    DESTROYED = "destroyed"


TRANSITIONS: Final[Mapping[KeyState, frozenset[KeyState]]] = {
    KeyState.STANDBY: frozenset({KeyState.ACTIVE}),
    KeyState.ACTIVE: frozenset({KeyState.RETIRING}),
    KeyState.RETIRING: frozenset({KeyState.RETIRED}),
    KeyState.RETIRED: frozenset({KeyState.DESTROYED}),
    KeyState.DESTROYED: frozenset(),
}

SEALS: Final = KeyState.ACTIVE
# A standby key opens already: another process may have heard of its activation first.
OPENS: Final = frozenset({KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING})


def may_become(now: KeyState, then: KeyState) -> bool:
    """Whether a key in state `now` may be given the state `then`."""
    return then in TRANSITIONS[now]
