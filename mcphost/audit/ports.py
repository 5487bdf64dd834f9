"""What audit needs of the rooms above it: a cipher for payloads, which `vault` fills in."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


class UnreadablePayloadError(Exception):
    """A payload cannot be opened: its key is gone, or it was changed. The message is for people."""


@dataclass(frozen=True, slots=True)
class SealedPayload:
    """A payload made unreadable, and the commitment that proves later what it was.

    `commitment` is an HMAC of the plaintext under a random salt; the salt lies in `ciphertext`.
    """

    commitment: bytes
    key_id: str
    ciphertext: bytes


class PayloadCipher(Protocol):
    """Encrypts payloads under their tenant's key. Called in the writer's thread, for every payload.

    It may read the database through the thread's own connection, outside any transaction; a
    database error there makes the writer try again.
    """

    def commit_and_seal(self, tenant: UUID, plaintext: bytes) -> SealedPayload: ...

    def open(self, tenant: UUID, key_id: str, ciphertext: bytes) -> bytes:
        """The plaintext. Raises UnreadablePayloadError."""


class _Slot:
    cipher: PayloadCipher | None = None


def set_payload_cipher(cipher: PayloadCipher | None) -> None:
    """Fill the port, once, at start-up."""
    _Slot.cipher = cipher


def payload_cipher() -> PayloadCipher | None:
    """The cipher, or None before the port was filled."""
    return _Slot.cipher
