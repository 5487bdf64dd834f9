"""uvicorn, with a limit on the time a client may take to send a request's headers."""

import asyncio
import signal
from types import FrameType
from typing import Any, cast

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

GRACE_SECONDS = 20


class Cork:
    """A transport that sends what is written in one turn of the event loop as one write.

    uvicorn writes a response's headers and its body apart: two system calls, and two packets.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def flush(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class PatientHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose request headers do not arrive in time, and writes less often.

    uvicorn itself waits for ever for the headers of a connection's first request, and for the
    rest of headers half sent.
    """

    header_seconds = 10.0
    _headers_missing = True
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = cast("asyncio.Transport", Cork(transport, self.loop))
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._headers_missing or self._deadline is not None:
            self._watch_headers()

    def on_message_begin(self) -> None:
        self._headers_missing = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._headers_missing = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_missing = False
        self._watch_headers()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        """One deadline per set of headers, from its first byte (the first: from the connection)."""
        if self._headers_missing and self._deadline is None:
            self._deadline = self.loop.call_later(self.header_seconds, self.transport.close)
        elif not self._headers_missing and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class QuietServer(Server):
    """Treats SIGTERM and Ctrl-C as the ordinary way to stop: `serve` then ends with status 0.

    uvicorn would raise the signal again once it has shut down. A second Ctrl-C forces the end.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def protocol_with(header_seconds: float) -> type[PatientHttpProtocol]:
    """The HTTP protocol class with its limit set; uvicorn makes one instance per connection."""
    return type("Http", (PatientHttpProtocol,), {"header_seconds": header_seconds})


def build(application: Any, host: str, port: int, header_seconds: float) -> QuietServer:
    """One uvicorn process over `application`, quiet where we log ourselves."""
    config = Config(
        application,
        host=host,
        port=port,
        http=protocol_with(header_seconds),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return QuietServer(config)
