"""The event stream of one POST of a session. Each message is written as a row before it is sent.

Also the responses that show a stream in a process other than the call's owner.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.calls import streams
from mcphost.calls.ownership import SupersededError
from mcphost.calls.session_calls import WaitingCall
from mcphost.calls.states import STREAM, CallState, StreamState, StreamStep
from mcphost.calls.streams import StreamRow
from mcphost.feed.loop import ChangeNews
from mcphost.observability.availability import availability
from mcphost.protocol.errors import over_limit
from mcphost.serving.background import background
from mcphost.serving.database import commit_patiently, in_database, in_database_unbounded
from mcphost.serving.events import Relay, waiters
from mcphost.serving.legacy.outbound_guard import Gate
from mcphost.serving.legacy.reconnection import retry_ms
from mcphost.serving.legacy.storage import NumberedMessages, StoredStream, event_id
from mcphost.serving.limits import InUse
from mcphost.serving.ports import Reader

MAX_READERS: Final = 4
"""Responses that may replay one stream here. A client needs one, or more while old connections
break."""
MAX_STREAMS_OF_CALLER: Final = 1000
"""Streams that may be replayed to one caller at once in this process. Each replay polls its rows
for as long as its call waits."""
RETRY_SECONDS: Final = 30

Replay = Callable[[StreamRow, int, Reader], None]


def _end_reader(stream: StreamRow, after: int, reader: Reader) -> None:
    reader.end(retry_ms())


class Readers:
    """The responses of this process that replay streams. Only for the event loop's thread.

    `replay` begins to show a reader the events of a stream after a number.
    """

    def __init__(self) -> None:
        self.replay: Replay = _end_reader
        self._present: dict[UUID, list[Reader]] = {}
        self._places = InUse()

    def __contains__(self, stream: UUID) -> bool:
        return stream in self._present

    @contextmanager
    def present(self, stream: UUID, reader: Reader) -> Iterator[None]:
        """Register the reader inside the context. Of more than MAX_READERS the oldest ends."""
        present = self._present.setdefault(stream, [])
        present.append(reader)
        if len(present) > MAX_READERS:
            present.pop(0).end()
        try:
            yield
        finally:
            if reader in present:
                present.remove(reader)
            if not self._present.get(stream):
                self._present.pop(stream, None)

    @contextmanager
    def count_replay(self, key: str) -> Iterator[None]:
        """Count one more replay for a caller or session inside the context.

        Raises ProtocolError (OVER_LIMIT) with `data.retryAfter` when it has too many.
        """
        if self._places[key] >= MAX_STREAMS_OF_CALLER:
            message = f"This caller already has {MAX_STREAMS_OF_CALLER} resumed streams"
            raise over_limit(message, RETRY_SECONDS)
        with self._places.reserve([key]):
            yield

    def send_away(self, stream: UUID) -> None:
        """End the responses that show the stream. Their clients reconnect for the rest."""
        for reader in tuple(self._present.get(stream, ())):
            reader.end(retry_ms())

    def send_all_away(self) -> None:
        """End all such responses, at shutdown."""
        for stream in tuple(self._present):
            self.send_away(stream)


following: Final = Readers()


MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""Bytes that may wait to be written before notifications are dropped."""
MAX_BATCH: Final = 200
TOLD_AT_ONCE: Final = 500
"""The pause before messages that the database did not take are written again."""

log = logging.getLogger(__name__)


Write = Callable[[NumberedMessages], Condition]
"""Makes the condition that writes messages."""


class _Portion:
    """Messages that are written together, in one commit with `records`.

    `write` makes the condition, None to append them. `done` is resolved when they are written, with
    whether the condition took hold. `awaited`: a coroutine waits for that, for a limited time, and
    handles errors. Other portions are written as soon as the database can be reached.
    """

    __slots__ = ("awaited", "done", "messages", "records", "write")

    def __init__(
        self,
        messages: list[bytes],
        write: Write | None = None,
        records: Sequence[Record] = (),
        *,
        awaited: bool = False,
    ) -> None:
        self.messages = messages
        self.write = write
        self.records = records
        self.awaited = awaited
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.done.add_done_callback(_look_at)


