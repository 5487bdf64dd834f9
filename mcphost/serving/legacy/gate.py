"""The one way out to clients of sessions: what is to leave is held against what it is to leave on.

A request leaves only on the stream of the live call that asks it; all else that a call says is a
notification, and in the end the answer to its own request. What stands open carries notifications and
pings only.
The rest of the platform has no way to send anything else: here is where it would show.
"""

from typing import Final

import orjson

from mcphost.audit.records import MESSAGE_REFUSED
from mcphost.calls.questions import Asked
from mcphost.calls.streamed import Taking
from mcphost.calls.streams import StreamRow
from mcphost.runtime.call import Principal
from mcphost.serving import states
from mcphost.serving.incoming import Session
from mcphost.serving.legacy.pinging import BEGINNING as PING
from mcphost.serving.legacy.refusals import refuse_soon

NOT_ITS_STREAM: Final = "not-its-stream"
OVER: Final = "over"

_NOTIFICATION: Final = b'{"jsonrpc":"2.0","method":"notifications/'


class Stopped(Exception):  # noqa: N818 - a refusal that says what happened
    """A message was not let out; the message says why."""


class Gate:
    """The way out on one stream of a session: that of a request, by its id, or one that stands open."""

    def __init__(
        self, session: Session, principal: Principal, request: str | int | None = None
    ) -> None:
        self._session = session
        self._principal = principal
        self._answer = b"" if request is None else _beginning_of_answer(request)

    def says(self, message: bytes) -> bool:
        """Whether it may leave as what is said beside the answer; an empty one says nothing."""
        fits = message.startswith(_NOTIFICATION) or (not self._answer and message.startswith(PING))
        return not message or fits or self._stop(NOT_ITS_STREAM)

    def answers(self, message: bytes) -> bool:
        """Whether it may leave as the answer; without one there is nothing to leave."""
        own = bool(self._answer) and message.startswith(self._answer)
        return not message or own or self._stop(NOT_ITS_STREAM)

    def asks(self, asked: Asked, taking: Taking, stream: StreamRow, *, live: bool) -> None:
        """Let requests of a call out on its stream. Raises Stopped."""
        whose = (asked.tenant, asked.session, asked.call)
        here = (stream.tenant, stream.session, taking.call)
        if whose != here or not self._is_bound(stream):
            self._stop(NOT_ITS_STREAM, asked)
            raise Stopped(NOT_ITS_STREAM)
        if not live:
            self._stop(OVER, asked)
            raise Stopped(OVER)

    def _is_bound(self, stream: StreamRow) -> bool:
        """Whether the stream is of the session, and the session of the caller."""
        session = self._session
        return (session.tenant, session.id) == (stream.tenant, stream.session) and (
            session.who == states.who(self._principal)
        )

    def _stop(self, reason: str, asked: Asked | None = None) -> bool:
        call = None if asked is None else asked.call
        refuse_soon(MESSAGE_REFUSED, self._session, self._principal, reason, call)
        return False


def _beginning_of_answer(request: str | int) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + orjson.dumps(request) + b","
