"""Read keys and secrets, unwrapped. They are cached in memory."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.sealing.tokens import Key, Ring
from mcphost.vault.errors import NoActiveKeyError, NoSecretsError
from mcphost.vault.master import master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.states import OPENS, SEALS, KeyState
from mcphost.vault.wrapping import opened

TENANTS_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class PayloadKey:
    """The key of a tenant's payloads: a short public id, 32 secret bytes, and their AES-GCM cipher.

    The cipher is kept, because making one costs more than encrypting most payloads.
    """

    id: str
    secret: bytes = field(repr=False)
    cipher: AESGCM = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cipher", AESGCM(self.secret))


@dataclass(frozen=True, slots=True)
class TenantSecrets:
    """A tenant's secrets. An empty salt means that it was destroyed."""

    salt: bytes = field(repr=False)
    payload_key: PayloadKey


_rings: Cache[str, Ring] = Cache(1)
_tenants: Cache[UUID, TenantSecrets] = Cache(TENANTS_KEPT)


def ring() -> Ring:
    """The ring, cached. Raises NoActiveKeyError, MasterKeyMismatchError, DamagedSecretError."""
    cached = _rings.get("ring")
    if cached is not MISS:
        return cached
    return reread_ring()


def reread_ring() -> Ring:
    """Read the ring from the database; until it is loaded, callers of `ring` get the cached one.

    Raises as `ring`.
    """
    mark = _rings.mark()
    loaded = _load_ring()
    _rings.put("ring", loaded, mark)
    return loaded


def secrets(tenant: UUID) -> TenantSecrets:
    """A tenant's secrets. Raises NoSecretsError, MasterKeyMismatchError, DamagedSecretError."""
    cached = _tenants.get(tenant)
    if cached is not MISS:
        return cached
    mark = _tenants.mark()
    loaded = _load_tenant(tenant)
    _tenants.put(tenant, loaded, mark)
    return loaded


def salt(tenant: UUID) -> bytes:
    """A tenant's secret salt; empty when it was destroyed. Raises as `secrets`."""
    return secrets(tenant).salt


def payload_key(tenant: UUID) -> PayloadKey:
    """The key of a tenant's payloads. Raises as `secrets`."""
    return secrets(tenant).payload_key


def sealing_key() -> str | None:
    """The id of the key with which this process seals; None before it has read the ring. No query."""
    cached = _rings.get("ring")
    return None if cached is MISS else cached.active.id


def opening_keys() -> list[str]:
    """The ids of the keys with which this process opens; none before it has read the ring. No query."""
    cached = _rings.get("ring")
    return [] if cached is MISS else sorted(cached.opening)


def active_key() -> tuple[str, datetime] | None:
    """The id of the active key, and since when it is active; None if there is none. Needs no master
    key."""
    return RingKey.objects.filter(state=KeyState.ACTIVE).values_list("id", "state_since").first()


def remembered(tenant: UUID) -> tuple[Ring, TenantSecrets] | None:
    """Ring and secrets, if both are in memory; else None. Makes no query."""
    ring, secrets = _rings.get("ring"), _tenants.get(tenant)
    if ring is MISS or secrets is MISS:
        return None
    return ring, secrets


def remembered_payload_key(tenant: UUID) -> PayloadKey | Miss:
    """The key of a tenant's payloads, if it is in memory. Makes no query."""
    secrets = _tenants.get(tenant)
    return MISS if secrets is MISS else secrets.payload_key


def is_warm(tenant: UUID) -> bool:
    """Whether sealing for this tenant needs no query now."""
    return _tenants.get(tenant) is not MISS and _rings.get("ring") is not MISS


def forget_ring() -> None:
    """Drop the cached ring: it is read again at its next use."""
    _rings.clear()


def forget_tenant(tenant: UUID) -> None:
    """Drop this tenant's cached secrets: they are read again at their next use."""
    _tenants.forget(tenant)


def forget_everything() -> None:
    """Drop the cached ring and all cached secrets."""
    _rings.clear()
    _tenants.clear()


def _load_ring() -> Ring:
    rows = list(RingKey.objects.filter(state__in=OPENS))
    keks = master_keys()
    opening = {row.id: Key(row.id, opened(row, "wrapped", keks)) for row in rows}
    for row in rows:
        if KeyState(row.state) is SEALS:
            return Ring(opening[row.id], opening)
    raise NoActiveKeyError("the key ring has no active key: run `manage.py init`")


def _load_tenant(tenant: UUID) -> TenantSecrets:
    row = TenantSecret.objects.filter(tenant=tenant).first()
    if row is None:
        raise NoSecretsError(f"the tenant {tenant} has no secrets yet")
    keks = master_keys()
    payload_key = opened(row, "wrapped_payload_key", keks)
    salt_or_nothing = opened(row, "wrapped_salt", keks) if row.wrapped_salt else b""
    return TenantSecrets(salt_or_nothing, PayloadKey(row.payload_key_id, payload_key))
