"""The event stream of one POST of a session: what is said on it is a row before it is shown.

Until there is something to say there is no stream, and the call may yet be answered as JSON. From
then on messages queue here while they are written, and whoever reads is shown them in their order.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final
from uuid import UUID

from django.db import Error

from mcphost.calls import streams
from mcphost.calls.states import CallState
from mcphost.calls.streamed import SupersededError, Waiting
from mcphost.feed.loop import ChangeNews
from mcphost.sealing.tokens import SealError
from mcphost.serving.hop import in_database
from mcphost.serving.legacy.gate import Gate
from mcphost.serving.legacy.keeping import Kept, Messages, event_id
from mcphost.serving.legacy.readers import RETRY_MS, following
from mcphost.serving.patience import patiently
from mcphost.serving.relay import Relay
from mcphost.serving.streams import Reader
from mcphost.serving.waiting import waiters
from mcphost.vault.errors import VaultError

MOST_BYTES: Final = 4 * 1024 * 1024
"""How much may wait to be written before notifications are dropped."""
MOST_AT_ONCE: Final = 200
TOLD_AT_ONCE: Final = 500

log = logging.getLogger(__name__)


Write = Callable[[Messages], None]
"""Writes messages, in a thread that may wait for the database."""


class _Portion:
    """Messages that are written together, by `write` if that is not just adding them. `done` is when."""

    __slots__ = ("done", "messages", "write")

    def __init__(self, messages: list[bytes], write: Write | None = None) -> None:
        self.messages = messages
        self.write = write
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(_look_at)


def _look_at(done: "asyncio.Future[None]") -> None:
    """Those who waited may have gone: what was raised is nobody's then."""
    if not done.cancelled():
        done.exception()


