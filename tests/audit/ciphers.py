"""A payload cipher for tests: real commitments, and a ciphertext that no plaintext shows in."""

import hashlib
import hmac
import secrets
from uuid import UUID

from mcphost.audit.ports import SealedPayload, UnreadablePayloadError


class XorCipher:
    """Not a secret, but not clear either; every key but `key` is gone."""

    key_id = "k1"

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        salt = secrets.token_bytes(16)
        commitment = hmac.digest(salt, plaintext, hashlib.sha256)
        return SealedPayload(commitment, self.key_id, bytes(b ^ 0x5A for b in salt + plaintext))

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        if key_id != self.key_id:
            raise UnreadablePayloadError("its key is gone")
        return bytes(b ^ 0x5A for b in ciphertext)[16:]
