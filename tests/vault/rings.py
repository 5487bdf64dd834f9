"""Make ring keys in given states, and let time pass for them."""

from datetime import timedelta
from secrets import token_bytes

from django.db.models.functions import Now
from django.utils import timezone

from mcphost.vault.lifecycle import STANDBY, lifetime
from mcphost.vault.master import master_keys
from mcphost.vault.models import RingKey
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import wrapped


def add_key(key_id: str, state: KeyState) -> RingKey:
    """Add a key that has just entered this state; a destroyed one has no secret."""
    row = RingKey(id=key_id, state=state, created_at=timezone.now(), state_since=Now())
    if state is not KeyState.DESTROYED:
        row.wrapped = wrapped(token_bytes(32), row, "wrapped", master_keys())
    row.save(force_insert=True)
    return row


def age(key_id: str, by: timedelta) -> None:
    """Move the time at which the key entered its state back by `by`."""
    assert RingKey.objects.filter(pk=key_id).update(state_since=Now() - by)


def have_waited(key_id: str) -> None:
    """Let a key on standby be due to become active."""
    age(key_id, STANDBY + timedelta(seconds=1))


def have_expired(key_id: str) -> None:
    """Let a retiring key be due to retire: its last token has expired."""
    age(key_id, lifetime() + timedelta(seconds=1))


def states() -> dict[str, str]:
    """The state of every key, by id."""
    return dict(RingKey.objects.values_list("id", "state"))
