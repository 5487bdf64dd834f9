"""Canonical JSON: equal values have equal digests."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import orjson


def digest(value: Any) -> str:
    """Return the SHA-256 of the value as JSON with sorted keys, in 43 characters of base64url.

    Raises ValueError for values without a canonical form: integers beyond 64 bits, lone surrogates.
    """
    try:
        plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return urlsafe_b64encode(sha256(plain).digest()).rstrip(b"=").decode()
