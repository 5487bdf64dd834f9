"""JSON values: parsed and encoded without lone surrogates, checked for storage, digested.

Lone surrogates become U+FFFD instead of making a whole message invalid: a program that cuts
a text in the middle of an emoji leaves half of a pair. JSON can write one (`\\ud83d`), UTF-8 cannot, and
one such character must not lose everything around it. What has none may still not be storable:
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

MAX_LONE_SURROGATES: Final = 1000
"""How many are replaced in one text of JSON: to replace them must not cost much more than parsing."""

_LONE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_UP_TO_LONE: Final = re.compile(
    rb"((?:[^\\]+|\\[^u]|\\u(?![dD][89a-fA-F])"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)" + _LONE.pattern,
    re.DOTALL,
)
"""Text without lone surrogates, and one of them. Whole escapes are matched, because in `\\\\ud83d` the second backslash is
escaped."""
_ENCODED: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""A lone surrogate that was encoded as if it were a character."""


def parse_json(text: bytes) -> Any:
    """Parse JSON; lone surrogates become U+FFFD. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(replace_lone_surrogates(text))


def repaired_json(text: bytes) -> bytes:
    """Return JSON with its escaped lone surrogates replaced; any other text as it is."""
    if not _LONE.search(text):
        return text
    replaced = replace_lone_surrogates(text)
    try:
        orjson.loads(replaced)
    except orjson.JSONDecodeError:
        return text
    return replaced


def replace_lone_surrogates(text: bytes) -> bytes:
    """Return a text of JSON without lone surrogates; the text itself if it has none, or too many."""
    if _ENCODED.search(text):
        if any(islice(_ENCODED.finditer(text), MAX_LONE_SURROGATES, None)):
            return text
        try:
            text = _joined(text.decode("utf-8", "surrogatepass")).encode()
        except UnicodeDecodeError:
            return text
    parts: list[bytes] = []
    position = 0
    while match := _UP_TO_LONE.match(text, position):
        if len(parts) == 2 * MAX_LONE_SURROGATES:
            return text
        parts += (match[1], b"\\ufffd")
        position = match.end()
    return b"".join([*parts, text[position:]])


def dump_json(value: Any) -> tuple[bytes, Any]:
    """Encode a value; return its JSON, and the value as it was encoded, without lone surrogates.

    Raises TypeError for what is not JSON.
    """
    try:
        return orjson.dumps(value), value
    except TypeError:
        clean = without_lone_surrogates(value)
        return orjson.dumps(clean), clean


def without_lone_surrogates(value: Any) -> Any:
    """Return a value of JSON in which lone surrogates are U+FFFD, and split pairs whole."""
    match value:
        case str():
            return value if value.isascii() else _joined(value)
        case dict():
            return {
                without_lone_surrogates(key): without_lone_surrogates(member)
                for key, member in value.items()
            }
        case list() | tuple():
            return [without_lone_surrogates(element) for element in value]
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
        elif problem := _scalar_problem(part):
            return [problem]
    return []


def _scalar_problem(value: Any) -> str:
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
