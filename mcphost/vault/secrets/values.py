"""Encrypt the value of a secret, bound to its row.

AES-256-GCM under the tenant's payload key. The additional authenticated data are tenant, row,
version and name, so that a value copied into another row, or an older one, cannot be decrypted. They
begin with a word of their own, so that a payload does not open as a secret, nor a secret as one.
"""

import secrets
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag

from mcphost.vault.errors import DamagedSecretError
from mcphost.vault.selectors import PayloadKey
from mcphost.vault.wrapping import NONCE_BYTES

_PURPOSE: Final = b"secret:"


def bound(tenant: UUID, row: UUID, version: int, name: str) -> bytes:
    """The data that a value is authenticated with. The parts before the name have fixed sizes."""
    return _PURPOSE + tenant.bytes + row.bytes + version.to_bytes(8) + name.encode()


def seal_value(value: str, associated_data: bytes, key: PayloadKey) -> bytes:
    """Encrypt a value; for `associated_data`, see `bound`."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + key.cipher.encrypt(nonce, value.encode(), associated_data)


def open_value(sealed: bytes, associated_data: bytes, key: PayloadKey) -> str:
    """Decrypt a value. Raises DamagedSecretError if it was modified, moved or sealed otherwise."""
    try:
        return key.cipher.decrypt(
            sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], associated_data
        ).decode()
    except (ValueError, InvalidTag):
        raise DamagedSecretError(
            "the value of a tenant's secret cannot be decrypted: it was modified, or moved from "
            "another row; type it in again"
        ) from None
