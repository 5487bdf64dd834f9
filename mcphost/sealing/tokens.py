"""Sealing: opaque tokens that are accepted back only if this platform issued them and they are
unchanged.

A token is `mcps1.<key id>.<body>`, where the body is the canonical unpadded base64url of
`r ‖ AES-256-GCM(one-use key, nonce 0, payload)`:

- `r` is 24 random bytes, new for every token;
- the one-use key is HKDF-SHA256(ring key, salt = the tenant's secret salt, info = purpose ‖ tenant
  UUID ‖ r). The last two have a fixed length, so different (purpose, tenant, r) never give the same
  info. Without the tenant's salt no token of the tenant can be opened any more, even with the ring
  key;
- the nonce is twelve zero bytes. A nonce must not repeat *under one key*, and each key encrypts one
  payload. The randomness that would make a nonce unique is in the key, where 192 bits of it make a
  repetition impossible in practice. A nonce derived from the same `r` would add nothing;
- prefix, key id, tenant, purpose and context are the additional authenticated data. The context is
  what the token belongs to, such as its row: with another context, opening fails as not authentic.

Nothing here does I/O: expiry is part of the payload, and randomness is an argument. Every failure
is a `SealError`; its text never gives the reason, its `reason` is for the log.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PREFIX: Final = "mcps1."
RANDOM_BYTES: Final = 24
KEY_BYTES: Final = 32
SALT_BYTES: Final = 32
STATE_STEP: Final = 512
TEXT: Final = "the token is not valid"

_TAG_BYTES = 16
_NONCE = bytes(12)
_SHA256 = SHA256()
_KEY_ID = re.compile(r"[a-z0-9]{1,16}")
_HEAD = re.compile(rf"{re.escape(PREFIX)}({_KEY_ID.pattern})\.")


class Purpose(StrEnum):
    """What a token is for. A token of one purpose never opens as another."""

    STATE = "state"
    SESSION = "session"
    REQUEST_ID = "request-id"
    EVENT_ID = "event-id"
    CURSOR = "cursor"
    LINK = "link"
    ROW = "row"
    TRIAL = "trial"


LIMITS: Final[Mapping[Purpose, int]] = MappingProxyType(
    {
        Purpose.STATE: 64 * 1024,
        Purpose.SESSION: 512,
        Purpose.REQUEST_ID: 256,
        Purpose.EVENT_ID: 256,
        Purpose.CURSOR: 4 * 1024,
        Purpose.LINK: 1024,
        Purpose.ROW: 16 * 1024 * 1024,
        Purpose.TRIAL: 512 * 1024,
    }
)
"""The longest token of each purpose, in characters, when sealing and when opening."""


class Reason(StrEnum):
    """Why a token was refused. For the log and the record, never for the client."""

    TOO_LARGE = "too-large"
    MALFORMED = "malformed"
    NOT_CANONICAL = "not-canonical"
    UNKNOWN_KEY = "unknown-key"
    NOT_AUTHENTIC = "not-authentic"  # changed, or of another purpose, tenant, salt or key
    BAD_PADDING = "bad-padding"
    BAD_SALT = "bad-salt"  # none, or destroyed
    BAD_RANDOMNESS = "bad-randomness"


class SealError(Exception):
    """A payload could not be sealed or a token could not be opened. `str()` is the same for all
    reasons."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(TEXT)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Key:
    """A ring key: a short public id and 32 secret bytes. Raises ValueError if either is invalid."""

    id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _KEY_ID.fullmatch(self.id):
            raise ValueError("a key id is 1 to 16 lower case letters and digits")
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"a key is {KEY_BYTES} bytes long")


@dataclass(frozen=True, slots=True)
class Ring:
    """The key ring: the active key seals; the keys in `opening` (by id, including the active one)
    open.

    Raises ValueError if the mapping contradicts the keys in it.
    """

    active: Key
    opening: Mapping[str, Key]

    def __post_init__(self) -> None:
        if self.opening.get(self.active.id) != self.active:
            raise ValueError("the active key is not among those that open")
        if any(key_id != key.id for key_id, key in self.opening.items()):
            raise ValueError("a key is kept under another id than its own")
        object.__setattr__(self, "opening", MappingProxyType(dict(self.opening)))


@dataclass(frozen=True, slots=True)
class Binding:
    """What a token is bound to: purpose, tenant, the tenant's secret salt (32 bytes), and a context
    of any bytes. All must be the same when it is opened."""

    purpose: Purpose
    tenant: UUID
    salt: bytes = field(repr=False)
    context: bytes = b""


