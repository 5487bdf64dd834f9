"""The ring for display: its keys, and how many calls wait for an answer under each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from mcphost.audit.open_calls import calls_by_key, losses, lost_by_key
from mcphost.vault.errors import UnknownKeyError
from mcphost.vault.lifecycle import STANDBY, lifetime
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.states import KeyState

_LIVING = (KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING)

_AT_ONCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class KeyPhase:
    """A part of a key's life: `state` from `start` until `end`. `end` may be in the future."""

    state: KeyState
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. `in_flight` counts calls whose clients have an unexpired state that it sealed;
    `lost` counts those that waited for an answer when it was retired early or declared compromised.

    `until` is when a key on standby becomes active, or a retiring one retires, by itself. `phases`
    is its life so far, and the end of it where that is known. Its last uses are at most a minute old.
    """

    id: str
    state: KeyState
    since: datetime
    created_at: datetime
    in_flight: int
    lost: int
    until: datetime | None
    phases: tuple[KeyPhase, ...]
    last_sealed_at: datetime | None = None
    last_opened_at: datetime | None = None

    @property
    def last_used_at(self) -> datetime | None:
        """When it last sealed or opened a token."""
        used_times = (self.last_sealed_at, self.last_opened_at)
        return max((used_at for used_at in used_times if used_at is not None), default=None)

    @property
    def sealed_from(self) -> datetime | None:
        """Since when it sealed; None if it never did."""
        return next((phase.start for phase in self.phases if phase.state is KeyState.ACTIVE), None)

    @property
    def sealed_until(self) -> datetime | None:
        """Until when it sealed; None if it never did, or still does."""
        if self.state is KeyState.ACTIVE:
            return None
        return next((phase.end for phase in self.phases if phase.state is KeyState.ACTIVE), None)

    @property
    def waiting(self) -> str:
        """What is in flight, as text."""
        return f"{calls_wait(self.in_flight)} for an answer under it"


def keys(now: datetime) -> tuple[KeyRow, ...]:
    """All keys, destroyed ones too, the newest first."""
    longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
    in_flight, lost = calls_by_key(now, longest), lost_by_key(longest)
    rows = list(RingKey.objects.order_by("-created_at", "-id"))
    retired = {key: loss.at for key, loss in losses().keys.items()}
    activations = sorted(row.activated_at for row in rows if row.activated_at)
    return tuple(
        KeyRow(
            row.id,
            KeyState(row.state),
            row.state_since,
            row.created_at,
            in_flight.get(row.id, 0),
            lost.get(row.id, 0),
            _until(row),
            tuple(_phases(row, activations, retired.get(row.id), now)),
            row.last_sealed_at,
            row.last_opened_at,
        )
        for row in rows
    )


def retiring(now: datetime) -> tuple[KeyRow, ...]:
    """The keys that open what they sealed and retire by themselves; nearly always none."""
    if not RingKey.objects.filter(state=KeyState.RETIRING).exists():
        return ()
    return tuple(row for row in keys(now) if row.state is KeyState.RETIRING)


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


def calls_were(number: int) -> str:
    """The number as subject and verb of a sentence about the past."""
    return "1 call was" if number == 1 else f"{number or 'No'} calls were"


def _phases(
    row: RingKey, activations: Sequence[datetime], retired: datetime | None, now: datetime
) -> Iterator[KeyPhase]:
    """Yield the phases of a key. It is active until the next key is, or until it is retired."""
    active = row.activated_at
    last = retired or (_until(row) or now if row.state in _LIVING else row.state_since)
    yield KeyPhase(KeyState.STANDBY, row.created_at, active or last)
    if active is None:
        return
    replaced = next((activation for activation in activations if activation > active), None)
    replaced = min(replaced or last, last)
    if last - replaced < _AT_ONCE:
        replaced = last  # declared compromised: replaced and retired in one transaction
    yield KeyPhase(KeyState.ACTIVE, active, replaced)
    if replaced < last:
        yield KeyPhase(KeyState.RETIRING, replaced, last)


def _until(row: RingKey) -> datetime | None:
    if row.state == KeyState.STANDBY:
        return row.state_since + STANDBY
    if row.state == KeyState.RETIRING:
        return row.state_since + lifetime()
    return None
