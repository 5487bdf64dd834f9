"""The port through which `vault` provides the cipher of payloads."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


class UnreadablePayloadError(Exception):
    """A payload cannot be decrypted: its key is gone, or it was changed.

    The message is shown to users.
    """


@dataclass(frozen=True, slots=True)
class SealedPayload:
    """An encrypted payload, and the commitment that can later prove its plaintext.

    `commitment` is an HMAC of the plaintext under a random salt; the salt is in `ciphertext`.
    """

    commitment: bytes
    key_id: str
    ciphertext: bytes


class PayloadCipher(Protocol):
    """Encrypts payloads under their tenant's key. Called in the writer's thread, for every payload.

    It may read the database through the thread's connection, outside any transaction; after a
    database error the writer tries again.
    """

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload: ...

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        """Return the plaintext. Raises UnreadablePayloadError."""

    def verify(self, tenant: UUID, sealed: SealedPayload) -> None:
        """Check that the payload is the one that was committed to. Raises UnreadablePayloadError."""


class _Slot:
    cipher: PayloadCipher | None = None


def set_payload_cipher(cipher: PayloadCipher | None) -> None:
    """Set the cipher, once, at start-up."""
    _Slot.cipher = cipher


def payload_cipher() -> PayloadCipher | None:
    """The cipher, or None before it was set."""
    return _Slot.cipher
