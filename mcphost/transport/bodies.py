"""Reading a request's body within its limits of size and time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mcphost.protocol.errors import REQUEST_TIMEOUT, TOO_LARGE, ProtocolError
from mcphost.runtime.begun import Begun

Receive = Callable[[], Coroutine[Any, Any, dict[str, Any]]]


class ClientGoneError(Exception):
    """The client went away before its request was whole."""


async def read_body(receive: Receive, limit: int, seconds: float) -> tuple[bytes, bool]:
    """The whole body, and whether it had to be waited for.

    Raises ProtocolError (TOO_LARGE past `limit` bytes, REQUEST_TIMEOUT past `seconds`), and ClientGoneError.
    """
    reading = Begun(_read(receive, limit))
    if reading.over:  # it had arrived with the headers, as most do: no timer is needed
        return reading.value, False
    try:
        async with asyncio.timeout(seconds):
            return await reading, True
    except TimeoutError:
        message = f"The body did not arrive within {seconds:g} seconds"
        raise ProtocolError(REQUEST_TIMEOUT, message) from None


async def _read(receive: Receive, limit: int) -> bytes:
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
