"""The master key: the key-encryption key, which is stored outside the database.

While it is replaced there are two: each opens what it has wrapped, and both wrap new secrets.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from mcphost.vault.errors import MasterKeyMismatchError

KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master key, and the one that will replace it, if given."""

    current: bytes = field(repr=False)
    new: bytes | None = field(default=None, repr=False)

    def all(self) -> tuple[bytes, ...]:
        return (self.current,) if self.new in (None, self.current) else (self.current, self.new)


def master_keys() -> MasterKeys:
    """Read the master keys from where they are stored. They are never cached.

    Raises MasterKeyMismatchError if there is none or one is unusable; the message says what to do.
    """
    # The new one first: an operator may move it into the place of the old one between the reads.
    new = _read_key(settings.MCPHOST_NEW_MASTER_KEY)
    return MasterKeys(master_key(), new or None)


def master_key() -> bytes:
    """Read the current master key. Raises as `master_keys`."""
    key = _read_key(settings.MCPHOST_MASTER_KEY)
    if len(key) != KEY_BYTES:
        raise MasterKeyMismatchError(f"the master key must be {KEY_BYTES} bytes long")
    return key


def _read_key(read_key: Callable[[], bytes]) -> bytes:
    try:
        return read_key()
    except Exception as error:  # an error class of a higher package
        raise MasterKeyMismatchError(str(error)) from error
