"""JSON values: parsed and encoded without halves of surrogate pairs, checked for storage, digested.

Halves of surrogate pairs become U+FFFD instead of making a whole message invalid: a program that cuts
a text in the middle of an emoji leaves half of a pair. JSON can write one (`\\ud83d`), UTF-8 cannot, and
one such character must not lose everything around it. What has no halves may still not be storable:
PostgreSQL has no U+0000 in texts, and the parsers read integers of at most 64 bits.
"""

import math
import re
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import orjson

MAX_HALVES: Final = 1000
"""How many halves are replaced in one text of JSON: to replace them must not cost much more than parsing."""

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_UP_TO_HALF: Final = re.compile(
    rb"((?:[^\\]+|\\[^u]|\\u(?![dD][89a-fA-F])"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)" + _HALF.pattern,
    re.DOTALL,
)
"""Text without halves, and one half. Whole escapes are matched, because in `\\\\ud83d` the second backslash is
escaped."""
_ENCODED: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""A half that was encoded as if it were a character."""


def parse_json(text: bytes) -> Any:
    """Parse JSON; halves of surrogate pairs become U+FFFD. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(replace_halves(text))


def repaired_json(text: bytes) -> bytes:
    """Return text with its halves of surrogate pairs replaced, if it is JSON; any other as it is."""
    if not _HALF.search(text):
        return text
    replaced = replace_halves(text)
    try:
        orjson.loads(replaced)
    except orjson.JSONDecodeError:
        return text
    return replaced


def replace_halves(text: bytes) -> bytes:
    """Return a text of JSON without halves; the text itself if it has none, or too many."""
    if _ENCODED.search(text):
        if any(islice(_ENCODED.finditer(text), MAX_HALVES, None)):
            return text
        try:
            text = _joined(text.decode("utf-8", "surrogatepass")).encode()
        except UnicodeDecodeError:
            return text
    parts: list[bytes] = []
    position = 0
    while match := _UP_TO_HALF.match(text, position):
        if len(parts) == 2 * MAX_HALVES:
            return text
        parts += (match[1], b"\\ufffd")
        position = match.end()
    return b"".join([*parts, text[position:]])


def dump_json(value: Any) -> tuple[bytes, Any]:
    """Encode a value; return its JSON, and the value as it was encoded, without halves of surrogate pairs.

    Raises TypeError for what is not JSON.
    """
    try:
        return orjson.dumps(value), value
    except TypeError:
        clean = without_halves(value)
        return orjson.dumps(clean), clean


def without_halves(value: Any) -> Any:
    """Return a value of JSON in which halves of surrogate pairs are U+FFFD, and split pairs whole."""
    match value:
        case str():
            return value if value.isascii() else _joined(value)
        case dict():
            return {without_halves(key): without_halves(member) for key, member in value.items()}
        case list() | tuple():
            return [without_halves(element) for element in value]
        case _:
            return value


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def digest(value: Any) -> str:
    """Return the SHA-256 of the value as JSON with sorted keys, in 43 characters of base64url.

    Raises ValueError for values without a canonical form: integers beyond 64 bits, lone surrogates.
    """
    try:
        plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return urlsafe_b64encode(sha256(plain).digest()).rstrip(b"=").decode()


MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63


def check_json(value: Any) -> list[str]:
    """Return why a value cannot be stored as JSON, in sentences; empty if it can."""
    pending = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            return [f"It is nested deeper than {MAX_DEPTH} levels."]
        if isinstance(part, Mapping):
            pending += [(child, depth + 1) for pair in part.items() for child in pair]
            if not all(isinstance(key, str) for key in part):
                return ["The keys of an object must be strings."]
        elif isinstance(part, list | tuple):
            pending += [(child, depth + 1) for child in part]
        elif problem := _no_scalar(part):
            return [problem]
    return []


def _no_scalar(value: Any) -> str:
    if isinstance(value, str):
        bad = next((c for c in value if c == "\0" or unicodedata.category(c) == "Cs"), "")
        return f"The character U+{ord(bad):04X} is not allowed here." if bad else ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else "Infinite numbers and NaN are not allowed here."
    if isinstance(value, int):
        return "" if -MAX_INTEGER <= value < MAX_INTEGER else "An integer has at most 64 bits."
    return (
        ""
        if value is None
        else "Only strings, numbers, true, false, null, lists and objects are allowed here."
    )
