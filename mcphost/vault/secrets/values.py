"""The value of a secret: encrypted, bound to its row, and decrypted at each use.

AES-256-GCM under the tenant's payload key. The additional authenticated data are tenant, row,
version and name, so that a value copied into another row, or an older one, cannot be decrypted. They
begin with a word of their own, so that a payload does not open as a secret, nor a secret as one.
"""

import secrets
from collections.abc import Callable
from typing import Any, Final, NoReturn
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


class UsableSecret:
    """A secret of one tenant. It shows its name only, and can be neither copied nor serialized.

    `hosts` are exact host names in lower case, or `name:port`; without a port, the port is 443.
    `places` are the parts of a request that may contain the value (see `fields.PLACES`). Code that
    sends requests enforces both.
    """

    __slots__ = ("_reveal", "hosts", "name", "places")

    name: str
    hosts: frozenset[str]
    places: frozenset[str]
    _reveal: Callable[[], str]

    def __init__(
        self, name: str, hosts: frozenset[str], places: frozenset[str], reveal: Callable[[], str]
    ) -> None:
        """`reveal` decrypts the value; it is called at each use, and raises its own errors."""
        values = {"name": name, "hosts": hosts, "places": places, "_reveal": reveal}
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def reveal(self) -> str:
        """Decrypt and return the value: for the outgoing request only. Do not store it."""
        return self._reveal()

    def __repr__(self) -> str:
        return f"UsableSecret({self.name!r})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a secret cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a secret cannot be changed")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a secret cannot be copied or serialized")
