"""Reading responses within limits. What is too large is refused, never cut."""

import asyncio
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import httpcore2

from mcphost.egress.errors import EgressResponseError
from mcphost.egress.messages import ReceivedResponse

_GZIP: Final = 31
_ZLIB: Final = 15
_RAW_DEFLATE: Final = -15
MAX_MEMBERS: Final = 256
"""Parts of a compressed body (RFC 1952, section 2.2). Even an empty one takes 20 bytes,
and costs far more to decode than its size suggests."""
MAX_HEADERS: Final = 256
"""Each is searched for secrets, which costs more than its few bytes."""
MAX_PIECES: Final = 16 * 1024
"""Chunks (RFC 9112, section 7.1) or packets of a body. One of a few bytes costs as much as a large one."""
PIECES_AT_ONCE: Final = 32
"""Pieces that came together may be read without a pause. After these, other calls go on."""
_WINDOWS: Final = {"identity": None, "gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class BodyLimit(NamedTuple):
    """How many bytes a body may have, and by how many more reading may exceed it, for masking to shrink the body."""

    stated: int
    room: int = 0

    def is_passed(self, size: int) -> bool:
        return size > self.stated + self.room


def header_text(headers: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Return headers as text, with names in lower case. Raises EgressResponseError for too many."""
    if len(headers) > MAX_HEADERS:
        raise EgressResponseError(f"The response has more than {MAX_HEADERS} headers.")
    return tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers
    )


async def read_body(
    response: httpcore2.Response, head: ReceivedResponse, limit: BodyLimit, *, has_body: bool
) -> bytes:
    """Read and decompress a body within the limit, as sent and as decompressed.

    A response without a body (to HEAD, or a 304) may state the length that a response to GET would have
    (RFC 9110, section 8.6).
    """
    length = head.header("content-length") or ""
    if length and head.header("transfer-encoding") is not None:
        raise EgressResponseError(
            "The response says in two ways where it ends: Content-Length and Transfer-Encoding."
        )
    if has_body and length.isdigit() and limit.is_passed(int(length)):
        raise too_large(limit.stated)
    coding = (head.header("content-encoding") or "identity").strip().lower()
    if coding not in _WINDOWS:
        raise EgressResponseError("The response has a Content-Encoding other than gzip or deflate.")
    decoder = BodyDecoder(limit, _WINDOWS[coding])
    received = pieces = 0
    async for part in response.aiter_stream():
        received += len(part)
        pieces += 1
        if pieces > MAX_PIECES:
            raise EgressResponseError(f"The response comes in more than {MAX_PIECES} pieces.")
        if not pieces % PIECES_AT_ONCE:
            await asyncio.sleep(0)
        if limit.is_passed(received):
            raise too_large(limit.stated)
        decoder.feed(part)
    return decoder.finish()


def too_large(limit: int) -> EgressResponseError:
    return EgressResponseError(f"The body of the response has more than {limit} bytes.")


class BodyDecoder:
    """Collects a body, and stops before more than `limit` is decompressed.

    `bits` is the window of zlib, or None for a body that is not compressed.
    """

    def __init__(self, limit: BodyLimit, bits: int | None) -> None:
        self._limit = limit
        self._bits = bits
        self._stream = None if bits is None else zlib.decompressobj(bits)
        self._body = bytearray()
        self._begun = False
        self._members = 1

    def feed(self, part: bytes) -> None:
        if self._stream is None:
            self._body += part
            return
        try:
            self._decompress(part)
        except zlib.error:
            raise EgressResponseError("The response is not compressed as it says.") from None

    def finish(self) -> bytes:
        """Return the whole body."""
        if self._begun and self._stream is not None and not self._stream.eof:
            raise EgressResponseError("The response ends inside its compressed content.")
        return bytes(self._body)

    def _decompress(self, part: bytes) -> None:
        if part and not self._begun:
            self._begun = True
            # Some services send deflate without the header of zlib.
            if self._bits == _ZLIB and part[0] & 0x0F != 8:
                self._bits = _RAW_DEFLATE
                self._stream = zlib.decompressobj(_RAW_DEFLATE)
        while part:
            assert self._stream is not None and self._bits is not None
            if self._stream.eof:
                self._members += 1
                if self._members > MAX_MEMBERS:
                    raise EgressResponseError("The response is compressed in too many pieces.")
                self._stream = zlib.decompressobj(self._bits)
            room = sum(self._limit) - len(self._body)
            self._body += self._stream.decompress(part, room + 1)
            if self._limit.is_passed(len(self._body)):
                raise too_large(self._limit.stated)
            part = self._stream.unconsumed_tail or self._stream.unused_data
