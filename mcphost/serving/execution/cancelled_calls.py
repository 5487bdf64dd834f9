"""Refuse the requests of calls that a user cancelled, with the reason.

Which calls these are is known in memory, by the change log, so that a request that resumes a call
costs a look-up and no query. A process that has not been notified yet runs no round that claims: the
cancellation has claimed it (`calls.claims.cancel`).
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any, Final
from uuid import UUID

from django.db import Error

from mcphost.calls import cancelled
from mcphost.feed.loop import ChangeNews
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.serving.context import Turn
from mcphost.serving.database import in_database
from mcphost.serving.replies import Answered, Refused, Reply

CANCELLED: Final = "cancelled"
"""Why the state of such a call is refused, for the log and the record."""
CANCELLED_MESSAGE: Final = "This call was cancelled by an operator of the server: {}"
_REREAD_AT: Final = 10_000


class CallCancelledError(Exception):
    """The call was cancelled by a user; `reason` is why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CancelledCalls:
    """The cancelled calls whose clients may return, in memory. Read once, and again after a gap in the
    change log, and where so many were added that most of them have expired."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._changes = 0
        self._cached: frozenset[UUID] | None = None

    def surely_not(self, call: UUID) -> bool:
        """Whether the call is known not to be cancelled. Makes no query."""
        cached = self._cached
        return cached is not None and call not in cached

    def read(self) -> None:
        """Read them all, unless they are known. In a database thread."""
        if self._cached is not None:
            return
        before = self._changes
        calls = cancelled.unexpired_calls()
        with self._lock:
            if self._changes == before:  # else the next request reads them again
                self._cached = calls

    def on_change(self, news: ChangeNews) -> None:
        """A call was cancelled. From the change log's thread."""
        with self._lock:
            self._changes += 1
            cached = self._cached
            if cached is not None:
                self._cached = None if len(cached) > _REREAD_AT else cached | {UUID(news.object_id)}

    def on_gap(self) -> None:
        """Any call may have been cancelled. From the change log's thread."""
        with self._lock:
            self._changes += 1
            self._cached = None


cancelled_calls: Final = CancelledCalls()


async def reply_of(turn: Turn) -> Reply | None:
    """The reply to a request that resumes a cancelled call; None if the call is not cancelled.

    Raises ProtocolError (UNAVAILABLE) if that cannot be read now.
    """
    call = turn.call
    if cancelled_calls.surely_not(call.id):
        return None
    reason = await reason_of(call.id, call.tenant)
    return None if reason is None else reply_for(call.method, call.target, reason)


async def reason_of(call: UUID, tenant: UUID) -> str | None:
    """Why the call was cancelled, from the database. Raises ProtocolError (UNAVAILABLE)."""
    try:
        return await in_database(_reason_of, call, tenant)
    except Error:
        raise unavailable("The state of this call cannot be read now; retry later") from None


def _reason_of(call: UUID, tenant: UUID) -> str | None:
    cancelled_calls.read()
    return cancelled.reason_of(call, tenant)


def reply_for(method: str, target: str, reason: str) -> Answered | Refused:
    """What the caller of a cancelled call is told. Only tools have errors in results (spec:
    server/tools, Error Handling)."""
    text = CANCELLED_MESSAGE.format(reason)
    if method == "tools/call":
        return Answered({"content": [{"type": "text", "text": text}], "isError": True})
    data: Mapping[str, Any] | None = {"uri": target} if method == "resources/read" else None
    return Refused(ProtocolError(INTERNAL_ERROR, text, data))
