"""Read tenants' secrets: for display without their values (with when each was last used), and sealed, for use.

The rows of a tenant are cached, encrypted, until the change log reports a change of its secrets. A
value is decrypted at each use, and kept nowhere. Former values can only be masked.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.vault import selectors as keys
from mcphost.vault.errors import DamagedSecretError, DamagedValueError
from mcphost.vault.models import FormerValue, StoredSecret
from mcphost.vault.secrets.fields import SecretRules
from mcphost.vault.secrets.values import UsableSecret, bound, open_value
from mcphost.vault.selectors import PayloadKey

TENANTS_KEPT: Final = 2000

secret_uses: Final[LastUse[UUID]] = LastUse(StoredSecret)
"""When secrets were last used."""


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret as shown to users. `version` counts its values; `rotated_by` is empty for the first."""

    id: UUID
    name: str
    rules: SecretRules
    version: int
    created_at: datetime
    created_by: str
    rotated_at: datetime | None
    rotated_by: str
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """A cached row: a secret's rules, and its encrypted value with the place that it is bound to."""

    id: UUID
    name: str
    hosts: frozenset[str]
    places: frozenset[str]
    sealed: bytes = field(repr=False)
    bound: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealedFormerValue:
    """A cached value that a secret had, with the place that it is bound to."""

    sealed: bytes = field(repr=False)
    bound: bytes = field(repr=False)


class SealedValues(NamedTuple):
    """The cached rows of a tenant: its secrets by name, and the values that these had."""

    secrets: Mapping[str, SealedSecret]
    former: tuple[SealedFormerValue, ...]


_cache: Cache[UUID, SealedValues] = Cache(TENANTS_KEPT)


def tenant_secrets(tenant_id: UUID) -> tuple[SecretRow, ...]:
    """Return a tenant's secrets by name, without their values."""
    return tuple(map(_row, StoredSecret.objects.filter(tenant=tenant_id).defer("sealed")))


def locked_secrets(tenant_id: UUID, names: Collection[str]) -> tuple[SecretRow, ...]:
    """Return these secrets of a tenant. None of them is changed or deleted until the transaction ends."""
    rows = StoredSecret.objects.filter(tenant=tenant_id, name__in=names).defer("sealed")
    return tuple(map(_row, rows.order_by("id").select_for_update(no_key=True)))


def tenant_secret(tenant_id: UUID, secret_id: UUID) -> SecretRow | None:
    """Return one secret of a tenant, without its value."""
    row = StoredSecret.objects.filter(tenant=tenant_id, pk=secret_id).defer("sealed").first()
    return None if row is None else _row(row)


def cached_secret(tenant_id: UUID, name: str) -> UsableSecret | Miss | None:
    """Return a secret for use; None if the tenant has none of this name.

    Makes no query, so it may run on the event loop. For MISS, call `load_secret` in a thread.
    """
    sealed_values = _cache.get(tenant_id)
    if sealed_values is MISS:
        return MISS
    row, key = sealed_values.secrets.get(name), keys.remembered_payload_key(tenant_id)
    if row is None or key is MISS:
        return None if row is None else MISS
    return _usable(row, key)


def load_secret(tenant_id: UUID, name: str) -> UsableSecret | None:
    """As `cached_secret`, from the database if needed. Raises VaultError if keys cannot be read."""
    row = _sealed_values(tenant_id).secrets.get(name)
    return None if row is None else _usable(row, keys.payload_key(tenant_id))


def cached_values_to_mask(tenant_id: UUID) -> tuple[str, ...] | Miss:
    """Return the values of all of a tenant's secrets, and those that they had, to mask; see `cached_secret`.

    That does not count as their use. Raises DamagedValueError.
    """
    sealed_values = _cache.get(tenant_id)
    if sealed_values is MISS:
        return MISS
    if not any(sealed_values):
        return ()
    key = keys.remembered_payload_key(tenant_id)
    return MISS if key is MISS else _values(sealed_values, key)


def load_values_to_mask(tenant_id: UUID) -> tuple[str, ...]:
    """As `cached_values_to_mask`, from the database if needed. Raises VaultError."""
    sealed_values = _sealed_values(tenant_id)
    return _values(sealed_values, keys.payload_key(tenant_id)) if any(sealed_values) else ()


def forget_tenant(tenant_id: UUID) -> None:
    """Drop a tenant's cached rows: they are read again at their next use."""
    _cache.forget(tenant_id)


def forget_everything() -> None:
    """Drop all cached rows."""
    _cache.clear()


def _sealed_values(tenant_id: UUID) -> SealedValues:
    """Return a tenant's rows, from the database if needed."""
    sealed_values = _cache.get(tenant_id)
    if sealed_values is MISS:
        mark = _cache.mark()
        sealed_values = _load(tenant_id)
        _cache.put(tenant_id, sealed_values, mark)
    return sealed_values


def _load(tenant_id: UUID) -> SealedValues:
    secrets = {
        row.name: SealedSecret(
            row.id,
            row.name,
            frozenset(row.hosts),
            frozenset(row.places),
            bytes(row.sealed),
            bound(row.tenant, row.id, row.version, row.name),
        )
        for row in StoredSecret.objects.filter(tenant=tenant_id)
    }
    # After the secrets: a value that is rotated or deleted meanwhile is in one of them at least.
    former = tuple(
        SealedFormerValue(bytes(row.sealed), bound(row.tenant, row.secret, row.version, row.name))
        for row in FormerValue.objects.filter(tenant=tenant_id)
    )
    return SealedValues(secrets, former)


def _values(sealed_values: SealedValues, key: PayloadKey) -> tuple[str, ...]:
    current = [_value(row, key) for row in sealed_values.secrets.values()]
    return (*current, *_readable(sealed_values.former, key))


def _value(row: SealedSecret, key: PayloadKey) -> str:
    try:
        return open_value(row.sealed, row.bound, key)
    except DamagedSecretError:
        raise DamagedValueError(row.name) from None


def _readable(former: Iterable[SealedFormerValue], key: PayloadKey) -> Iterator[str]:
    """Yield former values. One that is damaged is skipped: to replace it is how the damage is repaired."""
    for row in former:
        try:
            yield open_value(row.sealed, row.bound, key)
        except DamagedSecretError:
            continue


def _usable(row: SealedSecret, key: PayloadKey) -> UsableSecret:
    return UsableSecret(row.name, row.hosts, row.places, partial(_reveal, row, key))


def _reveal(row: SealedSecret, key: PayloadKey) -> str:
    value = _value(row, key)
    secret_uses.note(row.id, timezone.now())
    return value


def _row(row: StoredSecret) -> SecretRow:
    return SecretRow(
        id=row.id,
        name=row.name,
        rules=SecretRules(tuple(row.hosts), tuple(row.places)),
        version=row.version,
        created_at=row.created_at,
        created_by=row.created_by,
        rotated_at=row.rotated_at,
        rotated_by=row.rotated_by,
        last_used_at=row.last_used_at,
    )
