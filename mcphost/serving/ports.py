"""The ports for outgoing messages, implemented by the transport that holds the connection."""

from typing import Protocol


class EventStream(Protocol):
    """The event stream of one request.

    `send` takes one encoded JSON-RPC message, returns at once and never raises. Messages after the
    final response, or to a disconnected client, are dropped.
    """

    def send(self, message: bytes) -> None: ...

    @property
    def closed(self) -> bool: ...


class NoStream:
    """The stream of rounds that run without a request, such as those of tasks."""

    closed = False

    def send(self, message: bytes) -> None:
        """Drop the message."""


class Reader(Protocol):
    """One HTTP response that shows a stream of a session, whose messages are stored as rows first.

    All methods return at once and never raise.
    """

    def write(self, event_id: str, message: bytes) -> None:
        """Show one message under its id. An empty one only announces that the stream has begun."""

    def end(self, retry_ms: int | None = None) -> None:
        """End the response; with `retry_ms` the stream continues, and the client should reconnect."""

    @property
    def closed(self) -> bool: ...


class LongLivedStream(EventStream, Protocol):
    """A stream for notifications that stays open until the client closes it.

    A message that is already waiting to be sent, because the client reads slowly, is not queued
    again.
    """

    async def stay(self) -> None:
        """Wait until `end_stay` is called. When the client disconnects, the task is cancelled."""

    def end_stay(self) -> None:
        """Make `stay` return, so that the request gets its result. A second call does nothing."""
