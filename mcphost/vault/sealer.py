"""Seal and open tokens with the keys of the vault.

A `TenantSealer` has a snapshot of the keys of one tenant, and never waits. On the event loop, use
`cached`; if it returns None, run `fetch` in a thread.
"""

import secrets
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.sealing import tokens
from mcphost.sealing.tokens import Binding, Purpose, Reason, Ring, SealError
from mcphost.vault import selectors
from mcphost.vault.errors import NoSecretsError
from mcphost.vault.models import RingKey
from mcphost.vault.selectors import is_warm
from mcphost.vault.services import ensure_tenant

__all__ = ["TenantSealer", "cached", "fetch", "is_warm", "seal", "unseal", "warm"]

SEALED: Final[LastUse[str]] = LastUse(RingKey, "last_sealed_at")
OPENED: Final[LastUse[str]] = LastUse(RingKey, "last_opened_at")
"""When each key of the ring last sealed and opened a token."""


@dataclass(frozen=True, slots=True)
class TenantSealer:
    """Seals and opens the tokens of one tenant. Use it at once; do not keep it."""

    tenant: UUID
    ring: Ring = field(repr=False)
    salt: bytes = field(repr=False)

    @property
    def key_id(self) -> str:
        """The id of the key that seals."""
        return self.ring.active.id

    def seal(
        self, purpose: Purpose, payload: bytes, limit: int | None = None, context: bytes = b""
    ) -> str:
        """Seal `payload` for this purpose under the active key; `limit` and `context` as in
        `sealing.tokens`.

        Raises SealError when the token would be too large or the tenant's salt was destroyed.
        """
        random24 = secrets.token_bytes(tokens.RANDOM_BYTES)
        bound = self._bound(purpose, context)
        token = tokens.seal(payload, bound, self.ring.active, random24, limit)
        SEALED.note(self.ring.active.id, timezone.now())
        return token

    def unseal(
        self, purpose: Purpose, token: str, limit: int | None = None, context: bytes = b""
    ) -> bytes:
        """Open a token of exactly this purpose, tenant and context; raises SealError for others."""
        payload = tokens.unseal(token, self._bound(purpose, context), self.ring, limit)
        OPENED.note(tokens.key_id(token), timezone.now())
        return payload

    def with_ring(self, ring: Ring) -> "TenantSealer":
        """A copy with a newer ring."""
        return replace(self, ring=ring)

    def _bound(self, purpose: Purpose, context: bytes) -> Binding:
        return Binding(purpose, self.tenant, self.salt, context)


def cached(tenant: UUID) -> TenantSealer | None:
    """The sealer of a tenant whose keys are in memory, else None. Reads no database."""
    remembered = selectors.remembered(tenant)
    return None if remembered is None else TenantSealer(tenant, remembered[0], remembered[1].salt)


def fetch(tenant: UUID) -> TenantSealer:
    """The sealer of a tenant; reads its keys if needed, and makes its secrets if it never had any.

    Raises VaultError.
    """
    salt = ensure_tenant(tenant).salt
    return TenantSealer(tenant, selectors.ring(), salt)


def warm(tenant: UUID) -> None:
    """Load everything that sealing for this tenant needs. Raises as `fetch`."""
    fetch(tenant)


def seal(
    purpose: Purpose, tenant: UUID, payload: bytes, limit: int | None = None, context: bytes = b""
) -> str:
    """Seal `payload` for this purpose, tenant and context under the active key.

    `limit` is the longest token allowed, by default the purpose's. Raises SealError when the token
    would be too large or the tenant's salt was destroyed, VaultError when there are no keys.
    """
    return fetch(tenant).seal(purpose, payload, limit, context)


def unseal(
    purpose: Purpose, tenant: UUID, token: str, limit: int | None = None, context: bytes = b""
) -> bytes:
    """Open a token that was sealed for exactly this purpose, tenant and context.

    Raises SealError for any other, VaultError if keys cannot be read.
    """
    try:
        salt = selectors.salt(tenant)
    except NoSecretsError:
        raise SealError(Reason.BAD_SALT) from None
    return TenantSealer(tenant, selectors.ring(), salt).unseal(purpose, token, limit, context)
