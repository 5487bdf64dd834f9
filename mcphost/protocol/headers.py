"""Request headers, and the checks that they match the body.

Intermediaries route by `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` without
reading the body, so a header that is missing, doubled or different from the body is refused (spec:
basic/transports/streamable-http, "Request Metadata" and "Server Validation").
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from mcphost.protocol.errors import header_mismatch, shown
from mcphost.protocol.schemas import ParamHeader

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="

_PLAIN: Final = re.compile(rb"(?!=\?)[!-~]+")
"""A value that needs no decoding: no spaces, no Base64 markers."""

_UNSAFE: Final = re.compile(r"[^\t\x20-\x7e]")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,32}(?:\.[0-9]{1,32})?", re.ASCII)

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that may be mirrored; its negative is the smallest."""


class Headers:
    """The headers of one request: ASGI's raw pairs, with names in lower case.

    Built for every request, so it keeps only the pairs, in the order in which they were sent, and
    the last value of each name.
    """

    __slots__ = ("_last", "pairs")

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        self.pairs = pairs
        self._last = dict(pairs)

    def get(self, name: str) -> str | None:
        """Return the value without surrounding white space; repeated headers are joined by commas.

        Bytes beyond ASCII are decoded as Latin-1. `name` is lower case.
        """
        key = name.encode()
        value = self._last.get(key)
        if value is None:
            return None
        if self.count(name) > 1:
            return ", ".join(
                _text(raw_value) for raw_name, raw_value in self.pairs if raw_name == key
            )
        return _text(value)

    def equal(self, expected: Mapping[bytes, object]) -> bool:
        """Whether each of these headers was sent once, without encoding, with this text: the fast
        path.

        False does not mean a mismatch: a value may be encoded, or be wrong.
        """
        if len(self._last) != len(self.pairs):
            return False
        for key, text in expected.items():
            value = self._last.get(key)
            same = type(text) is str and value == text.encode()
            if value is None or not same or _PLAIN.fullmatch(value) is None:
                return False
        return True

    def count(self, name: str) -> int:
        """How many times the header was sent."""
        key = name.encode()
        if key not in self._last:
            return 0
        if len(self._last) == len(self.pairs):
            return 1
        return sum(raw_name == key for raw_name, _ in self.pairs)


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip(" \t")


def decode_value(text: str) -> str:
    """Decode a header value: plain text, or UTF-8 in Base64 between `=?base64?` and `?=`.

    Raises ValueError when the part between the markers is not canonical Base64 of UTF-8 text.
    """
    if not text.startswith(_PREFIX) or not text.endswith(_SUFFIX):
        return text
    if len(text) < len(_PREFIX) + len(_SUFFIX):
        return text
    encoded = text[len(_PREFIX) : -len(_SUFFIX)]
    try:
        decoded = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not valid Base64") from None
    if base64.b64encode(decoded).decode() != encoded:
        raise ValueError("not canonical Base64")
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 inside its Base64") from None


def check_version(headers: Headers, version: str) -> None:
    """Refuse an `MCP-Protocol-Version` that differs from the version in `_meta`. Raises
    HEADER_MISMATCH."""
    value = _single(headers, "mcp-protocol-version", "MCP-Protocol-Version")
    if value != version:
        raise header_mismatch(
            f"MCP-Protocol-Version is {shown(value)}, but params._meta has {shown(version)}"
        )


def check_method(headers: Headers, method: str) -> None:
    """Refuse an `Mcp-Method` that differs from the body's method. Raises HEADER_MISMATCH."""
    value = _single(headers, "mcp-method", "Mcp-Method")
    if value != method:
        raise header_mismatch(f"Mcp-Method is {shown(value)}, but method is {shown(method)}")


def check_name(headers: Headers, field: str, name: str) -> None:
    """Refuse an `Mcp-Name` that, decoded, differs from `params.<field>`. Raises HEADER_MISMATCH."""
    value = _decoded(_single(headers, "mcp-name", "Mcp-Name"), "Mcp-Name")
    if value != name:
        raise header_mismatch(f"Mcp-Name is {shown(value)}, but params.{field} is {shown(name)}")


def check_param_headers(
    headers: Headers, params: Sequence[ParamHeader], arguments: Mapping[str, Any]
) -> None:
    """Check that each `Mcp-Param-*` header equals its argument, or that both are missing.

    `params` is the result of `schemas.param_headers` for the tool's input schema. A null argument
    counts as missing. An argument that is not a string, number or boolean cannot be mirrored:
    without a header, the input schema decides. Raises HEADER_MISMATCH, without quoting values,
    which may be personal.
    """
    for param in params:
        value: object = arguments
        for step in param.path:  # a missing step leads to None
            value = value.get(step) if isinstance(value, Mapping) else None
        name = f"Mcp-Param-{param.name}"
        where = ".".join(("params.arguments", *param.path))
        key = name.lower()
        if headers.count(key) == 0:
            if isinstance(value, str | int | float):
                raise header_mismatch(f"{name} is missing, but {where} has a value")
            continue
        if value is None:
            raise header_mismatch(f"{name} was sent, but {where} has no value")
        text = _decoded(_single(headers, key, name), name)
        if isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
            raise header_mismatch(f"{where} is outside the integer range of {name} (±(2**53 - 1))")
        if not _same(text, value):
            raise header_mismatch(f"{name} does not match {where}")


def _same(text: str, value: object) -> bool:
    """Whether a decoded header equals the argument; numbers are compared as numbers."""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, str):
        return text == value
    if isinstance(value, int | float):
        return _DECIMAL.fullmatch(text) is not None and Decimal(text) == value
    return False


def _single(headers: Headers, key: str, name: str) -> str:
    """Return the single value of a required header. Raises HEADER_MISMATCH."""
    value = headers.get(key)
    if value is None:
        raise header_mismatch(f"{name} is missing")
    if headers.count(key) > 1:
        raise header_mismatch(f"{name} was sent more than once")
    if _UNSAFE.search(value):
        raise header_mismatch(f"{name} has characters that a header must not have")
    return value


def _decoded(value: str, name: str) -> str:
    try:
        return decode_value(value)
    except ValueError as error:
        raise header_mismatch(f"{name} is {error}") from None
