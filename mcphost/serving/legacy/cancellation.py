"""Handle notifications from clients of sessions; cancel a request on the process that runs it
(spec: basic/utilities/cancellation).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson

from mcphost.calls import session_calls
from mcphost.feed.loop import ChangeNews
from mcphost.protocol.legacy.opening import LegacyNotification
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.limits import may_notify

T = TypeVar("T")

Cancel = Callable[[], None]


class Cancellations:
    """The session requests that this process is serving. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: dict[str, Cancel] = {}
        self._of_session: dict[UUID, set[str]] = {}

    def begin(self, session: UUID, name: str, cancel: Cancel) -> None:
        """Call `cancel` (at most once) if the client cancels the request of this name, until
        `over`."""
        self._loop = asyncio.get_running_loop()
        self._under_way[name] = cancel
        self._of_session.setdefault(session, set()).add(name)

    def over(self, session: UUID, name: str, cancel: Cancel) -> None:
        """Forget the request whose `cancel` was given to `begin`: it is over."""
        names = self._of_session.get(session, set())
        if self._under_way.get(name, cancel) == cancel:  # not a later request's
            self._under_way.pop(name, None)
            names.discard(name)
        if not names:
            self._of_session.pop(session, None)

    def is_under_way(self, session: UUID, request: str | int) -> bool:
        """Whether this process is serving a request with that id."""
        return name_of(session, request) in self._under_way

    def any_of(self, session: UUID) -> bool:
        """Whether this process is serving any request of the session. From any thread."""
        return session in self._of_session

    async def cancel(self, session: ClientSession, request: str | int) -> None:
        """Cancel the request in this process, or notify the process that serves it.

        Notifications are limited per minute, for each session and each caller. Does nothing if the
        request is over.
        """
        name = name_of(session.id, request)
        if not self._cancel(name) and may_notify(session.id.hex, session.holder):
            await in_database(session_calls.cancel, session.id, session.tenant, name)

    def on_change(self, news: ChangeNews) -> None:
        """Cancel a request, as another process was asked to. From the change log's thread."""
        self._call_soon(self._cancel, news.object_id)

    def ended(self, news: ChangeNews) -> None:
        """Cancel all requests of a session that has ended. From the change log's thread."""
        self._call_soon(self._end, UUID(news.object_id))

    def _call_soon(self, action: Callable[[T], object], about: T) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and its requests with it
                self._loop.call_soon_threadsafe(action, about)

    def _end(self, session: UUID) -> None:
        for name in tuple(self._of_session.get(session, ())):
            self._cancel(name)

    def _cancel(self, name: str) -> bool:
        cancel = self._under_way.pop(name, None)
        if cancel is not None:
            cancel()
        return cancel is not None


def name_of(session: UUID, request: str | int) -> str:
    """A short name for a request of a session. The client's request id may be of any length."""
    return blake2b(session.bytes + orjson.dumps(request), digest_size=16).hexdigest()


cancellations = Cancellations()


Taker = Callable[[ClientSession, Mapping[str, Any]], Awaitable[None]]


async def take(session: ClientSession, notification: LegacyNotification) -> None:
    """Handle a notification. Unknown methods are ignored."""
    taker = _TAKERS.get(notification.method)
    if taker is not None:
        await taker(session, notification.params)


async def _cancelled(session: ClientSession, params: Mapping[str, Any]) -> None:
    request = params.get("requestId")
    if type(request) is str or type(request) is int:
        await cancellations.cancel(session, request)


_TAKERS: Final[Mapping[str, Taker]] = {
    "notifications/cancelled": _cancelled,
}
