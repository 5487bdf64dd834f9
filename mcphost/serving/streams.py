"""The port through which a call's notifications leave, handed down by whoever holds the connection."""

from typing import Protocol


class Stream(Protocol):
    """The event stream of one originating request, as the calling side sees it.

    `send` takes one encoded JSON-RPC message, returns at once and never raises: what is sent after
    the final response, or to a client that has gone, is dropped.
    """

    def send(self, message: bytes) -> None: ...

    @property
    def closed(self) -> bool: ...
