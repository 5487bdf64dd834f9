"""JSON in one form only, so that a digest of it says whether two values are the same."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import orjson


def digest(value: Any) -> str:
    """SHA-256 over the value as JSON with sorted keys, in 43 characters of base64url.

    Raises ValueError for what JSON cannot hold in one form: integers beyond 64 bits, lone surrogates.
    """
    try:
        plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return urlsafe_b64encode(sha256(plain).digest()).rstrip(b"=").decode()
