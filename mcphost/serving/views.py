"""What a set of scopes sees of what a tenant offers, made comparable: did it change for them?"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from itertools import chain
from typing import Protocol
from uuid import UUID

from mcphost.catalogue.selectors import Offering
from mcphost.serving import finding
from mcphost.serving.finding import Scopes


class Listed(Protocol):
    """An entry of a list: `encoded` is how it looks there."""

    @property
    def scopes(self) -> Scopes: ...

    @property
    def encoded(self) -> bytes: ...


_LISTS: Mapping[str, Callable[[Offering], Iterable[Listed]]] = {
    "tool": lambda offering: offering.tools,
    "prompt": lambda offering: offering.prompts,
    "resource": lambda offering: chain(offering.resources, offering.templates),
}
"""What is in each list that clients can hear of; templates are resources to come."""


def digest(offering: Offering, name: str, scopes: Scopes) -> bytes:
    """Of a list as callers with these scopes get it: while it stays, nothing changed for them."""
    hashed = blake2b(digest_size=16)
    for entry in _LISTS[name](offering):
        if entry.scopes <= scopes:
            hashed.update(b"%d:" % len(entry.encoded))
            hashed.update(entry.encoded)
    return hashed.digest()


def reading(offering: Offering, uri: str, scopes: Scopes) -> tuple[UUID, str] | None:
    """What callers with these scopes read at `uri`, by id and version; None if nothing.

    `uri` is in its normal form.
    """
    found = finding.at(offering, uri, scopes)
    return None if found is None else (found[0].id, found[0].version)
