"""Calling off a request of a session, on whichever process it runs (spec: basic/utilities/cancellation)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from uuid import UUID

import orjson
from django.db import transaction

from mcphost.feed.loop import ChangeNews
from mcphost.feed.services import announce
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session

NEWS = "cancelled"

Cancel = Callable[[], None]


class Cancellations:
    """The requests of sessions that this process serves now. For the event loop's thread."""

    def __init__(self) -> None:
        self._under_way: dict[str, tuple[asyncio.AbstractEventLoop, Cancel]] = {}

    @contextmanager
    def possible(self, session: UUID, request: str | int, cancel: Cancel) -> Iterator[None]:
        """While in here, `cancel` is called, once, if the client calls the request off."""
        name = name_of(session, request)
        entry = (asyncio.get_running_loop(), cancel)
        self._under_way[name] = entry
        try:
            yield
        finally:
            if self._under_way.get(name) is entry:
                del self._under_way[name]

    def is_under_way(self, session: UUID, request: str | int) -> bool:
        """Whether a request of that id is served here now."""
        return name_of(session, request) in self._under_way

    async def call_off(self, session: Session, request: str | int) -> None:
        """Cancel the request here, or tell the other processes to. Nothing happens if it is over."""
        name = name_of(session.id, request)
        if not self._cancel(name):
            await in_database(_tell, session.tenant, name)

    def heard(self, news: ChangeNews) -> None:
        """Another process was told to call a request off. From the feed's thread."""
        entry = self._under_way.get(news.object_id)
        if entry is not None:
            entry[0].call_soon_threadsafe(self._cancel, news.object_id)

    def _cancel(self, name: str) -> bool:
        entry = self._under_way.pop(name, None)
        if entry is not None:
            entry[1]()
        return entry is not None


@transaction.atomic
def _tell(tenant: UUID, name: str) -> None:
    announce(NEWS, tenant=tenant, object_id=name)


def name_of(session: UUID, request: str | int) -> str:
    """A short name for a request of a session, whose id may be any text."""
    return blake2b(session.bytes + orjson.dumps(request), digest_size=16).hexdigest()


cancellations = Cancellations()
