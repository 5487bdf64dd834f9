"""The master key: the key-encryption key, which lives outside the database."""

from typing import Final

from django.conf import settings

from mcphost.vault.errors import MasterKeyMismatch

KEY_BYTES: Final = 32


def master_key() -> bytes:
    """The master key, read from its place at every call and never kept.

    Raises MasterKeyMismatch if there is none or it is unusable; the message says what would help.
    """
    try:
        key: bytes = settings.MCPHOST_MASTER_KEY()
    except Exception as error:  # the house's own error, from a room above this one
        raise MasterKeyMismatch(str(error)) from error
    if len(key) != KEY_BYTES:
        raise MasterKeyMismatch(f"the master key must be {KEY_BYTES} bytes long")
    return key
