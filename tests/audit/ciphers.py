"""Payload ciphers for tests: real commitments, and a ciphertext that hides the plaintext."""

import hashlib
import hmac
import secrets
import threading
from uuid import UUID

from mcphost.audit.ports import SealedPayload, UnreadablePayloadError


class XorCipher:
    """Obscures the payload with XOR, which is not secret. All keys except `key` are gone."""

    key_id = "k1"

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        salt = secrets.token_bytes(16)
        commitment = hmac.digest(salt, plaintext, hashlib.sha256)
        return SealedPayload(commitment, self.key_id, bytes(b ^ 0x5A for b in salt + plaintext))

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        if key_id != self.key_id:
            raise UnreadablePayloadError("its key is gone")
        return bytes(b ^ 0x5A for b in ciphertext)[16:]

    def verify(self, tenant: UUID, sealed: SealedPayload) -> None:
        if sealed.key_id != self.key_id:
            raise UnreadablePayloadError("its key is gone")
        opened = bytes(b ^ 0x5A for b in sealed.ciphertext)
        if hmac.digest(opened[:16], opened[16:], hashlib.sha256) != sealed.commitment:
            raise UnreadablePayloadError("it was modified")


class GateCipher(XorCipher):
    """Blocks the thread that encrypts until the gate is opened."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._gate = threading.Event()

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        self._arrived.set()
        assert self._gate.wait(20)
        return super().commit_and_seal(tenant, plaintext)

    def await_arrival(self) -> None:
        assert self._arrived.wait(20)

    def open_gate(self) -> None:
        self._gate.set()


class BrokenCipher(XorCipher):
    """Raises the given error the given number of times, then works."""

    def __init__(self, error: BaseException, times: int = 1_000_000) -> None:
        self._error = error
        self._left = times

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload:
        if self._left:
            self._left -= 1
            raise self._error
        return super().commit_and_seal(tenant, plaintext)
