"""The messages between this process and a worker: JSON behind its length, in both directions."""

from typing import Any, Final

import orjson

HEAD: Final = 4
MAX_FRAME: Final = 4 * 1024 * 1024
"""The largest message in bytes that either side reads."""


class BrokenFrameError(Exception):
    """A message is too large, or not what this protocol has."""


def frame(message: dict[str, Any]) -> bytes:
    """Encode a message. Raises BrokenFrameError for one that is too large or not JSON."""
    try:
        written = orjson.dumps(message)
    except TypeError as error:
        raise BrokenFrameError(str(error)) from None
    if len(written) > MAX_FRAME:
        raise BrokenFrameError(f"{len(written)} bytes are more than {MAX_FRAME}")
    return len(written).to_bytes(HEAD) + written


def length_of(head: bytes) -> int:
    """Return the length of the message behind this head. Raises BrokenFrameError."""
    length = int.from_bytes(head)
    if length > MAX_FRAME:
        raise BrokenFrameError(f"{length} bytes are more than {MAX_FRAME}")
    return length


def message_of(written: bytes) -> dict[str, Any]:
    """Decode a message. Raises BrokenFrameError."""
    try:
        message = orjson.loads(written)
    except orjson.JSONDecodeError:
        raise BrokenFrameError("a message is not JSON") from None
    if not isinstance(message, dict):
        raise BrokenFrameError("a message is not an object")
    return message
