"""The ring for display."""

import pytest
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.vault.lifecycle import rotate, run_due_transitions
from mcphost.vault.listing import keys
from mcphost.vault.services import ensure_ring
from mcphost.vault.states import KeyState
from tests.audit.waiting import asked
from tests.vault.rings import add_key, have_waited

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.system("olga")


def test_all_keys_are_listed_newest_first_with_their_calls_in_flight() -> None:
    gone = add_key("gone", KeyState.DESTROYED).id
    old = ensure_ring()
    have_waited(new := rotate(OLGA))
    asked(old)
    run_due_transitions()
    asked(new)
    asked(new)
    found = [(row.id, row.state.value, row.in_flight) for row in keys(timezone.now())]
    assert found == [(new, "active", 2), (old, "retiring", 1), (gone, "destroyed", 0)]
