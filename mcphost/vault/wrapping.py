"""Secrets at rest: wrapped under the key-encryption key, each bound to its place in the database.

A wrapped secret is the text `v1.<KEK id>.<base64url(nonce ‖ AES-256-GCM)>`. The additional
authenticated data are the version and the place, `<model>:<field>:<primary key>`, so a wrapped
value copied into another row or column opens nothing. The KEK id is a fingerprint: it says which
rows a new key-encryption key has not re-wrapped yet, and nothing about the key itself.
"""

import base64
import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mcphost.vault.errors import DamagedSecretError, MasterKeyMismatch

NONCE_BYTES: Final = 12

_VERSION = "v1"


def kek_id(kek: bytes) -> str:
    """The short public name of a key-encryption key."""
    return hmac.digest(kek, b"mcphost key-encryption key id", "sha256")[:6].hex()


def head(kek: bytes) -> str:
    """What everything wrapped under `kek` begins with."""
    return f"{_VERSION}.{kek_id(kek)}."


def wrap(secret: bytes, place: str, kek: bytes, nonce: bytes) -> str:
    """Wrap `secret` for one place. `nonce` are 12 random bytes."""
    sealed = AESGCM(kek).encrypt(nonce, secret, _authenticated(place))
    return head(kek) + base64.urlsafe_b64encode(nonce + sealed).decode()


def unwrap(wrapped: str, place: str, kek: bytes) -> bytes:
    """The secret. Raises MasterKeyMismatch if another key wrapped it, else DamagedSecretError."""
    if not wrapped.startswith(head(kek)):
        raise mismatch(wrapped, kek)
    try:
        raw = base64.urlsafe_b64decode(wrapped.removeprefix(head(kek)))
        return AESGCM(kek).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _authenticated(place))
    except (ValueError, InvalidTag):
        raise DamagedSecretError(
            f"the secret in {place} does not open: it was changed, or moved from another row; "
            "restore it from a backup of the database"
        ) from None


def mismatch(wrapped: str, kek: bytes) -> MasterKeyMismatch:
    """The refusal of a key-encryption key that is not the one that wrapped `wrapped`."""
    name = wrapped.split(".")[1] if wrapped.startswith(f"{_VERSION}.") else "unknown"
    return MasterKeyMismatch(
        f"the keys in this database were wrapped by the master key {name[:12]}, the one given is "
        f"{kek_id(kek)}: give back the one that belongs to this database, by MCPHOST_MASTER_KEY, "
        "MCPHOST_MASTER_KEY_FILE or the file master-key in the data folder; without it nothing "
        "sealed so far can be opened, and a new one is never made in its place"
    )


def _authenticated(place: str) -> bytes:
    return f"{_VERSION}:{place}".encode()
