"""The ring for display."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.vault.errors import UnknownKeyError
from mcphost.vault.lifecycle import STANDBY, lifetime, rotate, run_due_transitions
from mcphost.vault.listing import key, keys
from mcphost.vault.services import ensure_ring
from mcphost.vault.states import KeyState
from tests.audit.waiting import asked
from tests.vault.rings import add_key, have_waited

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.person(1, "olga")


def test_every_key_is_listed_the_newest_first_with_what_is_in_flight() -> None:
    gone = add_key("gone", KeyState.DESTROYED).id
    old = ensure_ring()
    have_waited(new := rotate(OLGA))
    asked(old)
    run_due_transitions()
    asked(new)
    asked(new)
    found = [(row.id, row.state.value, row.in_flight) for row in keys(timezone.now())]
    assert found == [(new, "active", 2), (old, "retiring", 1), (gone, "destroyed", 0)]


def test_a_key_says_when_it_will_change_by_itself() -> None:
    old = ensure_ring()
    new = rotate(OLGA)
    waiting = key(new, timezone.now())
    assert waiting.until == waiting.since + STANDBY
    assert key(old, timezone.now()).until is None
    have_waited(new)
    run_due_transitions()
    retiring = key(old, timezone.now())
    assert retiring.until == retiring.since + lifetime()
    assert retiring.until > timezone.now() + timedelta(hours=23)


def test_an_unknown_key_is_said_to_be_unknown() -> None:
    with pytest.raises(UnknownKeyError):
        key("k1", timezone.now())
