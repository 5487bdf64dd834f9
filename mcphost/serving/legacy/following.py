"""Showing a stream to a client that comes back for it, on whichever process (spec 2025-11-25:
basic/transports, Resumability and Redelivery).

It is shown from its rows. News of more comes from the call itself where that is here, and otherwise
by the feed.
"""

import asyncio
import logging
import re
from contextlib import suppress
from typing import Final
from uuid import UUID

from mcphost.calls import streams
from mcphost.calls.streams import Page, StreamRow
from mcphost.protocol.errors import ProtocolError, invalid_request
from mcphost.sealing.tokens import SealError
from mcphost.serving.incoming import Session
from mcphost.serving.legacy import adoption, outgoing, readers
from mcphost.serving.legacy.keeping import event_id, message_of
from mcphost.serving.patience import patiently
from mcphost.serving.streams import Reader
from mcphost.serving.waiting import waiters
from mcphost.vault.errors import VaultError

FIRST_LOOK_SECONDS: Final = 0.25
LOOK_SECONDS: Final = 5.0
"""How often who follows looks without having been told of anything: sooner in the beginning, because
what ends just then has not heard yet that it is followed."""

_EVENT: Final = re.compile(r"([0-9a-f]{32})-([0-9]{1,15})")

log = logging.getLogger(__name__)


async def follow(session: Session, last_event_id: str, reader: Reader) -> None:
    """Show what came on a stream of the session after that event, and what comes, until it has ended.

    Raises ProtocolError for an event of no stream of the session, before anything is shown. While the
    database is away it waits.
    """
    stream, after = _parse(last_event_id)
    found = await patiently(streams.find, stream, session.tenant)
    if found is None or found.session != session.id:
        raise _no_event()
    try:
        await _Following(found, after, reader).run()
    except (SealError, VaultError, ValueError) as error:
        log.error("a stream cannot be shown: %s", error, extra={"stream": str(stream)})
        reader.end()


class _Following:
    """One reader of one stream."""

    def __init__(self, stream: StreamRow, after: int, reader: Reader) -> None:
        self._stream = stream
        self._after = after
        self._reader = reader
        self._look = FIRST_LOOK_SECONDS

    async def run(self) -> None:
        awaited = (self._stream.tenant, self._stream.id.hex)
        with (
            waiters.expecting(awaited) as news,
            readers.following.present(self._stream.id, self._reader),
        ):
            page = await self._show()
            if not page.whole and self._stream.id not in outgoing.live:
                await patiently(streams.tell, streams.FOLLOWED, [self._stream])
            while not page.whole and not self._reader.closed:
                if len(page.events) < streams.READ_AT_ONCE:
                    await self._wait(news)
                page = await self._show()
            self._reader.end()

    async def _wait(self, news: asyncio.Event) -> None:
        """Wait for more, and see to it that somebody is there to bring it."""
        if self._stream.id not in outgoing.live:
            await adoption.adopt(stream=self._stream.id)
        await _hear(news, self._look)
        self._look = min(2 * self._look, LOOK_SECONDS)

    async def _show(self) -> Page:
        """Show what is there and was not shown."""
        page = await patiently(streams.read, self._stream.id, self._after)
        messages = await patiently(_opened, self._stream, page)
        for event, message in zip(page.events, messages, strict=True):
            self._reader.write(event_id(self._stream.id, event.number), message)
            self._after = event.number
        return page


def _opened(stream: StreamRow, page: Page) -> list[bytes]:
    return [message_of(stream, each) for each in page.events]


async def _hear(news: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
    news.clear()


def _parse(last_event_id: str) -> tuple[UUID, int]:
    parts = _EVENT.fullmatch(last_event_id)
    if parts is None:
        raise _no_event()
    return UUID(hex=parts[1]), int(parts[2])


def _no_event() -> ProtocolError:
    return invalid_request("Last-Event-ID names no event of this session that can be gone on from")
