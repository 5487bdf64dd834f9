"""The cipher of recorded payloads: audit's port, filled with the tenants' payload keys.

A payload is encrypted with AES-256-GCM under its tenant's payload key, bound to tenant and key id.
What is encrypted is `salt ‖ plaintext`: the salt of the commitment is as secret as the payload,
so that a commitment alone cannot be tested against guesses, and goes when the payload is erased.

Nonces are 96 random bits: even after 2**36 payloads of one tenant (two years at a thousand per
second) the chance that any two ever met is below one in ten million.
"""

import hmac
import secrets
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag

from mcphost.audit.ports import SealedPayload, UnreadablePayloadError
from mcphost.vault import selectors
from mcphost.vault.errors import NoSecretsError
from mcphost.vault.selectors import PayloadKey
from mcphost.vault.services import ensure_tenant

COMMITMENT_SALT_BYTES: Final = 32

_NONCE_BYTES = 12


class VaultPayloadCipher:
    """Encrypts and decrypts payloads. Stateless; safe in any thread."""

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        """Encrypt a payload and commit to it. Reads no database once the tenant is warm.

        Raises VaultError when keys cannot be read.
        """
        key = ensure_tenant(tenant).payload_key
        random = secrets.token_bytes(COMMITMENT_SALT_BYTES + _NONCE_BYTES)
        salt, nonce = random[:COMMITMENT_SALT_BYTES], random[COMMITMENT_SALT_BYTES:]
        sealed = key.cipher.encrypt(nonce, salt + plaintext, _bound(tenant, key.id))
        return SealedPayload(commitment(salt, plaintext), key.id, nonce + sealed)

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        """The payload. Raises UnreadablePayloadError."""
        return self.open_with_salt(tenant, key_id, ciphertext)[1]

    def open_with_salt(self, tenant: UUID, key_id: str, ciphertext: bytes) -> tuple[bytes, bytes]:
        """The commitment's salt and the payload, to prove the one by the other. Raises as `open`."""
        key = _key(tenant, key_id)
        nonce, sealed = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
        try:
            opened = key.cipher.decrypt(nonce, sealed, _bound(tenant, key_id))
        except (ValueError, InvalidTag):
            raise UnreadablePayloadError("this payload was changed, or is another's") from None
        return opened[:COMMITMENT_SALT_BYTES], opened[COMMITMENT_SALT_BYTES:]


def commitment(salt: bytes, plaintext: bytes) -> bytes:
    """What an entry keeps of its payload: HMAC-SHA256 under the payload's own random salt."""
    return hmac.digest(salt, plaintext, "sha256")


def _key(tenant: UUID, key_id: str) -> PayloadKey:
    try:
        key = selectors.payload_key(tenant)
    except NoSecretsError:
        raise UnreadablePayloadError("the tenant of this payload has no keys") from None
    if key.id != key_id:
        raise UnreadablePayloadError(f"the payload key {key_id} is gone")
    return key


def _bound(tenant: UUID, key_id: str) -> bytes:
    return tenant.bytes + key_id.encode()
