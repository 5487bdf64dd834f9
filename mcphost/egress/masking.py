"""Replace the values of secrets in what services send back.

The threats:

- A service echoes its request, in an error or a debugging page, escaped by whatever programs wrote it. So
  a secret would reach the caller, the model, the records and the log. Each form that is decoded here is one
  that programs write, and has a test. A service that means to reveal a secret uses another one: that is no
  threat to the tenant, who chose the service.
- A tenant chooses the values, and its service the content, to keep the CPU or the memory from others. So all
  steps take time in proportion to the content (a pattern that tries out all escapes of a value can be made
  to run for years), and escapes and places are limited.
- A user who may store secrets stores the beginning of another one, and sees how the rest goes on. So all are
  found before one is replaced, and places that overlap are replaced together.

Escapes are decoded first, and what is found is mapped back to where it stood.
"""

import base64
import html
import json
import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from html.entities import html5
from typing import Final
from urllib.parse import quote, quote_plus

from mcphost.egress.errors import EgressResponseError

MASKED: Final = b"[secret]"

_PASSES: Final = 4
"""How deep escapes of different kinds may be nested."""
MAX_ESCAPES: Final = 2**21
"""Escapes of a content that are decoded, which takes a second or two: more than 8 MiB of JSON have with
each character escaped. What has more cannot be checked, so it is refused."""
MAX_OCCURRENCES: Final = 2**17
"""Places of secrets in a content, of which each takes memory. Many secrets that contain each other stand
in as many places at once."""
_LEAST: Final = 6
"""Bytes of a decoded value. A value that is mostly escapes is found in its usual forms only."""
# Each alternative begins with one certain character: then what begins none is skipped five times as
# fast, while no other thread runs. The possessive `++` keeps runs of one character linear.
_ESCAPE: Final = re.compile(
    rb"%(?:25)*(?:(?P<percent>[0-9A-Fa-f]{2})|[uU](?P<percent_u>[0-9A-Fa-f]{4}))"
    rb"|\\++(?:u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\++u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    rb"|u(?P<unit>[0-9A-Fa-f]{4})"
    rb"|[ux]\{0*+(?P<braced>[0-9A-Fa-f]{1,6})\}"
    rb"|U(?P<long>[0-9A-Fa-f]{8})"
    rb"|[xX](?P<byte>[0-9A-Fa-f]{2})"
    rb"|(?P<octal>[0-3][0-7]{2})"
    rb"|(?P<white>[nrt])"
    # Any other backslash stands before the character that it escapes.
    rb"|)"
    rb"|&(?:amp;)*(?:(?P<name>[A-Za-z]{2,24});|(?P<old>lt|gt|quot|amp)"
    rb"|\#0*+(?P<decimal>[0-9]{1,7});?|\#[xX]0*+(?P<hex>[0-9A-Fa-f]{1,6});?)"
    # Quoted-printable (RFC 2045, section 6.7): of ASCII only this is escaped, and lines are broken.
    rb"|=(?P<quoted>3D|\r?\n)"
    rb"|\x1b\([BJ]"  # ISO-2022-JP goes back to ASCII, whatever it was
)
_WHITE: Final = re.compile(rb"[ +\t\r\n\0]+")
"""What is left out before a search, of the content and of values: lines may be broken anywhere, as in
Base64 of 76 columns (RFC 2045, section 6.8), a form has + for a space, and ASCII in UTF-16 has NULs."""
_IS_WHITE: Final = b" +\t\r\n\0"
_WHITE_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}

_FEW: Final = 64
"""Forms that are looked for one by one."""
_WORD_BYTES: Final = 8

_Range = tuple[int, int]


