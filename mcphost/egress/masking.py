"""Replace the values of secrets in what services send back.

Escapes are decoded first, and what is found is mapped back to where it stood. All steps take time in
proportion to the content, because a tenant chooses the values, and its service the content: a pattern
that tries out all escapes of a value can be made to run for years.
"""

import base64
import html
import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from mcphost.egress.errors import EgressResponseError

MASKED: Final = b"[secret]"

_PASSES: Final = 4
"""How deep escapes of different kinds may be nested."""
MOST_ESCAPES: Final = 2**21
"""Escapes of a content that are decoded, which takes a second or two: more than 8 MiB of JSON have with
each character escaped. What has more cannot be checked, so it is refused."""
_LEAST: Final = 6
"""Bytes of a decoded value. A value that is mostly escapes is found in its usual forms only."""
_NAMED: Final = {b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'", b"amp": b"&"}
# Each alternative begins with one certain character: then what begins none is skipped five times as
# fast, while no other thread runs.
_ESCAPE: Final = re.compile(
    rb"%(?:25)*(?P<byte>[0-9A-Fa-f]{2})"
    rb"|\\\\*u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\+u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    rb"|\\\\*u(?P<unit>[0-9A-Fa-f]{4})"
    rb"|&(?:amp;)*(?:(?P<name>lt|gt|quot|apos|amp)"
    rb"|\#0*+(?P<decimal>[0-9]{0,7})|\#[xX]0*+(?P<hex>[0-9A-Fa-f]{0,6}));"
    # Any other backslash stands before the character that it escapes.
    rb"|\\\\*"
)
_SPACES: Final = bytes.maketrans(b"+", b" ")

_Range = tuple[int, int]


class Mask:
    """Replaces values in whatever form a service sends them back.

    Recognised are the value itself and its percent-encoded, form-encoded, JSON-escaped and
    HTML-escaped forms, also mixed or escaped twice; Base64 and Base64url at any offset, so that a
    longer text that contains the value is recognised; hexadecimal; UTF-16 and UTF-32. A service that wants to
    reveal a secret that it was sent can use another form: this is for services that echo.
    """

    def __init__(self, values: Iterable[str]) -> None:
        known = sorted(set(values), key=len, reverse=True)
        self._decoded = list(dict.fromkeys(each for value in known for each in _decoded(value)))
        self._exact = list(dict.fromkeys(each for value in known for each in _exact(value)))

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._exact)

    def bytes(self, content: bytes) -> bytes:
        if self._exact:
            content = _without(content, self._decoded)
            for form in self._exact:
                content = content.replace(form, MASKED)
        return content

    def text(self, content: str) -> str:
        masked = self.bytes(content.encode("utf-8", "surrogateescape"))
        return masked.decode("utf-8", "surrogateescape")

    def latin(self, content: str) -> str:
        """Mask a header, whose characters stand for one byte each."""
        return self.bytes(content.encode("latin-1")).decode("latin-1")


def _exact(value: str) -> Iterator[bytes]:
    """Yield forms that are found as they are, the longest first."""
    raw = value.encode()
    every = "".join(f"%{byte:02x}" for byte in raw)
    for percent in (every, every.upper(), quote(value, safe=""), quote_plus(value), quote(value)):
        yield percent.encode()
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    for encoding in ("utf-32-be", "utf-32-le", "utf-16-be", "utf-16-le"):
        yield value.encode(encoding)
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode()
    yield html.escape(value).encode()
    yield raw


def _decoded(value: str) -> Iterator[bytes]:
    """Yield what decoding makes of each form that may be escaped, if it is long enough."""
    whole = [value.encode(), value.translate({10: "n", 13: "r", 9: "t"}).encode()]
    if all(ord(character) < 256 for character in value):
        whole.append(value.encode("latin-1"))
    for form in (*whole, *_base64_forms(value.encode())):
        plain, _ = _decode(form)
        if len(plain) >= _LEAST:
            yield plain


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """Yield what Base64 makes of `raw`, and of it inside any longer content.

    Of the latter only the characters that the bytes around `raw` do not change.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw)
        yield from (whole, whole.rstrip(b"="))
    for offset, first in ((0, 0), (1, 2), (2, 3)):
        padded = b"\0" * offset + raw
        last = len(padded) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded)[first:last]


def _without(content: bytes, forms: Sequence[bytes]) -> bytes:
    """Return the content without the parts that decoding makes one of the forms."""
    plain, steps = _decode(content)
    found = _merged(sorted(_found(plain, forms)))
    if not found:
        return content
    for step in reversed(steps):
        decoding = _Decoding(step)
        found = [(decoding.start(first), decoding.end(last)) for first, last in found]
    pieces, end = bytearray(), 0
    for first, last in _merged(found):
        pieces += content[end:first] + MASKED
        end = last
    return bytes(pieces + content[end:])


def _found(plain: bytes, forms: Sequence[bytes]) -> Iterator[_Range]:
    for form in forms:
        at = plain.find(form)
        while at >= 0:
            yield at, at + len(form)
            at = plain.find(form, at + len(form))


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    """Join ranges that overlap. They are in ascending order."""
    merged: list[_Range] = []
    for first, last in ranges:
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _decode(content: bytes) -> tuple[bytes, list[bytes]]:
    """Decode all escapes; return the result, and what each of the steps to it began with.

    Raises EgressResponseError if there are too many.
    """
    steps: list[bytes] = []
    left = MOST_ESCAPES
    for _ in range(_PASSES):
        decoded, escapes = _ESCAPE.subn(_meaning, content, left + 1)
        left -= escapes
        if left < 0:
            raise EgressResponseError(f"The response has more than {MOST_ESCAPES} escapes.")
        if decoded == content:
            break
        steps.append(content)
        content = decoded
    return content.translate(_SPACES), steps


def _meaning(escape: re.Match[bytes]) -> bytes:
    """Return what an escape stands for: a byte, a character in UTF-8, or nothing."""
    kind = escape.lastgroup
    if kind is None:
        return b""
    digits = escape[kind]
    match kind:
        case "byte":
            return bytes.fromhex(digits.decode())
        case "low":
            units = bytes.fromhex((escape["high"] + digits).decode())
            return units.decode("utf-16-be").encode()
        case "name":
            return _NAMED[digits]
        case _:
            number = int(digits or b"0", 10 if kind == "decimal" else 16)
            return chr(min(number, 0x10FFFF)).encode("utf-8", "surrogatepass")


class _Decoding:
    """Where the escapes of a content stood before it was decoded, and where their meanings are."""

    def __init__(self, content: bytes) -> None:
        self._starts, self._ends = array("q"), array("q")
        self._firsts, self._lasts = array("q"), array("q")
        shorter = 0
        for escape in _ESCAPE.finditer(content):
            start, end = escape.span()
            first = start - shorter
            last = first + len(_meaning(escape))
            shorter = end - last
            self._starts.append(start)
            self._ends.append(end)
            self._firsts.append(first)
            self._lasts.append(last)

    def start(self, place: int) -> int:
        """Return where the byte at a place began, with the backslashes before it."""
        at = bisect_right(self._firsts, place) - 1
        if at < 0:
            return place
        if place < self._lasts[at] or place == self._firsts[at]:
            return self._starts[at]
        return self._ends[at] + place - self._lasts[at]

    def end(self, place: int) -> int:
        """Return where the byte before a place ended."""
        at = bisect_right(self._firsts, place - 1) - 1
        if at < 0:
            return place
        return self._ends[at] + max(0, place - self._lasts[at])
