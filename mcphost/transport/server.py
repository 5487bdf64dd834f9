"""uvicorn, with limits on the time a client may take to send a request and to take the answer."""

import asyncio
from enum import Enum
from typing import Any, NamedTuple, cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from mcphost.transport.leaving import Leave, QuietServer

LEAVE = Leave()
HEADER_BYTES = 64 * 1024
"""How much may come of headers, or trailers, before they are complete: the parser has no limit, and
puts each part to those before by copying them all."""


class Patience(NamedTuple):
    """For how many seconds we wait for headers, for a body, for a reader that takes nothing, and
    for the next request on a connection."""

    header_seconds: float = 10.0
    body_seconds: float = 40.0
    stalled_seconds: float = 30.0
    idle_seconds: int = 75


class Cork:
    """A transport that sends what is written in one turn of the event loop as one write.

    uvicorn writes a response's headers and its body apart: two system calls, and two packets.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._written = 0

    @property
    def taken(self) -> int:
        """How many bytes have left this process."""
        return self._written - self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def flush(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            data = b"".join(held)
            self._written += len(data)
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Awaited(Enum):
    """What of a request has not arrived yet."""

    HEADERS = "headers"
    BODY = "body"


class PatientHttpProtocol(HttpToolsProtocol):
    """Closes a connection that keeps us waiting, and writes less often.

    uvicorn itself waits for ever for the headers of a connection's first request, for the rest of
    headers or of a body half sent, and for a reader that takes nothing. The endpoint has a limit of
    its own for bodies, which answers; the one here comes later and is for those that nobody reads.
    """

    header_seconds, body_seconds, stalled_seconds, idle_seconds = Patience()

    # Beside uvicorn's own attributes there is no room for ours in a dictionary that objects share.
    __slots__ = ("_awaited", "_cork", "_deadline", "_pending", "_stalled", "_steps", "_watched")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._awaited: Awaited | None = Awaited.HEADERS
        self._watched: Awaited | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._steps = 0
        self._pending = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._cork = Cork(transport, self.loop)
        self.transport = cast("asyncio.Transport", self._cork)
        self._watch()

    def data_received(self, data: bytes) -> None:
        steps = self._steps
        super().data_received(data)
        self._pending = 0 if self._steps != steps else self._pending + len(data)
        if self._pending > HEADER_BYTES:
            self._refuse()
        if self._awaited is None and self._is_idle():
            self._awaited = Awaited.HEADERS
        if self._awaited is not self._watched:
            self._watch()

    def on_message_begin(self) -> None:
        self._awaited = Awaited.HEADERS
        self._steps += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._awaited = Awaited.BODY
        self._steps += 1
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._steps += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._awaited = None
        self._steps += 1
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._awaited = None
        self._watch()
        _cancel(self._stalled)
        super().connection_lost(exc)

    @property
    def fresh(self) -> bool:
        """Whether nothing has come yet."""
        return self.scope is None

    @property
    def busy(self) -> bool:
        """Whether something of a request has come that has not been answered."""
        cycle: RequestResponseCycle | None = self.cycle
        begun = not self.fresh and (cycle is None or cycle.scope is not self.scope)
        return begun or not self._all_answered()

    def answer_last(self) -> None:
        """Close when what was asked has been answered."""
        if not self._all_answered():
            self.cycle.keep_alive = False

    def _refuse(self) -> None:
        """Headers that are too large, or trailers, whose request may have been answered already."""
        if self._awaited is Awaited.HEADERS and self._all_answered():
            self.send_400_response("The headers are too large.")
        else:
            self.transport.close()

    def _is_idle(self) -> bool:
        """Whether what came, such as an empty line, stopped uvicorn's timer and began nothing."""
        return self.timeout_keep_alive_task is None and self._all_answered()

    def _all_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _watch(self) -> None:
        """One deadline for headers, from their first byte (the first: from the connection), and
        one for the body, from their last."""
        _cancel(self._deadline)
        self._deadline = None  # it would keep what it was to call
        self._watched = self._awaited
        if self._awaited is not None:
            of_body = self._awaited is Awaited.BODY
            seconds = self.body_seconds if of_body else self.header_seconds
            self._deadline = self.loop.call_later(seconds, self._be_late)

    def _be_late(self) -> None:
        if self.pipeline:  # it is we who do not read on, until what came before is answered
            self._watch()
        else:
            self.transport.close()

    def _watch_reader(self) -> None:
        self._stalled = self.loop.call_later(
            self.stalled_seconds, self._look_at_reader, self._cork.taken
        )

    def _look_at_reader(self, taken: int) -> None:
        """Cut a reader that has taken nothing since: closing would wait for it for ever."""
        if self._cork.taken > taken:
            self._watch_reader()
        else:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def protocol_with(patience: Patience) -> type[PatientHttpProtocol]:
    """The HTTP protocol class with its limits set; uvicorn makes one instance per connection."""
    return type("Http", (PatientHttpProtocol,), patience._asdict())


def build(
    application: Any,
    host: str,
    port: int,
    patience: Patience,
    leave: Leave = LEAVE,
    proxies: str = "",
) -> QuietServer:
    """One uvicorn process over `application`, quiet where we log ourselves.

    `proxies` names those whose `X-Forwarded-*` headers are believed (addresses or networks, with
    commas between them). Nobody's are by default: a client could say any address it likes.
    """
    config = Config(
        application,
        host=host,
        port=port,
        http=protocol_with(patience),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies or None,
        date_header=True,
        timeout_keep_alive=patience.idle_seconds,
    )
    return QuietServer(config, leave)
