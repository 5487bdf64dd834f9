"""The ports through which messages leave, handed down by whoever holds the connection."""

from typing import Protocol


class Stream(Protocol):
    """The event stream of one originating request, as the calling side sees it.

    `send` takes one encoded JSON-RPC message, returns at once and never raises: what is sent after
    the final response, or to a client that has gone, is dropped.
    """

    def send(self, message: bytes) -> None: ...

    @property
    def closed(self) -> bool: ...


class Reader(Protocol):
    """One HTTP response that shows a stream of a session, whose messages are rows before they are
    shown. All return at once and never raise.
    """

    def write(self, event_id: str, message: bytes) -> None:
        """Show one message under its id; an empty one says only that the stream has begun."""

    def end(self, retry_ms: int | None = None) -> None:
        """End the response; `retry_ms` says when to come back for the rest, if there is one."""

    @property
    def closed(self) -> bool: ...


class StandingStream(Stream, Protocol):
    """A stream that is there to be told things, for as long as its client likes.

    A message that waits to be sent, because the client reads slowly, is not queued a second time.
    """

    async def stay(self) -> None:
        """Wait until `leave` is called. When the client hangs up, the work is cancelled."""

    def leave(self) -> None:
        """Have `stay` return, so that the request gets its answer. Harmless when it has."""
