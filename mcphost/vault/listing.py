"""The ring for display: its keys, and how many calls wait for an answer under each."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from mcphost.audit.open_calls import calls_by_key, lost_by_key
from mcphost.vault.errors import UnknownKeyError
from mcphost.vault.lifecycle import STANDBY, lifetime
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.states import KeyState


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. `in_flight` counts calls whose clients have an unexpired state that it sealed;
    `lost` counts those that waited for an answer when it was retired early or declared compromised.

    `until` is when a key on standby becomes active, or a retiring one retires, by itself.
    """

    id: str
    state: KeyState
    since: datetime
    created_at: datetime
    in_flight: int
    lost: int
    until: datetime | None

    @property
    def waiting(self) -> str:
        """What is in flight, as text."""
        return f"{calls_wait(self.in_flight)} for an answer under it"


def keys(now: datetime) -> tuple[KeyRow, ...]:
    """All keys, destroyed ones too, the newest first."""
    longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
    in_flight, lost = calls_by_key(now, longest), lost_by_key(longest)
    return tuple(
        KeyRow(
            row.id,
            KeyState(row.state),
            row.state_since,
            row.created_at,
            in_flight.get(row.id, 0),
            lost.get(row.id, 0),
            _until(row),
        )
        for row in RingKey.objects.order_by("-created_at", "-id")
    )


def key(key_id: str, now: datetime) -> KeyRow:
    """One key. Raises UnknownKeyError."""
    for row in keys(now):
        if row.id == key_id:
            return row
    raise UnknownKeyError(key_id)


def has_salt(tenant: UUID) -> bool:
    """Whether the tenant's salt was not destroyed, so that tokens can be sealed for it."""
    return not TenantSecret.objects.filter(tenant=tenant, wrapped_salt="").exists()


def calls_wait(number: int) -> str:
    """The number as subject and verb of a sentence."""
    return "1 call waits" if number == 1 else f"{number or 'no'} calls wait"


def _until(row: RingKey) -> datetime | None:
    if row.state == KeyState.STANDBY:
        return row.state_since + STANDBY
    if row.state == KeyState.RETIRING:
        return row.state_since + lifetime()
    return None
