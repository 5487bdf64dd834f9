"""The head of an HTTP request, and reading its body within limits of size and time."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from mcphost.protocol.errors import REQUEST_TIMEOUT, TOO_LARGE, ProtocolError
from mcphost.protocol.headers import Headers
from mcphost.runtime.started_coroutine import StartedCoroutine


class HttpRequest(NamedTuple):
    """The request line and headers of an HTTP request. `slug` is the path segment in the place of
    the tenant's slug, unchecked; `began` is when the request came (`time.perf_counter`)."""

    method: str
    slug: str
    headers: Headers
    source: str
    began: float = 0.0

    @classmethod
    def from_scope(cls, scope: Mapping[str, Any], slug: str) -> "HttpRequest":
        client = scope.get("client")
        return cls(
            method=scope["method"],
            slug=slug,
            headers=Headers(scope["headers"]),
            source=client[0] if client else "",
            began=time.perf_counter(),
        )


Receive = Callable[[], Coroutine[Any, Any, dict[str, Any]]]


DISCONNECTED_REASON = "the client disconnected"
"""The message of the cancellation of a request's work, recorded as the reason."""


class ClientGoneError(Exception):
    """The client disconnected before its request was complete."""


async def read_body(receive: Receive, limit: int, seconds: float) -> tuple[bytes, bool]:
    """Read the whole body; return it, and whether it had to be waited for.

    Raises ProtocolError (TOO_LARGE beyond `limit` bytes, REQUEST_TIMEOUT after `seconds`), and
    ClientGoneError.
    """
    reading = StartedCoroutine(_read_body(receive, limit))
    if reading.over:  # the body had arrived with the headers, as usual: no timer is needed
        return reading.value, False
    try:
        async with asyncio.timeout(seconds):
            return await reading, True
    except TimeoutError:
        message = f"The body did not arrive within {seconds:g} seconds"
        raise ProtocolError(REQUEST_TIMEOUT, message) from None


async def _read_body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGoneError
        part: bytes = event.get("body", b"")
        size += len(part)
        if size > limit:
            raise ProtocolError(TOO_LARGE, f"The body is larger than {limit} bytes")
        if not event.get("more_body", False):
            return b"".join([*parts, part]) if parts else part
        parts.append(part)
