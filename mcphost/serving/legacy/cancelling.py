"""Calling off a request of a session, on whichever process it runs (spec: basic/utilities/cancellation)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import TypeVar
from uuid import UUID

import orjson

from mcphost.calls import streamed
from mcphost.feed.loop import ChangeNews
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session
from mcphost.serving.limits import may_be_told

T = TypeVar("T")

Cancel = Callable[[], None]


class Cancellations:
    """The requests of sessions that this process serves now. For the event loop's thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: dict[str, Cancel] = {}
        self._of_session: dict[UUID, set[str]] = {}

    @contextmanager
    def possible(self, session: UUID, request: str | int, cancel: Cancel) -> Iterator[None]:
        """While in here, `cancel` is called, once, if the client calls the request off."""
        name = name_of(session, request)
        self._loop = asyncio.get_running_loop()
        self._under_way[name] = cancel
        names = self._of_session.setdefault(session, set())
        names.add(name)
        try:
            yield
        finally:
            if self._under_way.get(name, cancel) is cancel:  # not another's of the same id by now
                self._under_way.pop(name, None)
                names.discard(name)
            if not self._of_session.get(session):
                self._of_session.pop(session, None)

    def is_under_way(self, session: UUID, request: str | int) -> bool:
        """Whether a request of that id is served here now."""
        return name_of(session, request) in self._under_way

    async def call_off(self, session: Session, request: str | int) -> None:
        """Cancel the request here, or have the process do it that has it: so many of a session per
        minute. Nothing happens if it is over."""
        name = name_of(session.id, request)
        if not self._cancel(name) and await may_be_told(session.id.hex):
            await in_database(streamed.call_off, session.id, session.tenant, name)

    def heard(self, news: ChangeNews) -> None:
        """Another process was told to call a request off. From the feed's thread."""
        self._have_done(self._cancel, news.object_id)

    def ended(self, news: ChangeNews) -> None:
        """A session was ended, and all that it has under way with it. From the feed's thread."""
        self._have_done(self._end, UUID(news.object_id))

    def _have_done(self, what: Callable[[T], object], about: T) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and all that was under way there
                self._loop.call_soon_threadsafe(what, about)

    def _end(self, session: UUID) -> None:
        for name in tuple(self._of_session.get(session, ())):
            self._cancel(name)

    def _cancel(self, name: str) -> bool:
        cancel = self._under_way.pop(name, None)
        if cancel is not None:
            cancel()
        return cancel is not None


def name_of(session: UUID, request: str | int) -> str:
    """A short name for a request of a session, whose id may be any text."""
    return blake2b(session.bytes + orjson.dumps(request), digest_size=16).hexdigest()


cancellations = Cancellations()