def _look_at(done: "asyncio.Future[bool]") -> None:
    """Retrieve the exception, so that asyncio does not log it when no coroutine waits any more."""
    if not done.cancelled():
        done.exception()


async def _in_time(done: "asyncio.Future[bool]", seconds: float) -> bool:
    """Wait for a write; False if the database is unreachable and `seconds` have passed."""
    await asyncio.wait([done], timeout=seconds)
    if not (done.done() or availability.unreachable):
        await asyncio.wait([done])
    return done.done()


class Outgoing:
    """Implements `serving.ports.EventStream` for one call. Only for the event loop's thread.

    `stored` writes it to the database. `on_stream` is called when streaming begins. `on_loss` is
    called when nothing more can be written, because another process owns the call or a message
    could not be stored. `last` is the number of the last event of a stream that another process
    began.
    """

    __slots__ = (
        "_begun",
        "_gate",
        "_number",
        "_on_loss",
        "_on_stream",
        "_queue",
        "_queued",
        "_readers",
        "_state",
        "_unreachable",
        "_unshown",
        "_writer",
        "followed",
        "stored",
    )

    def __init__(
        self,
        stored: StoredStream,
        gate: Gate,
        on_stream: Callable[[], None],
        on_loss: Callable[[], None],
        last: int | None = None,
    ) -> None:
        self.stored = stored
        self._gate = gate
        self._state = StreamState.SILENT
        self.followed = False
        self._on_stream = on_stream
        self._on_loss = on_loss
        self._queue: list[_Portion] = []  # an empty deque takes as much memory as all the rest
        self._queued = 0
        self._number = 0
        self._writer: asyncio.Task[None] | None = None
        self._readers: list[Reader] = []
        self._unshown: list[tuple[int, bytes]] | None = []
        self._unreachable = False
        self._begun = last is not None
        if last is not None:
            self._number, self._unshown, self.followed = last, None, True
            self._be_stream()

    @property
    def streaming(self) -> bool:
        """Whether streaming has begun."""
        return self._state not in (StreamState.SILENT, StreamState.DROPPED)

    @property
    def closed(self) -> bool:
        """Whether the stream has ended (not merely disconnected): messages are dropped."""
        return self._state not in (StreamState.SILENT, StreamState.OPEN)

    @property
    def _is_mine(self) -> bool:
        """Whether this process still writes to it."""
        return self._state in (StreamState.SILENT, StreamState.OPEN, StreamState.LAST)

    def _become(self, event: StreamStep) -> None:
        self._state = STREAM.get((self._state, event), self._state)

    @property
    def can_be_found(self) -> bool:
        """Whether the client has an event id to resume from, or will have one."""
        return self.stored.polling or self._number > 0

    def open(self) -> None:
        """Start streaming. Does nothing if streaming has begun or the stream has ended."""
        if self._state is StreamState.SILENT:
            self._be_stream()
            self._put(_Portion(self._beginning(), self.stored.begin))

    def send(self, message: bytes) -> None:
        """Queue a message. It is dropped if more than MOST_BYTES would wait to be written."""
        if self.closed or not self._gate.says(message):
            return
        if self._queued + len(message) > MAX_WAITING_BYTES:
            log.warning("a message was dropped: too much waits to be written", extra=self._facts)
            return
        self.open()
        latest = self._queue[-1] if self._queue else None
        if latest is not None and latest.write is None:
            self._queued += len(message)
            latest.messages.append(message)
        else:
            self._put(_Portion([message]))

    async def ask(
        self, requests: list[bytes], waiting: WaitingCall, records: Sequence[Record] = ()
    ) -> None:
        """Send input requests, after they, the call's waiting state and `records` are committed.

        Raises SupersededError when the call is over or owned by another process; Stopped when the
        guard refuses the requests; RecordLostError and RecordRefusedError if `records` could not be written.
        """
        live = not self.closed
        self._gate.asks(waiting.round_questions, self.stored.owner, self.stored.stream, live=live)
        if self.streaming:
            write: Write = partial(self.stored.ask, waiting)
        else:
            self._be_stream()
            write = partial(self.stored.begin, waiting=waiting)
            requests = [*self._beginning(), *requests]
        portion = _Portion(requests, write, records, awaited=True)
        self._put(portion)
        if not await self._outcome(portion):
            raise SupersededError

    async def commit(self, condition: Condition, records: Sequence[Record] = ()) -> bool:
        """Commit a condition of this call and `records`, after what was queued before; return
        whether it took hold. Cancellation cancels only the wait.

        Raises RecordLostError and RecordRefusedError.
        """
        if self.closed:
            return False
        portion = _Portion([], lambda _: condition, records, awaited=True)
        self._put(portion)
        try:
            return await self._outcome(portion)
        except asyncio.CancelledError:
            if portion.done.cancelled():  # this process no longer writes to the stream
                return False
            # No coroutine gets the result now, so a call that waits must read its rows.
            portion.done.add_done_callback(self._hint)
            raise

    def _hint(self, _: object) -> None:
        waiters.notify((self.stored.stream.tenant, self.stored.owner.id.hex))

    async def finish(
        self,
        message: bytes,
        state: CallState = CallState.FINISHED,
        records: Sequence[Record] = (),
        *,
        failed: bool = False,
    ) -> None:
        """End the stream with `message`, if any, and wait until it is written. Cancellation cancels
        only the wait.

        With `records` it is shown only when both are committed; raises RecordLostError or RecordRefusedError
        if that fails, and the stream goes on.

        Without, while the database is unreachable, the message is shown before it is written: at
        once if the call has `failed`, perhaps for that reason, and otherwise after
        MCPHOST_DATABASE_WAIT_SECONDS.
        """
        if self._state is not StreamState.OPEN:
            return
        self._become(StreamStep.FINISH)
        messages = [message] if message and self._gate.answers(message) else []
        write = partial(self.stored.finish, state)
        portion = _Portion(messages, write, records, awaited=bool(records))
        self._put(portion)
        if records:
            await self._finished(portion)
            return
        waits = not (failed and availability.unreachable)
        seconds = settings.MCPHOST_DATABASE_WAIT_SECONDS if waits else 0
        if not await _in_time(portion.done, seconds):
            self._show_last(messages)
            await asyncio.wait([portion.done])

    async def _finished(self, portion: _Portion) -> None:
        try:
            await self._outcome(portion)
        except asyncio.CancelledError:
            if not portion.done.cancelled():
                raise
        except (RecordLostError, RecordRefusedError):
            self._become(StreamStep.UNRECORDED)
            raise

    async def _outcome(self, portion: _Portion) -> bool:
        """Wait for an awaited portion; return whether its condition took hold. Cancellation cancels
        only the wait.

        Raises RecordLostError if the database is unreachable for too long, RecordRefusedError.
        """
        in_time = await _in_time(portion.done, settings.MCPHOST_DATABASE_WAIT_SECONDS)
        if not in_time and portion in self._queue[1:]:  # the first one fails by itself
            self._drop(portion)
            raise RecordLostError("messages before the record could not be written in time")
        return await asyncio.shield(portion.done)

    async def written(self) -> None:
        """Wait until all queued messages are written, or cannot be."""
        while self._writer is not None:
            await asyncio.wait([self._writer])

    def attach(self, reader: Reader, after: int = 0) -> None:
        """Show `reader` later messages, and those written before the first reader was attached."""
        for number, message in self._unshown or ():
            if number > after:
                reader.write(event_id(self.stored.stream.id, number), message)
        self._unshown = None
        if self._unreachable:
            self._unreachable = False
            reader.end(retry_ms())
        elif self._state is StreamState.MOVED:
            following.replay(self.stored.stream, self._number, reader)
        elif not self._is_mine:
            reader.end()
        else:
            self._readers.append(reader)

    def detach(self, reader: Reader) -> None:
        """Remove a reader that has disconnected. The call goes on."""
        self._unshown = None
        if reader in self._readers:
            self._readers.remove(reader)

    def send_away(self) -> None:
        """End the readers' responses, not the stream. Their clients reconnect for the rest."""
        following.send_away(self.stored.stream.id)
        self._unreachable = self._unshown is not None
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end(retry_ms())

    def pause(self) -> None:
        """End the readers' responses once all so far is written, if their clients can reconnect."""
        if self.stored.polling and not self.closed:
            self.open()
            portion = _Portion([], self.stored.append)
            portion.done.add_done_callback(lambda _: self.send_away())
            self._put(portion)

    async def release(self, *, notify: bool, stays: bool = False) -> None:
        """Release the waiting call for another process to take over.

        `notify`: notify other processes, because the call can go on now. `stays`: this process does not
        leave, and its readers are shown what the other one writes; else their clients reconnect.
        """
        await self.written()
        if not self._is_mine:
            return
        if stays:
            self._stop_writing(StreamStep.MOVE)
            readers, self._readers = self._readers, []
            for reader in readers:
                following.replay(self.stored.stream, self._number, reader)
        else:
            self.abandon()
        await in_database_unbounded(self.stored.release, notify)

    def abandon(self) -> None:
        """Stop writing in this process; another may go on. Readers' clients reconnect."""
        self._stop_writing(StreamStep.ABANDON)
        self.send_away()

    def _stop_writing(self, event: StreamStep) -> None:
        self._become(event)
        for portion in self._queue:
            portion.done.cancel()
        self._queue.clear()
        live.pop(self.stored.stream.id, None)

    def _be_stream(self) -> None:
        self._become(StreamStep.OPEN)
        live[self.stored.stream.id] = self
        self._on_stream()

    def _beginning(self) -> list[bytes]:
        """The empty first event, if the client may close the stream and resume it."""
        return [b""] if self.stored.polling else []

    def _put(self, portion: _Portion) -> None:
        self._queue.append(portion)
        self._queued += sum(map(len, portion.messages))
        if self._writer is None:
            self._writer = background.start(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write_some()
        except (SupersededError, RecordLostError) as error:
            self._lose(str(error) or "the call has ended, or another process owns it")
        except RecordRefusedError as error:
            self._lose(f"a message cannot be stored: {error}")
            await self._break_off()
        finally:
            self._writer = None

    async def _write_some(self) -> None:
        """Write the oldest portion, or part of it, and show it."""
        portion = self._queue[0]
        messages = portion.messages[:MAX_BATCH] if portion.write is None else portion.messages
        write = portion.write or self.stored.append
        numbered = NumberedMessages(self._number + 1, tuple(messages), self.followed)
        try:
            if portion.awaited:
                committed = await writer.submit_if(write(numbered), portion.records)
            else:
                committed = await commit_patiently(write(numbered))
        except (RecordLostError, RecordRefusedError) as error:
            if not portion.awaited:
                raise
            self._fail(portion, error)
            return
        if not self._is_mine:
            return
        self._begun, ends = True, self._state is StreamState.LAST
        if not committed:
            if not portion.awaited or (ends and portion is self._queue[-1]):
                raise SupersededError
            self._drop(portion).set_result(False)
            return
        if messages or ends:
            self._show(messages)
        del portion.messages[: len(messages)]
        if not portion.messages:
            self._queue.pop(0)
            portion.done.set_result(True)
        if ends and not self._queue:
            self._end()

    def _fail(self, portion: _Portion, error: Exception) -> None:
        """Drop an awaited portion that could not be written in time, or not at all."""
        self._drop(portion).set_exception(error)
        # Its messages may be stored nevertheless: their numbers are not used again.
        self._number += len(portion.messages)
        if not self._begun:
            self._queue.insert(0, _Portion(self._beginning(), self.stored.begin))

    def _drop(self, portion: _Portion) -> "asyncio.Future[bool]":
        """Remove a portion that was not written; return its `done`."""
        self._queue.remove(portion)
        self._queued -= sum(map(len, portion.messages))
        return portion.done

    def _show(self, messages: Sequence[bytes]) -> None:
        stream = self.stored.stream.id
        for message in messages:
            self._number += 1
            self._queued -= len(message)
            if self._unshown is not None:
                self._unshown.append((self._number, message))
            for reader in tuple(self._readers):
                self._show_to(reader, event_id(stream, self._number), message)
        waiters.notify((self.stored.stream.tenant, stream.hex))

    def _show_last(self, messages: Sequence[bytes]) -> None:
        """Show the last message before it is written, under the number that it will have.

        Queued messages before it are not shown: a client may miss any message but the last.
        """
        number = self._number + sum(len(portion.messages) for portion in self._queue)
        readers, self._readers = self._readers, []
        for reader in readers:
            for message in messages if not reader.closed else ():
                reader.write(event_id(self.stored.stream.id, number), message)
            reader.end()

    def _show_to(self, reader: Reader, name: str, message: bytes) -> None:
        if reader.closed:
            self._readers.remove(reader)
        else:
            reader.write(name, message)

    def _end(self) -> None:
        self._become(StreamStep.WRITTEN)
        live.pop(self.stored.stream.id, None)
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.end()

    def _lose(self, why: str) -> None:
        if not self._is_mine:  # abandoned while it was written
            return
        log.warning("this process stopped writing to a stream: %s", why, extra=self._facts)
        self.abandon()
        self._on_loss()

    async def _break_off(self) -> None:
        """End the stream without a response, so that a client that resumes it does not wait."""
        stream, nothing = self.stored.stream, NumberedMessages(self._number + 1, (), self.followed)
        with suppress(RecordLostError, RecordRefusedError):
            await commit_patiently(self.stored.finish(CallState.CANCELLED, nothing))
            waiters.notify((stream.tenant, stream.id.hex))

    @property
    def _facts(self) -> dict[str, str]:
        return {"call": str(self.stored.owner.id), "stream": str(self.stored.stream.id)}


class LiveStreams(dict[UUID, Outgoing]):
    """The streams to which this process writes. Only for the event loop's thread.

    When the change log says that streams are read from other processes, their messages are announced
    from then on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._followed: Relay[UUID | None] = Relay(self._announce)

    def start(self) -> None:
        """Handle what the change log says, on the running loop."""
        self._followed.start()

    async def stop(self) -> None:
        await self._followed.stop()

    def on_change(self, news: ChangeNews) -> None:
        """Note that a stream is read from another process. From the change log's thread."""
        self._followed.put(UUID(news.object_id))

    def on_gap(self) -> None:
        """Handle a gap in the change log: perhaps any is. From the change log's thread."""
        self._followed.put(None)

    async def _announce(self, followed: Sequence[UUID | None]) -> None:
        """Announce the messages of these streams (None: of all).

        Announce once now, too: the reader may have looked before the latest message was written.
        """
        if None in followed:
            outgoing = list(self.values())
        else:
            outgoing = [self[id] for id in followed if id is not None and id in self]
        for stream in outgoing:
            stream.followed = True
        rows = [stream.stored.stream for stream in outgoing]
        for start in range(0, len(rows), TOLD_AT_ONCE):
            await in_database(
                streams.notify_processes, streams.CHANGE_NAME, rows[start : start + TOLD_AT_ONCE]
            )


live: Final = LiveStreams()