class Outgoing:
    """Fills `serving.streams.Stream` for one call. Only for the event loop's thread.

    `kept` is where it is written. `on_stream` is called when it has become a stream, `on_loss` when
    nothing more can be said, because another process has the call or nothing can be sealed. `last` is
    the number of the last event of a stream that another process has begun.
    """

    def __init__(
        self,
        kept: Kept,
        gate: Gate,
        on_stream: Callable[[], None],
        on_loss: Callable[[], None],
        last: int | None = None,
    ) -> None:
        self.kept = kept
        self._gate = gate
        self.streaming = False
        self.followed = False
        self._on_stream = on_stream
        self._on_loss = on_loss
        self._queue: list[_Portion] = []  # an empty deque takes as much room as all the rest
        self._first: _Portion | None = None
        self._queued = 0
        self._number = 0
        self._writer: asyncio.Task[None] | None = None
        self._readers: list[Reader] = []
        self._unshown: list[tuple[int, bytes]] | None = []
        self._away = False
        self._last = False
        self._over = False
        if last is not None:
            self._number, self._unshown, self.followed = last, None, True
            self._be_stream()

    @property
    def closed(self) -> bool:
        """Whether nobody hears what is said: not because nobody reads now."""
        return self._over or self._last

    @property
    def can_be_found(self) -> bool:
        """Whether whoever reads has an event to come back with, or will have."""
        return self.kept.polling or self._number > 0

    def open(self) -> None:
        """Be a stream from now on. Harmless when it is one, or over."""
        if not (self.streaming or self.closed):
            self._be_stream()
            self._put(_Portion(self._beginning(), self.kept.begin))

    def send(self, message: bytes) -> None:
        """Say something. Beyond what may wait to be written it is dropped."""
        if self.closed or not self._gate.says(message):
            return
        if self._queued + len(message) > MOST_BYTES:
            log.warning("a message was dropped: too much waits to be written", extra=self._facts)
            return
        self.open()
        latest = self._queue[-1] if self._queue else None
        if latest is not None and latest.write is None:
            self._queued += len(message)
            latest.messages.append(message)
        else:
            self._put(_Portion([message]))

    async def ask(self, requests: list[bytes], waiting: Waiting) -> None:
        """Ask the client, once that and for what the call waits is written.

        Raises SupersededError when the call is no longer ours, or over; Stopped.
        """
        live = not self.closed
        self._gate.asks(waiting.asked, self.kept.taking, self.kept.stream, live=live)
        opens = not self.streaming
        messages = [*self._beginning(), *requests] if opens else requests
        if opens:
            self._be_stream()
        portion = _Portion(messages, partial(self.kept.ask, waiting, opens))
        self._put(portion)
        await asyncio.shield(portion.done)

    async def finish(self, message: bytes, state: CallState = CallState.FINISHED) -> None:
        """Say the last thing, if any, and wait until it is written. Cancelling cancels only the
        waiting."""
        if self.closed:
            return
        self._last = True
        said = [message] if message and self._gate.answers(message) else []
        portion = _Portion(said, partial(self.kept.finish, state))
        self._put(portion)
        await asyncio.wait([portion.done])

    async def begun(self) -> None:
        """Wait until the stream is written, or never will be."""
        if self._first is not None:
            await asyncio.wait([self._first.done])

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
        if self._away:
            self._away = False
            reader.end(RETRY_MS)
        elif self._over:
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
        following.send_away(self.kept.stream.id)
        self._away = self._unshown is not None
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end(RETRY_MS)

    def pause(self) -> None:
        """Once what was said so far is written, have readers come back for the rest, if they can."""
        if self.kept.polling and not self.closed:
            self.open()
            portion = _Portion([], self.kept.append)
            portion.done.add_done_callback(lambda _: self.send_away())
            self._put(portion)

    async def release(self, *, told: bool) -> None:
        """Let the call go, which waits, for another process to go on with. Readers come back and see."""
        await self.written()
        if not self._over:
            self.abandon()
            await patiently(self.kept.release, told)

    def abandon(self) -> None:
        """Nothing more is said here, though perhaps elsewhere. Readers come back and see."""
        self._over = True
        for portion in self._queue:
            portion.done.cancel()
        self._queue.clear()
        live.pop(self.kept.stream.id, None)
        self.send_away()

    def _be_stream(self) -> None:
        self.streaming = True
        _followed.attach()
        live[self.kept.stream.id] = self
        self._on_stream()

    def _beginning(self) -> list[bytes]:
        """What a stream begins with that its client may close and come back to."""
        return [b""] if self.kept.polling else []

    def _put(self, portion: _Portion) -> None:
        self._first = self._first or portion
        self._queue.append(portion)
        self._queued += sum(map(len, portion.messages))
        if self._writer is None:
            loop = asyncio.get_running_loop()
            # In no context: what writes is nobody's own, and ends with nobody.
            self._writer = loop.create_task(self._write_all(), context=Context())

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write_some()
        except SupersededError:
            self._lose("another process has the call")
        except (SealError, VaultError, Error) as error:
            self._lose(f"it cannot be kept: {error!r}")
            await self._break_off()
        finally:
            self._writer = None

    async def _write_some(self) -> None:
        """Write what waits longest, and show it."""
        portion = self._queue[0]
        messages = portion.messages[:MOST_AT_ONCE] if portion.write is None else portion.messages
        write = portion.write or self.kept.append
        said = Messages(self._number + 1, tuple(messages), self.followed)
        try:
            await patiently(write, said)
        except SupersededError as error:
            if portion.write is None or self._last:
                raise
            self._queue.pop(0)
            portion.done.set_exception(error)
            return
        if self._over:
            return
        self._show(messages)
        del portion.messages[: len(messages)]
        if not portion.messages:
            self._queue.pop(0)
            portion.done.set_result(None)
        if self._last and not self._queue:
            self._end()

    def _show(self, messages: Sequence[bytes]) -> None:
        stream = self.kept.stream.id
        for message in messages:
            self._number += 1
            self._queued -= len(message)
            if self._unshown is not None:
                self._unshown.append((self._number, message))
            for reader in tuple(self._readers):
                self._show_to(reader, event_id(stream, self._number), message)
        waiters.tell((self.kept.stream.tenant, stream.hex))

    def _show_to(self, reader: Reader, name: str, message: bytes) -> None:
        if reader.closed:
            self._readers.remove(reader)
        else:
            reader.write(name, message)

    def _end(self) -> None:
        self._over = True
        live.pop(self.kept.stream.id, None)
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end()

    def _lose(self, why: str) -> None:
        log.warning("a stream goes on without this process: %s", why, extra=self._facts)
        self.abandon()
        self._on_loss()

    async def _break_off(self) -> None:
        """End the stream without an answer: who comes back is not to wait for one."""
        stream, nothing = self.kept.stream, Messages(self._number + 1, (), self.followed)
        with suppress(SupersededError, SealError, VaultError, Error):
            await patiently(self.kept.finish, CallState.CANCELLED, nothing)
            waiters.tell((stream.tenant, stream.id.hex))

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