def seal(
    payload: bytes, binding: Binding, key: Key, random24: bytes, limit: int | None = None
) -> str:
    """Seal `payload` under `key` into an ASCII token that is safe in headers and URLs.

    `random24` must be 24 random bytes never used before. `limit` is the longest allowed token in
    characters, by default that of the purpose. Raises SealError.
    """
    if len(random24) != RANDOM_BYTES:
        raise SealError(Reason.BAD_RANDOMNESS)
    cipher = _cipher(binding, key, random24)
    plaintext = payload
    if binding.purpose is Purpose.STATE:
        # One marker byte, then zeros up to a multiple of `STATE_STEP`, to hide the length.
        plaintext += b"\x80"
        plaintext += bytes(-len(plaintext) % STATE_STEP)
    sealed = cipher.encrypt(_NONCE, plaintext, _authenticated(binding, key))
    token = f"{PREFIX}{key.id}.{_encode(random24 + sealed)}"
    if len(token) > _limit(binding, limit):
        raise SealError(Reason.TOO_LARGE)
    return token


def unseal(token: str, binding: Binding, ring: Ring, limit: int | None = None) -> bytes:
    """Return the payload of a token that a key of the ring sealed for exactly this binding.

    `limit` is as in `seal`. Raises SealError for everything else.
    """
    if len(token) > _limit(binding, limit):
        raise SealError(Reason.TOO_LARGE)
    key = ring.opening.get(key_id(token))
    if key is None:
        raise SealError(Reason.UNKNOWN_KEY)
    raw = _decode(token[len(PREFIX) + len(key.id) + 1 :])
    cipher = _cipher(binding, key, raw[:RANDOM_BYTES])
    try:
        plaintext = cipher.decrypt(_NONCE, raw[RANDOM_BYTES:], _authenticated(binding, key))
    except InvalidTag:
        plaintext = _before_contexts(cipher, raw, binding, key)
    if binding.purpose is not Purpose.STATE:
        return plaintext
    payload = plaintext.rstrip(b"\0")
    if len(plaintext) % STATE_STEP or not payload.endswith(b"\x80"):
        raise SealError(Reason.BAD_PADDING)
    return payload[:-1]


def key_id(token: str) -> str:
    """Return the key id in `token`. It is not proved until the token is opened.

    Raises SealError if the token does not have our format.
    """
    match = _HEAD.match(token)
    if match is None:
        raise SealError(Reason.MALFORMED)
    return match[1]


def _limit(binding: Binding, limit: int | None) -> int:
    return LIMITS[binding.purpose] if limit is None else limit


def _cipher(binding: Binding, key: Key, random24: bytes) -> AESGCM:
    # HKDF accepts any salt, even an empty one: with a destroyed salt nothing must seal or open.
    if len(binding.salt) != SALT_BYTES:
        raise SealError(Reason.BAD_SALT)
    info = binding.purpose.encode() + binding.tenant.bytes + random24
    return AESGCM(HKDF(_SHA256, KEY_BYTES, binding.salt, info).derive(key.secret))


def _authenticated(binding: Binding, key: Key) -> bytes:
    # The dot ends the key id, the tenant has a fixed length, and no purpose has a zero byte, so
    # these bytes are unambiguous.
    head = f"{PREFIX}{key.id}.".encode() + binding.tenant.bytes + binding.purpose.encode()
    return head + b"\0" + binding.context if binding.context else head


def _before_contexts(cipher: AESGCM, raw: bytes, binding: Binding, key: Key) -> bytes:
    """Open a token of the earlier format, in which the payload begins with the context."""
    if not binding.context:
        raise SealError(Reason.NOT_AUTHENTIC)
    plain = replace(binding, context=b"")
    try:
        plaintext = cipher.decrypt(_NONCE, raw[RANDOM_BYTES:], _authenticated(plain, key))
    except InvalidTag:
        raise SealError(Reason.NOT_AUTHENTIC) from None
    if not plaintext.startswith(binding.context):
        raise SealError(Reason.NOT_AUTHENTIC)
    return plaintext[len(binding.context) :]


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(body: str) -> bytes:
    """Decode strict base64url. The library skips unknown characters, so only a body that encodes
    back to itself is accepted."""
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except ValueError:
        raise SealError(Reason.MALFORMED) from None
    if _encode(raw) != body:
        raise SealError(Reason.NOT_CANONICAL)
    if len(raw) < RANDOM_BYTES + _TAG_BYTES:
        raise SealError(Reason.MALFORMED)
    return raw
