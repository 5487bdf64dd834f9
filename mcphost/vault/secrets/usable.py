"""A secret as the serving path uses it: its rules, and a value that is decrypted at each use."""

from collections.abc import Callable
from typing import Any, NoReturn


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
