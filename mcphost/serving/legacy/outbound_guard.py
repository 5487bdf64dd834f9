"""Check each message to a client of a session against the stream on which it is to be sent.

Also the pings that the server sends (spec: basic/utilities/ping).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final
from uuid import UUID

import orjson

from mcphost.audit.records import MESSAGE_REFUSED
from mcphost.calls.ownership import Lease
from mcphost.calls.questions import RoundQuestions
from mcphost.calls.streams import StreamRow
from mcphost.runtime.call import Principal
from mcphost.serving import request_state
from mcphost.serving.context import ClientSession
from mcphost.serving.legacy.refusal_records import refuse_soon

PREFIX: Final = "ping-"
"""The prefix of the server's ping ids. Ids of input requests are sealed tokens without it."""
BEGINNING: Final = b'{"jsonrpc":"2.0","id":"ping-'

SendMessage = Callable[[bytes], None]


def is_answer(id: str | int) -> bool:
    """Whether a response with that id answers one of the server's pings."""
    return str(id).startswith(PREFIX)


@contextmanager
def pinging(send_message: SendMessage, seconds: float, stream: UUID) -> Iterator[None]:
    """Send a ping with `send_message` every `seconds` inside the context; never if that is 0.

    On the event loop. The ping's id contains the stream's id: an id must not be used twice within a
    session (basic/index, Requests), and a session may have several streams, on any processes.
    """
    if not seconds:
        yield
        return
    pings = _Pings(send_message, seconds, stream)
    try:
        yield
    finally:
        pings.stop()


class _Pings:
    def __init__(self, send_message: SendMessage, seconds: float, stream: UUID) -> None:
        self._send_message = send_message
        self._seconds = seconds
        self._beginning = BEGINNING + f"{stream.hex}-".encode()
        self._numbers = count(1)
        self._wait()

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._ping)

    def _ping(self) -> None:
        self._send_message(b'%s%d","method":"ping"}' % (self._beginning, next(self._numbers)))
        self._wait()


NOT_ITS_STREAM: Final = "not-its-stream"
OVER: Final = "over"

_NOTIFICATION: Final = b'{"jsonrpc":"2.0","method":"notifications/'


class StoppedStreamError(Exception):
    """The guard refused a message; the exception's text is the reason."""


class Gate:
    """Checks the messages for one stream: that of the request `request`, or a GET stream."""

    __slots__ = ("_answer", "_principal", "_session")

    def __init__(
        self, session: ClientSession, principal: Principal, request: str | int | None = None
    ) -> None:
        self._session = session
        self._principal = principal
        self._answer = b""
        if request is not None:
            self._answer = b'{"jsonrpc":"2.0","id":' + orjson.dumps(request) + b","

    def says(self, message: bytes) -> bool:
        """Whether `message` may be sent apart from the response: a notification; on a GET stream
        also a ping. An empty one is allowed."""
        fits = message.startswith(_NOTIFICATION) or (
            not self._answer and message.startswith(BEGINNING)
        )
        return not message or fits or self._stop(NOT_ITS_STREAM)

    def answers(self, message: bytes) -> bool:
        """Whether `message` is a response to this stream's request. An empty one is allowed."""
        own = bool(self._answer) and message.startswith(self._answer)
        return not message or own or self._stop(NOT_ITS_STREAM)

    def asks(
        self, round_questions: RoundQuestions, lease: Lease, stream: StreamRow, *, live: bool
    ) -> None:
        """Check that input requests belong to this stream, session and caller, and the call is
        `live`.

        Raises Stopped if not.
        """
        requested_by = (round_questions.tenant, round_questions.session, round_questions.call)
        here = (stream.tenant, stream.session, lease.id)
        if requested_by != here or not self._is_bound(stream):
            self._stop(NOT_ITS_STREAM, round_questions)
            raise StoppedStreamError(NOT_ITS_STREAM)
        if not live:
            self._stop(OVER, round_questions)
            raise StoppedStreamError(OVER)

    def _is_bound(self, stream: StreamRow) -> bool:
        """Whether the stream belongs to the session, and the session to the caller."""
        session = self._session
        return (session.tenant, session.id) == (stream.tenant, stream.session) and (
            session.principal_key == request_state.principal_key(self._principal)
        )

    def _stop(self, reason: str, round_questions: RoundQuestions | None = None) -> bool:
        call = None if round_questions is None else round_questions.call
        refuse_soon(MESSAGE_REFUSED, self._session, self._principal, reason, call)
        return False
