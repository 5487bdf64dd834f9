"""Sealing and opening tokens with the keys of the vault.

A `TenantSealer` holds the keys of one tenant as they were at one moment, and never waits. On the
event loop, take the one `at_hand`, and have `fetch` run in a thread when there is none.
"""

import secrets
from dataclasses import dataclass, field, replace
from uuid import UUID

from mcphost.sealing import tokens
from mcphost.sealing.tokens import Binding, Purpose, Reason, Ring, SealError
from mcphost.vault import selectors
from mcphost.vault.errors import NoSecretsError
from mcphost.vault.selectors import is_warm
from mcphost.vault.services import ensure_tenant

__all__ = ["TenantSealer", "at_hand", "fetch", "is_warm", "seal", "unseal", "warm"]


@dataclass(frozen=True, slots=True)
class TenantSealer:
    """Seals and opens the tokens of one tenant. To be used at once, not to be kept."""

    tenant: UUID
    ring: Ring = field(repr=False)
    salt: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """The id of the key that seals."""
        return self.ring.active.id

    def seal(self, purpose: Purpose, payload: bytes, limit: int | None = None) -> str:
        """Seal `payload` for this purpose under the active key; `limit` as in `sealing.tokens`.

        Raises SealError when the token would be too large or the tenant's salt was destroyed.
        """
        random24 = secrets.token_bytes(tokens.RANDOM_BYTES)
        return tokens.seal(payload, self._bound(purpose), self.ring.active, random24, limit)

    def unseal(self, purpose: Purpose, token: str, limit: int | None = None) -> bytes:
        """The payload of a token of exactly this purpose and tenant, else SealError."""
        return tokens.unseal(token, self._bound(purpose), self.ring, limit)

    def with_ring(self, ring: Ring) -> "TenantSealer":
        """The same with the ring as it was read later."""
        return replace(self, ring=ring)

    def _bound(self, purpose: Purpose) -> Binding:
        return Binding(purpose, self.tenant, self.salt)


def at_hand(tenant: UUID) -> TenantSealer | None:
    """The sealer of a tenant whose keys are in memory, else None. Reads no database."""
    known = selectors.remembered(tenant)
    return None if known is None else TenantSealer(tenant, known[0], known[1].salt)


def fetch(tenant: UUID) -> TenantSealer:
    """The sealer of a tenant, read if need be; its secrets are made if it never had any.

    Raises VaultError.
    """
    salt = ensure_tenant(tenant).salt
    return TenantSealer(tenant, selectors.ring(), salt)


def warm(tenant: UUID) -> None:
    """Have everything in memory that sealing for this tenant needs. Raises as `fetch`."""
    fetch(tenant)


def seal(purpose: Purpose, tenant: UUID, payload: bytes, limit: int | None = None) -> str:
    """Seal `payload` for this purpose and tenant under the active key.

    `limit` is the longest token allowed, by default the purpose's. Raises SealError when the token
    would be too large or the tenant's salt was destroyed, VaultError when there are no keys.
    """
    return fetch(tenant).seal(purpose, payload, limit)


def unseal(purpose: Purpose, tenant: UUID, token: str, limit: int | None = None) -> bytes:
    """The payload of a token that was sealed for exactly this purpose and tenant.

    Raises SealError for everything else, VaultError when keys cannot be read.
    """
    try:
        salt = selectors.salt(tenant)
    except NoSecretsError:
        raise SealError(Reason.BAD_SALT) from None
    return TenantSealer(tenant, selectors.ring(), salt).unseal(purpose, token, limit)
