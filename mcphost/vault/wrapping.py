"""Wrap secrets under the key-encryption key (KEK), each bound to its field of a row in the database.

A wrapped secret is the text `v1.<KEK id>.<base64url(nonce ‖ AES-256-GCM)>`, or several of these
separated by spaces, each of which contains the secret: so one KEK can replace another while some
processes have the one and some the other. The additional authenticated data are the version and the
location, `<model>:<field>:<primary key>`, so a value copied into another row or column cannot be
unwrapped. The KEK id is a fingerprint: it identifies the KEK and discloses nothing about it.
"""

import base64
import hmac
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import models

from mcphost.vault.errors import DamagedSecretError, MasterKeyMismatchError
from mcphost.vault.master import MasterKeys
from mcphost.vault.models import location_of

NONCE_BYTES: Final = 12

_VERSION = "v1"


def kek_id(kek: bytes) -> str:
    """The short public id of a key-encryption key."""
    return hmac.digest(kek, b"mcphost key-encryption key id", "sha256")[:6].hex()


def head(kek: bytes) -> str:
    """The prefix of everything wrapped under `kek`."""
    return f"{_VERSION}.{kek_id(kek)}."


def wrap(secret: bytes, location: str, kek: bytes, nonce: bytes) -> str:
    """Wrap `secret` for one location. `nonce` is 12 random bytes."""
    sealed = AESGCM(kek).encrypt(nonce, secret, _authenticated(location))
    return head(kek) + base64.urlsafe_b64encode(nonce + sealed).decode()


def wrappers(wrapped: str) -> frozenset[str]:
    """The ids of the key-encryption keys that can unwrap this."""
    return frozenset(
        part.split(".")[1] for part in wrapped.split() if part.startswith(_VERSION + ".")
    )


def unwrap(wrapped: str, location: str, *keks: bytes) -> bytes:
    """Unwrap a secret with the key that wrapped it.

    Raises MasterKeyMismatchError if none of `keks` did, DamagedSecretError if the value was changed.
    """
    for kek in keks:
        for part in wrapped.split():
            if not part.startswith(head(kek)):
                continue
            try:
                raw = base64.urlsafe_b64decode(part.removeprefix(head(kek)))
                nonce, sealed = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
                return AESGCM(kek).decrypt(nonce, sealed, _authenticated(location))
            except (ValueError, InvalidTag):
                raise DamagedSecretError(
                    f"the secret in {location} cannot be unwrapped: it was modified, or moved from "
                    "another row; restore it from a backup of the database"
                ) from None
    raise mismatch(wrapped, *keks)


def mismatch(wrapped: str, *keks: bytes) -> MasterKeyMismatchError:
    """The error for key-encryption keys of which none wrapped `wrapped`."""
    names = " and ".join(sorted(key_id[:12] for key_id in wrappers(wrapped))) or "unknown"
    own_keys = " and ".join(map(kek_id, keks))
    return MasterKeyMismatchError(
        f"keys in this database are wrapped under master key {names}, but this process has {own_keys}: "
        "restore the master key that belongs to this database, in MCPHOST_MASTER_KEY, "
        "MCPHOST_MASTER_KEY_FILE or the file master-key in the data folder (during a replacement also "
        "the other one, in MCPHOST_NEW_MASTER_KEY); without it nothing sealed so far can be opened, "
        "and no new one is created in its place"
    )


def _authenticated(location: str) -> bytes:
    return f"{_VERSION}:{location}".encode()


def opened(row: models.Model, name: str, keys: MasterKeys) -> bytes:
    """Unwrap the secret in a field of a row. Raises MasterKeyMismatchError, DamagedSecretError."""
    return unwrap(getattr(row, name), location_of(row, name), *keys.all())


def wrapped(secret: bytes, row: models.Model, name: str, keys: MasterKeys) -> str:
    """The field's value for a secret, which each of the master keys can unwrap."""
    location = location_of(row, name)
    return " ".join(
        wrap(secret, location, kek, secrets.token_bytes(NONCE_BYTES)) for kek in keys.all()
    )