class Mask:
    """Replaces values in whatever form a service sends them back.

    Recognised are the value itself and what percent-encoding, forms, JSON, HTML, quoted-printable and
    strings of programs (`\\x41`, `\\101`, `\\u{41}`) make of it, also mixed or escaped twice; Base64 and
    Base64url at any offset, so that a longer text that contains the value is recognised; hexadecimal; lists
    of bytes; UTF-16 and UTF-32; each also broken into lines. A service that wants to reveal a secret
    that it was sent can use another form: this is for services that echo.
    """

    def __init__(self, values: Iterable[str]) -> None:
        ordered = sorted(set(values), key=len, reverse=True)
        self._decoded = list(dict.fromkeys(form for value in ordered for form in _decoded(value)))
        self._big, self._little = (
            [value.encode(f"{form}-{order}") for value in ordered for form in ("utf-16", "utf-32")]
            for order in ("be", "le")
        )
        self._exact = list(dict.fromkeys(form for value in ordered for form in _exact(value)))
        self._lower = list(dict.fromkeys(value.lower().encode() for value in ordered))

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._exact)

    def bytes(self, content: bytes) -> bytes:
        if self._exact:
            # All are found before one is replaced: to replace a value that overlaps another one
            # would leave the rest of that.
            ranges = [
                *_find_occurrences(content, self._exact),
                *_find_wide(content, self._big, self._little),
            ]
            ranges += _find_escaped(content, self._decoded)
            content = _masked(content, ranges)
        return content

    def text(self, content: str) -> str:
        masked = self.bytes(content.encode("utf-8", "surrogateescape"))
        return masked.decode("utf-8", "surrogateescape")

    def latin(self, content: str) -> str:
        """Mask a header, whose characters stand for one byte each."""
        return self.bytes(content.encode("latin-1")).decode("latin-1")

    def name(self, content: str) -> str:
        """Mask the name of a header, which is in lower case, whatever it was."""
        raw = content.encode("latin-1")
        return self.latin(_masked(raw, _find_occurrences(raw, self._lower)).decode("latin-1"))


def _find_wide(content: bytes, big: Sequence[bytes], little: Sequence[bytes]) -> set[_Range]:
    """Return where these forms stand in which every character has several bytes.

    With a NUL before it, a little-endian text of ASCII seems to be a big-endian one that begins with
    this NUL. One of both is enough; with both, the text around would lose a byte.
    """
    ranges = set(_find_occurrences(content, big))
    for first, last in _find_occurrences(content, little):
        if ranges.isdisjoint((first - nuls, last - nuls) for nuls in (1, 3)):
            ranges.add((first, last))
    return ranges


def _exact(value: str) -> Iterator[bytes]:
    """Yield forms that are found as they are."""
    raw = value.encode()
    every = "".join(f"%{byte:02x}" for byte in raw)
    for percent in (every, every.upper(), quote(value, safe=""), quote_plus(value), quote(value)):
        yield percent.encode()
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode()
    yield html.escape(value).encode()
    yield raw


def _decoded(value: str) -> Iterator[bytes]:
    """Yield what decoding makes of each form that may be escaped, if it is long enough."""
    raw = value.encode()
    quoted = json.dumps(value)[1:-1].encode()
    escaped = [raw]
    if all(ord(character) < 256 for character in value):
        escaped.append(value.encode("latin-1"))
    forms = [raw, *(_decode(form)[0] for form in dict.fromkeys(escaped))]
    forms += [raw.hex().encode(), raw.hex().upper().encode()]
    forms += [between.join(map(str, raw)).encode() for between in (",", " ")]
    forms += [
        form for text in (raw, value.encode("utf-16-le"), quoted) for form in _base64_forms(text)
    ]
    plain = (form.translate(None, _IS_WHITE) for form in dict.fromkeys(forms))
    yield from (form for form in plain if len(form) >= _LEAST)


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


def _masked(content: bytes, ranges: Iterable[_Range]) -> bytes:
    pieces, end = bytearray(), 0
    for first, last in _merged(sorted(ranges)):
        pieces += content[end:first] + MASKED
        end = last
    return bytes(pieces + content[end:])


def _find_escaped(content: bytes, forms: Sequence[bytes]) -> list[_Range]:
    """Return where the forms stand, as they are or once decoded.

    As they are, too, because what stands before a form can seem to be an escape with its beginning.
    """
    decoded, steps = _decode(content)
    ranges = _find_decoded(content, (), forms)
    return [*ranges, *_find_decoded(decoded, steps, forms)] if steps else ranges


def _find_decoded(plain: bytes, steps: Sequence[bytes], forms: Sequence[bytes]) -> list[_Range]:
    """Return where the forms stand in a content that was decoded in these steps."""
    ranges = _merged(sorted(_find_occurrences(plain.translate(None, _IS_WHITE), forms)))
    if ranges:
        ranges = _Decoding(plain, _WHITE).before(ranges)
        for step in reversed(steps):
            ranges = _Decoding(step, _ESCAPE).before(ranges)
    return ranges


