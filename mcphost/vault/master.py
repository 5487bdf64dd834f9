"""The master key: the key-encryption key, which lives outside the database.

While one replaces another there are two: what either wrapped is opened, and both wrap what is new.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from mcphost.vault.errors import MasterKeyMismatch

KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master key, and the one that is to replace it if one is given."""

    current: bytes = field(repr=False)
    new: bytes | None = field(default=None, repr=False)

    def all(self) -> tuple[bytes, ...]:
        return (self.current,) if self.new in (None, self.current) else (self.current, self.new)


def master_keys() -> MasterKeys:
    """The master keys, read from their places at every call and never kept.

    Raises MasterKeyMismatch if there is none or one is unusable; the message says what would help.
    """
    # The new one first: who moves it into the place of the old one in between is not missed.
    new = _read(settings.MCPHOST_NEW_MASTER_KEY)
    return MasterKeys(master_key(), new or None)


def master_key() -> bytes:
    """The master key alone. Raises as `master_keys`."""
    key = _read(settings.MCPHOST_MASTER_KEY)
    if len(key) != KEY_BYTES:
        raise MasterKeyMismatch(f"the master key must be {KEY_BYTES} bytes long")
    return key


def _read(place: Callable[[], bytes]) -> bytes:
    try:
        return place()
    except Exception as error:  # the house's own error, from a room above this one
        raise MasterKeyMismatch(str(error)) from error
