"""The ring for display."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.vault.errors import UnknownKeyError
from mcphost.vault.lifecycle import STANDBY, lifetime, retire, rotate, run_due_transitions
from mcphost.vault.listing import key, keys
from mcphost.vault.models import RingKey
from mcphost.vault.services import ensure_ring
from mcphost.vault.states import KeyState
from tests.audit.waiting import asked
from tests.vault.rings import add_key, age, have_waited

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.system("olga")


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


def test_a_keys_life_is_told_in_phases_until_its_last_token_expires() -> None:
    now = timezone.now()
    first = ensure_ring()
    age(first, timedelta(days=3))
    three_days_ago = now - timedelta(days=3)
    RingKey.objects.filter(pk=first).update(created_at=three_days_ago, activated_at=three_days_ago)
    second = rotate(OLGA)
    have_waited(second)
    run_due_transitions()
    (new, old) = keys(timezone.now())
    assert (new.id, old.id) == (second, first)
    assert [each.state for each in new.phases] == [KeyState.STANDBY, KeyState.ACTIVE]
    assert [each.state for each in old.phases] == [
        KeyState.STANDBY,
        KeyState.ACTIVE,
        KeyState.RETIRING,
    ]
    active, retiring = old.phases[1:]
    assert (active.start, active.end) == (three_days_ago, new.phases[1].start)
    assert (retiring.start, retiring.end) == (active.end, old.until)
    assert new.phases[1].end >= now


def test_a_key_that_was_compromised_or_cancelled_ends_when_it_was() -> None:
    first = ensure_ring()
    second = rotate(OLGA)
    retire(second, OLGA)
    (cancelled, _) = keys(timezone.now())
    assert [each.state for each in cancelled.phases] == [KeyState.STANDBY]
    rotate(OLGA, compromised=True)
    old = key(first, timezone.now() + timedelta(days=1))
    entry = Entry.objects.filter(action="key.rotated").latest("id")
    assert [each.state for each in old.phases] == [KeyState.STANDBY, KeyState.ACTIVE]
    assert old.phases[-1].end == entry.at
    with pytest.raises(UnknownKeyError):
        key("k1", timezone.now())
