"""The event stream of one POST of a session: what is said on it is a row before it is shown.

Until there is something to say there is no stream, and the call may yet be answered as JSON. From
then on messages queue here while they are written, and whoever reads is shown them in their order.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Final
from uuid import UUID

from django.db import Error

from mcphost.calls import streams
from mcphost.calls.streamed import SupersededError
from mcphost.feed.loop import ChangeNews
from mcphost.sealing.tokens import SealError
from mcphost.serving.hop import in_database
from mcphost.serving.legacy.keeping import Kept, Messages, event_id
from mcphost.serving.relay import Relay
from mcphost.serving.streams import Reader
from mcphost.serving.waiting import waiters
from mcphost.vault.errors import VaultError

RETRY_SECONDS: Final = 0.5
RETRY_MS: Final = 1000
"""When a reader is to come back that was sent away."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""How much may wait to be written before notifications are dropped."""
MOST_AT_ONCE: Final = 200
TOLD_AT_ONCE: Final = 500

log = logging.getLogger(__name__)


class Outgoing:
    """Fills `serving.streams.Stream` for one call. Only for the event loop's thread.

    `kept` is where it is written. `on_stream` is called when it has become a stream, `on_loss` when
    nothing more can be said, because another process has the call or nothing can be sealed.
    """

    def __init__(
        self, kept: Kept, on_stream: Callable[[], None], on_loss: Callable[[], None]
    ) -> None:
        self.kept = kept
        self.streaming = False
        self._on_stream = on_stream
        self._on_loss = on_loss
        self._queue: list[bytes] = []
        self._queued = 0
        self._number = 0
        self._writer: asyncio.Task[None] | None = None
        self._readers: list[Reader] = []
        self._unshown: list[tuple[int, bytes]] | None = []
        self._begun = False
        self.followed = False
        self._last = False
        self._over = False

    @property
    def closed(self) -> bool:
        """Whether nobody hears what is said: not because nobody reads now."""
        return self._over or self._last

    def open(self, first: bytes | None = None) -> None:
        """Be a stream from now on, that begins with `first`. Harmless when it is one, or over."""
        if self.streaming or self.closed:
            return
        self.streaming = True
        _followed.attach()
        live[self.kept.stream.id] = self
        if first is not None:
            self._put(first)
        self._write()
        self._on_stream()

    def send(self, message: bytes) -> None:
        """Say something. Beyond what may wait to be written it is dropped."""
        if self.closed:
            return
        if self._queued > MOST_BYTES:
            log.warning(
                "a notification was dropped: too many wait to be written", extra=self._facts
            )
            return
        self._put(message)
        self.open()
        self._write()

    async def finish(self, message: bytes) -> None:
        """Say the last thing, if any, and wait until it is written. Cancelling cancels only the
        waiting."""
        if self.closed:
            return
        if message:
            self._put(message)
        self._last = True
        self._write()
        await self.written()

    async def written(self) -> None:
        """Wait until all that was said is written, or never will be."""
        while self._writer is not None:
            await asyncio.wait([self._writer])

    def attach(self, reader: Reader, after: int = 0) -> None:
        """Show `reader` what is written from now on, and before if nobody was shown that."""
        for number, message in self._unshown or ():
            if number > after:
                reader.write(event_id(self.kept.stream.id, number), message)
        self._unshown = None
        if self._over:
            reader.end()
        else:
            self._readers.append(reader)

    def detach(self, reader: Reader) -> None:
        """The reader has gone. The call goes on."""
        self._unshown = None
        if reader in self._readers:
            self._readers.remove(reader)

    def send_away(self) -> None:
        """End the readers' responses, not the stream: they come back for the rest."""
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end(RETRY_MS)

    def abandon(self) -> None:
        """Nothing more is said here, though perhaps elsewhere. Readers come back and see."""
        self._over = True
        self._queue.clear()
        live.pop(self.kept.stream.id, None)
        self.send_away()

    def _put(self, message: bytes) -> None:
        self._queue.append(message)
        self._queued += len(message)

    def _write(self) -> None:
        if self._writer is None:
            loop = asyncio.get_running_loop()
            # In no context: what writes is nobody's own, and ends with nobody.
            self._writer = loop.create_task(self._write_all(), context=Context())

    async def _write_all(self) -> None:
        try:
            while not self._over and (self._queue or self._last or not self._begun):
                await self._write_some()
        except SupersededError:
            self._lose("another process has the call")
        except (SealError, VaultError) as error:
            self._lose(f"it cannot be sealed: {error}")
        finally:
            self._writer = None

    async def _write_some(self) -> None:
        """Write what waits, and show it."""
        batch = self._queue[:MOST_AT_ONCE]
        write = self.kept.append if self._begun else self.kept.begin
        ends = self._begun and self._last and len(batch) == len(self._queue)
        if ends:
            write = self.kept.finish
        try:
            await in_database(write, Messages(self._number + 1, batch, self.followed))
        except Error as error:
            log.warning("a stream waits for the database: %s", type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
            return
        self._over, self._begun = ends, True
        self._show(batch)

    def _show(self, batch: list[bytes]) -> None:
        del self._queue[: len(batch)]
        self._queued -= sum(map(len, batch))
        stream = self.kept.stream.id
        for message in batch:
            self._number += 1
            if self._unshown is not None:
                self._unshown.append((self._number, message))
            for reader in tuple(self._readers):
                self._show_to(reader, event_id(stream, self._number), message)
        waiters.tell((self.kept.stream.tenant, stream.hex))
        if self._over:
            self._end()

    def _show_to(self, reader: Reader, name: str, message: bytes) -> None:
        if reader.closed:
            self._readers.remove(reader)
        else:
            reader.write(name, message)

    def _end(self) -> None:
        live.pop(self.kept.stream.id, None)
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end()

    def _lose(self, why: str) -> None:
        log.warning("a stream goes on without this process: %s", why, extra=self._facts)
        self.abandon()
        self._on_loss()

    @property
    def _facts(self) -> dict[str, str]:
        return {"call": str(self.kept.taking.call), "stream": str(self.kept.stream.id)}


live: Final[dict[UUID, Outgoing]] = {}
"""The streams on which this process writes. For the event loop's thread."""


async def _heed(followed: Sequence[UUID | None]) -> None:
    """Streams are followed from other processes: which, or perhaps any. They are told of what there
    is, because they may have looked before it was written, and from now on of what comes."""
    found = [live[each] for each in followed if each in live]
    if None in followed:
        found = list(live.values())
    for each in found:
        each.followed = True
    about = [each.kept.stream for each in found]
    for start in range(0, len(about), TOLD_AT_ONCE):
        await in_database(streams.tell, streams.NEWS, about[start : start + TOLD_AT_ONCE])


_followed: Final[Relay[UUID | None]] = Relay(_heed)


def heard(news: ChangeNews) -> None:
    """Somebody follows a stream from another process. From the feed's thread."""
    _followed.put(UUID(news.object_id))


def heard_nothing() -> None:
    """There was a gap in the feed. From the feed's thread."""
    _followed.put(None)
