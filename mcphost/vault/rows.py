"""Wrap a secret for a field of a row, and unwrap the secret in a field."""

import secrets

from django.db import models

from mcphost.vault.master import MasterKeys
from mcphost.vault.models import location_of
from mcphost.vault.wrapping import NONCE_BYTES, unwrap, wrap


def opened(row: models.Model, name: str, keys: MasterKeys) -> bytes:
    """Unwrap the secret in a field of a row. Raises MasterKeyMismatchError, DamagedSecretError."""
    return unwrap(getattr(row, name), location_of(row, name), *keys.all())


def wrapped(secret: bytes, row: models.Model, name: str, keys: MasterKeys) -> str:
    """The field's value for a secret, which each of the master keys can unwrap."""
    location = location_of(row, name)
    return " ".join(
        wrap(secret, location, kek, secrets.token_bytes(NONCE_BYTES)) for kek in keys.all()
    )
