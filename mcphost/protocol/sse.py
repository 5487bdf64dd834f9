"""Server-sent events: the frames of a response stream (WHATWG HTML, section 9.2).

Ids are written only for revisions whose streams can be resumed; 2026-07-28 has none.
"""

import re
from typing import Final

_LINE_BREAK: Final = re.compile(rb"\r\n|\n|\r")

_COMMENT: Final = b":\n\n"


def event(data: bytes, id: str | None = None, retry_ms: int | None = None) -> bytes:
    """Encode one event that carries a message. A reader gets `data` back, with line breaks as LF.

    Raises ValueError for an `id` with a line break or NUL, which would end or void the event.
    `retry_ms` is the delay before reconnecting, should the stream break off.
    """
    head = b"" if retry_ms is None else b"retry: %d\n" % retry_ms
    if b"\n" in data or b"\r" in data:
        data = _LINE_BREAK.sub(b"\ndata: ", data)
    if id is None:
        return head + b"data: " + data + b"\n\n"
    if any(character in id for character in "\n\r\0"):
        raise ValueError("an event id holds no line breaks and no NUL")
    return head + b"id: " + id.encode() + b"\ndata: " + data + b"\n\n"


def retry(milliseconds: int) -> bytes:
    """Encode a frame that sets the delay before the client reconnects."""
    return b"retry: %d\n\n" % milliseconds


def comment() -> bytes:
    """Return a comment frame, which keeps the connection open."""
    return _COMMENT