def _find_occurrences(plain: bytes, forms: Sequence[bytes]) -> Iterator[_Range]:
    """Yield where the forms stand. Raises EgressResponseError for too many places."""
    remaining = MAX_OCCURRENCES
    for form in _likely(plain, forms):
        at = plain.find(form)
        while at >= 0:
            remaining -= 1
            if remaining < 0:
                raise EgressResponseError(f"The response has more than {MAX_OCCURRENCES} secrets.")
            yield at, at + len(form)
            at = plain.find(form, at + len(form))


def _likely(content: bytes, forms: Sequence[bytes]) -> Sequence[bytes]:
    """Return those of many forms that the content may have: their first eight bytes are in it.

    All are looked for at once, so that a hundred secrets take not much longer than one.
    """
    if len(forms) <= _FEW:
        return forms
    begun: set[int] = set()
    firsts = {int.from_bytes(form[:_WORD_BYTES], sys.byteorder) for form in forms}
    for offset in range(min(_WORD_BYTES, len(content))):
        size = (len(content) - offset) // _WORD_BYTES * _WORD_BYTES
        begun |= firsts.intersection(memoryview(content)[offset : offset + size].cast("Q"))
    return [
        form
        for form in forms
        if len(form) < _WORD_BYTES or int.from_bytes(form[:_WORD_BYTES], sys.byteorder) in begun
    ]


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
    remaining = MAX_ESCAPES
    for _ in range(_PASSES):
        decoded, escapes = _ESCAPE.subn(_meaning, content, remaining + 1)
        remaining -= escapes
        if remaining < 0:
            raise _too_many()
        if decoded == content:
            break
        steps.append(content)
        content = decoded
    return content, steps


def _too_many() -> EgressResponseError:
    return EgressResponseError(f"The response has more than {MAX_ESCAPES} escapes.")


def _meaning(escape: re.Match[bytes]) -> bytes:
    """Return what an escape stands for: bytes, a character in UTF-8, or nothing."""
    kind = escape.lastgroup
    if kind is None:
        return b""
    digits = escape[kind]
    match kind:
        case "percent" | "byte":
            return bytes.fromhex(digits.decode())
        case "octal":
            return bytes([int(digits, 8)])
        case "low":
            units = bytes.fromhex((escape["high"] + digits).decode())
            return units.decode("utf-16-be").encode()
        case "name" | "old":
            character = html5.get(f"{digits.decode()};")
            return escape[0] if character is None else character.encode()
        case "white":
            return _WHITE_LETTERS[digits]
        case "quoted":
            return b"=" if digits == b"3D" else b""
        case _:
            number = int(digits, 10 if kind == "decimal" else 16)
            return chr(min(number, 0x10FFFF)).encode("utf-8", "surrogatepass")


def _nothing(white: re.Match[bytes]) -> bytes:
    return b""


class _Decoding:
    """Where the escapes of a content stood before it was decoded, and where their meanings are.

    Raises EgressResponseError if there are too many.
    """

    def __init__(self, content: bytes, escapes: re.Pattern[bytes]) -> None:
        self._is_white = escapes is _WHITE
        meaning = _nothing if self._is_white else _meaning
        self._starts, self._ends = array("q"), array("q")
        self._firsts, self._lasts = array("q"), array("q")
        shorter = 0
        for number, escape in enumerate(escapes.finditer(content)):
            if number == MAX_ESCAPES:
                raise _too_many()
            start, end = escape.span()
            first = start - shorter
            last = first + len(meaning(escape))
            shorter = end - last
            self._starts.append(start)
            self._ends.append(end)
            self._firsts.append(first)
            self._lasts.append(last)

    def before(self, ranges: Iterable[_Range]) -> list[_Range]:
        """Return where these ranges stood before."""
        return [(self._start_of(first), self._end_of(last)) for first, last in ranges]

    def _start_of(self, offset: int) -> int:
        """Return where the byte at an offset began, with the backslashes before it."""
        at = bisect_right(self._firsts, offset) - 1
        if at < 0:
            return offset
        if offset < self._lasts[at] or (offset == self._firsts[at] and not self._is_white):
            return self._starts[at]
        return self._ends[at] + offset - self._lasts[at]

    def _end_of(self, offset: int) -> int:
        """Return where the byte before an offset ended."""
        at = bisect_right(self._firsts, offset - 1) - 1
        if at < 0:
            return offset
        return self._ends[at] + max(0, offset - self._lasts[at])
