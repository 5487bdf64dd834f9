"""Read tenants' secrets: for display without their values, for use.

The rows of a tenant are cached, encrypted, until the change log reports a change of its secrets. A
value is decrypted at each use, and kept nowhere.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID

from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.vault import selectors as keys
from mcphost.vault.models import StoredSecret
from mcphost.vault.secrets.fields import SecretRules
from mcphost.vault.secrets.usable import UsableSecret
from mcphost.vault.secrets.values import bound, open_value
from mcphost.vault.selectors import PayloadKey

TENANTS_KEPT: Final = 2000

secret_uses: Final[LastUse[UUID]] = LastUse(StoredSecret)
"""When secrets were last used; the process's housekeeping writes it."""


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


Sealed = Mapping[str, SealedSecret]

_cache: Cache[UUID, Sealed] = Cache(TENANTS_KEPT)


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
    known = _cache.get(tenant_id)
    if known is MISS:
        return MISS
    row, key = known.get(name), keys.remembered_payload_key(tenant_id)
    if row is None or key is MISS:
        return None if row is None else MISS
    return _usable(row, key)


def load_secret(tenant_id: UUID, name: str) -> UsableSecret | None:
    """As `cached_secret`, from the database if needed. Raises VaultError if keys cannot be read."""
    row = _known(tenant_id).get(name)
    return None if row is None else _usable(row, keys.payload_key(tenant_id))


def cached_secrets_of_host(tenant_id: UUID, host: str) -> tuple[UsableSecret, ...] | Miss:
    """Return the secrets that may be sent to a host, to recognise them; see `cached_secret`.

    `host` is as in UsableSecret. To reveal such a secret does not count as its use.
    """
    known = _cache.get(tenant_id)
    if known is MISS:
        return MISS
    rows = [row for row in known.values() if host in row.hosts]
    key = keys.remembered_payload_key(tenant_id) if rows else None
    if key is MISS:
        return MISS
    return () if key is None else tuple(_recognisable(row, key) for row in rows)


def load_secrets_of_host(tenant_id: UUID, host: str) -> tuple[UsableSecret, ...]:
    """As `cached_secrets_of_host`, from the database if needed. Raises VaultError."""
    rows = [row for row in _known(tenant_id).values() if host in row.hosts]
    key = keys.payload_key(tenant_id) if rows else None
    return () if key is None else tuple(_recognisable(row, key) for row in rows)


def forget_tenant(tenant_id: UUID) -> None:
    """Drop a tenant's cached rows: they are read again at their next use."""
    _cache.forget(tenant_id)


def forget_everything() -> None:
    """Drop all cached rows."""
    _cache.clear()


def _known(tenant_id: UUID) -> Sealed:
    """Return a tenant's rows, from the database if needed."""
    known = _cache.get(tenant_id)
    if known is MISS:
        mark = _cache.mark()
        known = _load(tenant_id)
        _cache.put(tenant_id, known, mark)
    return known


def _load(tenant_id: UUID) -> Sealed:
    return {
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


def _usable(row: SealedSecret, key: PayloadKey) -> UsableSecret:
    return UsableSecret(row.name, row.hosts, row.places, partial(_reveal, row, key))


def _recognisable(row: SealedSecret, key: PayloadKey) -> UsableSecret:
    return UsableSecret(
        row.name, row.hosts, row.places, partial(open_value, row.sealed, row.bound, key)
    )


def _reveal(row: SealedSecret, key: PayloadKey) -> str:
    value = open_value(row.sealed, row.bound, key)
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
