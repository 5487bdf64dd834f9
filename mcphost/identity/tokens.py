"""The text of a bearer token: `mcph_<id>_<secret>_<checksum>`.

Why these parts and lengths, all in base62, so that a double click selects the whole token and no
encoding touches it:

- the prefix lets secret scanners find leaked tokens;
- the id (12 characters, 71 bits) names the token in records and finds its row; with so many bits,
  ids do not collide and cannot be enumerated, though they are not secret;
- the secret is 32 bytes (43 characters): a plain SHA-256 is enough to store it, because a secret
  that cannot be searched needs no slow hash;
- the checksum is CRC-32 (6 characters) of everything before it, as in other services' tokens: a
  mistyped, cut or invented token is refused without a query.

No I/O here: randomness is an argument.
"""

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

PREFIX = "mcph"
ID_LENGTH = 12
SECRET_BYTES = 32
SECRET_LENGTH = 43
CHECKSUM_LENGTH = 6
LENGTH = len(PREFIX) + ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH + 3

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PATTERN = re.compile(
    rf"{PREFIX}_[0-9A-Za-z]{{{ID_LENGTH}}}_[0-9A-Za-z]{{{SECRET_LENGTH}}}"
    rf"_[0-9A-Za-z]{{{CHECKSUM_LENGTH}}}"
)
_ID = slice(len(PREFIX) + 1, len(PREFIX) + 1 + ID_LENGTH)
_BODY = slice(LENGTH - CHECKSUM_LENGTH - 1)
_CHECKSUM = slice(LENGTH - CHECKSUM_LENGTH, LENGTH)
# Every request's token has its checksum computed, so two digits are looked up at a time.
_PAIRS = tuple(first + second for first in _DIGITS for second in _DIGITS)
# More than the id needs, so that the remainder is uniform to one part in 2**56.
_ID_BYTES = 16


class ParsedToken(NamedTuple):
    """A well-formed token: its public id and the SHA-256 of the whole text."""

    id: str
    digest: bytes


def new(random: Callable[[int], bytes]) -> str:
    """Return the text of a new token. `random(n)` returns n unpredictable bytes."""
    token_id = _base62(int.from_bytes(random(_ID_BYTES)) % 62**ID_LENGTH, ID_LENGTH)
    secret = _base62(int.from_bytes(random(SECRET_BYTES)), SECRET_LENGTH)
    body = f"{PREFIX}_{token_id}_{secret}"
    return f"{body}_{_checksum(body.encode('ascii'))}"


def parse(text: str) -> ParsedToken | None:
    """Parse a bearer credential; None if it is not one of ours or its checksum is wrong."""
    if _PATTERN.fullmatch(text) is None:
        return None
    data = text.encode("ascii")
    if _checksum(data[_BODY]) != text[_CHECKSUM]:
        return None
    return ParsedToken(text[_ID], hashlib.sha256(data).digest())


def digest(text: str) -> bytes:
    """Return what is stored of a token: SHA-256 of its whole text."""
    return hashlib.sha256(text.encode("ascii")).digest()


def _checksum(body: bytes) -> str:
    crc = zlib.crc32(body)
    high, low = divmod(crc, 62**2)
    high, middle = divmod(high, 62**2)
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
