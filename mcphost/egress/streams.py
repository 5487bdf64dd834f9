"""A connection to a service, and what has arrived on it: no byte can become part of another response.

The library's own streams leave bytes in buffers that it does not look at before it uses a connection
again. A service that sends more than its response would so answer the next request of the tenant.
"""

import asyncio
import re
import select
import ssl
from typing import Any, Final, cast

import httpcore2

from mcphost.egress.errors import EgressResponseError

HEAD_READ: Final = 4 * 1024
"""Bytes that are read at once of what precedes a body: it is parsed without a pause."""
MAX_HEAD_READS: Final = 512
"""Interim responses (RFC 9110, section 15.2) and headers may come in any number of packets."""
MAX_HEAD_BYTES: Final = 48 * 1024
BUFFER: Final = 64 * 1024
"""Bytes that wait to be read, before the service has to wait."""

TOO_LARGE_HEAD: Final = "The headers of the response are too large, or too much precedes them."
"""It says the same whichever limit is passed: secrets are not masked yet when one of them is."""

_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_FOLD: Final = re.compile(rb"\n[ \t]")
_INTERIM: Final = re.compile(rb"HTTP/[0-9]\.[0-9] 1[0-9][0-9]")


class ServiceStream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """A connection, which ends when something arrives that no request asked for.

    What is read after a request, until `end_head`, is limited, and parsed in small portions, so that
    other calls go on meanwhile. Raises EgressResponseError.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended = False
        self._error: Exception | None = None
        self._idle = True
        self._kept = False
        self._head = bytearray()
        self._head_reads: int | None = 0

    # The network

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._abort()
            return
        self._received += data
        self._arrived.set()
        if len(self._received) >= BUFFER and self._transport is not None:
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._ended = True
        self._arrived.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended, self._error = True, error
        self._arrived.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # The library

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if self._head_reads is not None:
            self._head_reads += 1
            if self._head_reads > MAX_HEAD_READS or len(self._head) > MAX_HEAD_BYTES:
                raise EgressResponseError(TOO_LARGE_HEAD)
            max_bytes = min(max_bytes, HEAD_READ)
        await _wait_for(self._arrived, timeout, httpcore2.ReadTimeout)
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if not data and self._error is not None:
            raise httpcore2.ReadError from self._error
        if not self._received and not self._ended:
            self._arrived.clear()
            if self._transport is not None:
                self._transport.resume_reading()
        if self._head_reads is not None:
            self._head += data
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if self._kept and self._idle and self._ended:
            raise httpcore2.ConnectionNotAvailable  # nothing was sent: the pool takes another one
        self._idle, self._head_reads = False, 0
        self._head.clear()
        if self._ended or self._transport is None:
            raise httpcore2.WriteError
        if buffer:
            self._transport.write(buffer)
            await _wait_for(self._writable, timeout, httpcore2.WriteTimeout)

    async def aclose(self) -> None:
        self._abort()
        await asyncio.sleep(0)  # the transport closes its socket meanwhile

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore2
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        stream = ServiceStream()
        try:
            async with asyncio.timeout(timeout):
                if self._ended or self._transport is None:
                    raise ConnectionResetError
                transport = await loop.start_tls(
                    self._transport, stream, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError:
            await self.aclose()
            raise httpcore2.ConnectTimeout from None
        except OSError as error:  # as are errors of TLS
            await self.aclose()
            raise httpcore2.ConnectError from error
        except BaseException:
            await self.aclose()
            raise
        if transport is None:
            raise httpcore2.ConnectError
        stream.connection_made(transport)
        return stream

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            return self._ended or bool(self._received) or self._is_ready()
        return None if self._transport is None else self._transport.get_extra_info(info)

    # The client

    def end_head(self) -> None:
        """Note that the head of the response was read. Raises EgressResponseError for a folded header."""
        self._head_reads = None
        if _is_folded(bytes(self._head)):
            raise EgressResponseError("A header of the response is folded over several lines.")

    def end_response(self, surplus: bytes) -> None:
        """Note that the response was read, and what the parser has beyond it: no other may follow."""
        self._idle = self._kept = True
        if surplus or self._received:
            self._abort()

    def _abort(self) -> None:
        self._ended = True
        self._arrived.set()
        if self._transport is not None:
            self._transport.abort()

    def _is_ready(self) -> bool:
        """Whether the socket has something that the event loop has not read yet."""
        socket = self.get_extra_info("socket")
        number = -1 if socket is None else socket.fileno()
        if number < 0:
            return True
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return bool(poll.poll(0))


async def _wait_for(event: asyncio.Event, seconds: float | None, over: type[Exception]) -> None:
    if event.is_set():
        return
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        raise over from None


def _is_folded(head: bytes) -> bool:
    """Whether a header of a response, or of an interim one before it, goes over several lines.

    User agents may read such a header as one line (RFC 9112, section 5.2), but proxies on the way may
    have read something else.
    """
    interim = True
    while interim:
        lines, *rest = _END_OF_HEAD.split(head, maxsplit=1)
        if _FOLD.search(lines):
            return True
        interim = bool(rest) and _INTERIM.match(lines) is not None
        head = rest[0] if rest else b""
    return False
