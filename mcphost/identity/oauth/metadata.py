"""What a client says of itself, in a document or when it registers (RFC 7591 section 2).

Null is read as an absent value: some clients write all fields that they know.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

NAME_LENGTH: Final = 100
AUTHENTICATION: Final = "none"
"""How clients authenticate at the token endpoint: all are public, and prove themselves by PKCE."""
GRANTS: Final = ("authorization_code", "refresh_token")


def parse(body: bytes) -> Mapping[str, Any] | None:
    """Return a JSON object without its null values; None for anything else."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    return {name: value for name, value in fields.items() if value is not None}


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, each once; none if it is no list."""
    if not isinstance(value, list):
        return ()
    return tuple(dict.fromkeys(item for item in value if isinstance(item, str)))


def display_name(fields: Mapping[str, Any], host: str) -> str:
    """Return the client's name for people, in one line without control or formatting characters.

    A client without a name that can be read is called by its host.
    """
    name = fields.get("client_name")
    words = name.split() if isinstance(name, str) else []
    printable = "".join(filter(str.isprintable, " ".join(words)))[:NAME_LENGTH].strip()
    return printable or host[:NAME_LENGTH]
