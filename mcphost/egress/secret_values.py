"""Secrets in outgoing requests: handles, and where values may go.

A request has a `SecretHandle` where a secret belongs, alone or inside a `Template`. `Filler` puts
the values in; `masking` removes them from everything that the caller sees.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Any, NoReturn

from mcphost.egress.addresses import SURROGATE, AllowedHost, Target
from mcphost.egress.errors import EgressRequestError, EgressSecretError

MIN_SECRET = 8
"""Characters of a secret: a shorter value cannot be told from other text in a response."""


class SecretPlace(Enum):
    """A part of a request that a secret may be in."""

    HEADER = "header"
    QUERY = "query"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class SecretHandle:
    """Stands for the value of the secret `name`. It never has the value and never becomes text."""

    name: str

    def __str__(self) -> NoReturn:
        raise TypeError(
            "a secret has no text: put its handle itself, or a Template, in the request"
        )


@dataclass(frozen=True, slots=True)
class Template:
    """Text with secrets in it: `Template(("Bearer ", SecretHandle("billing")))`."""

    parts: tuple[str | SecretHandle, ...]


Text = str | SecretHandle | Template


@dataclass(frozen=True, slots=True)
class Secret:
    """The value of a secret, the hosts that it may be sent to, and the places it may be in.

    Raises ValueError if the value cannot be sent, or is too short to be masked.
    """

    value: str = field(repr=False)
    hosts: tuple[AllowedHost, ...]
    places: frozenset[SecretPlace]

    def __post_init__(self) -> None:
        if len(self.value) < MIN_SECRET:
            raise ValueError(f"A secret must have at least {MIN_SECRET} characters.")
        if SURROGATE.search(self.value):
            raise ValueError("A secret must be Unicode text, without surrogates.")


def handles(content: Any) -> Iterator[SecretHandle]:
    """Yield the handles in a text, or anywhere in a JSON value, a form or a list of headers."""
    if isinstance(content, SecretHandle):
        yield content
    elif isinstance(content, Template):
        yield from handles(content.parts)
    elif isinstance(content, Mapping):
        yield from chain.from_iterable(map(handles, content.values()))
    elif isinstance(content, list | tuple):
        yield from chain.from_iterable(map(handles, content))


@dataclass(frozen=True, slots=True)
class Filler:
    """Puts values in the place of handles in a request to `target`.

    Raises EgressSecretError if a secret may not go there, EgressRequestError for invalid text.
    """

    secrets: Mapping[str, Secret]
    target: Target

    def text(self, text: Text, request_part: SecretPlace) -> str:
        parts = text.parts if isinstance(text, Template) else (text,)
        filled = "".join(
            part if isinstance(part, str) else self._value(part.name, request_part)
            for part in parts
        )
        if SURROGATE.search(filled):
            raise EgressRequestError("The request has text that is not Unicode.")
        return filled

    def json(self, value: Any) -> Any:
        """Return a JSON value with the handles in it replaced by strings."""
        if isinstance(value, SecretHandle | Template):
            return self.text(value, SecretPlace.BODY)
        if isinstance(value, Mapping):
            return {name: self.json(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    def _value(self, name: str, request_part: SecretPlace) -> str:
        secret = self.secrets[name]
        if not any(host.matches(self.target) for host in secret.hosts):
            raise EgressSecretError(f"The secret {name!r} may not go to {self.target.origin}.")
        if request_part not in secret.places:
            raise EgressSecretError(
                f"The secret {name!r} may not be in the {request_part.value} of a request."
            )
        return secret.value
