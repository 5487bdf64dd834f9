"""Sealing and opening tokens with the keys of the vault.

Once warm for a tenant, neither reads the database. From the event loop, ask `is_warm` and have
`warm` run in a thread when it is not.
"""

import secrets
from uuid import UUID

from mcphost.sealing import tokens
from mcphost.sealing.tokens import Binding, Purpose, Reason, SealError
from mcphost.vault import selectors
from mcphost.vault.errors import NoSecretsError
from mcphost.vault.selectors import is_warm
from mcphost.vault.services import ensure_tenant

__all__ = ["is_warm", "seal", "unseal", "warm"]


def warm(tenant: UUID) -> None:
    """Have everything in memory that sealing for this tenant needs; make its secrets if need be.

    Raises VaultError.
    """
    ensure_tenant(tenant)
    selectors.ring()


def seal(purpose: Purpose, tenant: UUID, payload: bytes, limit: int | None = None) -> str:
    """Seal `payload` for this purpose and tenant under the active key.

    `limit` is the longest token allowed, by default the purpose's. Raises SealError when the token
    would be too large or the tenant's salt was destroyed, VaultError when there are no keys.
    """
    binding = Binding(purpose, tenant, ensure_tenant(tenant).salt)
    ring = selectors.ring()
    random24 = secrets.token_bytes(tokens.RANDOM_BYTES)
    return tokens.seal(payload, binding, ring.active, random24, limit)


def unseal(purpose: Purpose, tenant: UUID, token: str, limit: int | None = None) -> bytes:
    """The payload of a token that was sealed for exactly this purpose and tenant.

    Raises SealError for everything else, VaultError when keys cannot be read.
    """
    try:
        salt = selectors.salt(tenant)
    except NoSecretsError:
        raise SealError(Reason.BAD_SALT) from None
    return tokens.unseal(token, Binding(purpose, tenant, salt), selectors.ring(), limit)
