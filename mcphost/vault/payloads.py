"""The cipher of recorded payloads: implements audit's port with the tenants' payload keys.

A payload is encrypted with AES-256-GCM under its tenant's payload key, bound to tenant and key id.
The plaintext is `salt ‖ payload`. The commitment's salt is as secret as the payload, so that
guesses cannot be tested against a commitment alone, and it is erased with the payload.

Nonces are 96 random bits: even after 2**36 payloads of one tenant (two years at a thousand per
second) the chance of any repetition is below one in ten million.
"""

import hmac
import secrets
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag

from mcphost.audit.ports import SealedPayload, UnreadablePayloadError
from mcphost.vault import selectors
from mcphost.vault.errors import DamagedSecretError, NoSecretsError
from mcphost.vault.services import ensure_tenant

COMMITMENT_SALT_BYTES: Final = 32

_NONCE_BYTES = 12


class VaultPayloadCipher:
    """Encrypts and decrypts payloads. Stateless; safe in any thread."""

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        """Encrypt a payload and commit to it. Needs no query once the tenant's keys are in memory.

        Raises VaultError if keys cannot be read.
        """
        key = ensure_tenant(tenant).payload_key
        random = secrets.token_bytes(COMMITMENT_SALT_BYTES + _NONCE_BYTES)
        salt, nonce = random[:COMMITMENT_SALT_BYTES], random[COMMITMENT_SALT_BYTES:]
        sealed = key.cipher.encrypt(nonce, salt + plaintext, _bound(tenant, key.id))
        return SealedPayload(commitment(salt, plaintext), key.id, nonce + sealed)

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        """Decrypt a payload. Raises UnreadablePayloadError."""
        return self.open_with_salt(tenant, key_id, ciphertext)[1]

    def open_with_salt(self, tenant: UUID, key_id: str, ciphertext: bytes) -> tuple[bytes, bytes]:
        """The commitment's salt and the payload, to verify the commitment. Raises as `open`."""
        try:
            key = selectors.payload_key(tenant)
        except NoSecretsError:
            raise UnreadablePayloadError("the tenant of the payload has no keys") from None
        except DamagedSecretError:
            raise UnreadablePayloadError("the keys of the payload's tenant are damaged") from None
        if key.id != key_id:
            raise UnreadablePayloadError(f"the payload key {key_id} no longer exists")
        nonce, sealed = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
        try:
            opened = key.cipher.decrypt(nonce, sealed, _bound(tenant, key_id))
        except (ValueError, InvalidTag):
            raise UnreadablePayloadError(
                "the payload was modified, or belongs to another tenant"
            ) from None
        return opened[:COMMITMENT_SALT_BYTES], opened[COMMITMENT_SALT_BYTES:]

    def verify(self, tenant: UUID, sealed: SealedPayload) -> None:
        """Check a payload against its commitment. Raises as `open`."""
        salt, plaintext = self.open_with_salt(tenant, sealed.key_id, sealed.ciphertext)
        if not hmac.compare_digest(commitment(salt, plaintext), sealed.commitment):
            raise UnreadablePayloadError("the payload does not match its commitment")


def commitment(salt: bytes, plaintext: bytes) -> bytes:
    """The commitment in the entry: HMAC-SHA256 of its payload under the payload's random salt."""
    return hmac.digest(salt, plaintext, "sha256")


def _bound(tenant: UUID, key_id: str) -> bytes:
    return tenant.bytes + key_id.encode()
