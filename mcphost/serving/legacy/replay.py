"""Replay a stream to a client that resumes it, on any process (spec 2025-11-25: basic/transports,
Resumability and Redelivery).

Events are read from the stream's rows. News of further events comes from the call itself if this
process owns it, and otherwise through the change log.
"""

import logging
import re
from typing import Final
from uuid import UUID

from mcphost.calls import streams
from mcphost.calls.streams import Page, StreamRow
from mcphost.observability.logs import FirstTimes
from mcphost.protocol.errors import ProtocolError, invalid_request
from mcphost.sealing.tokens import SealError
from mcphost.serving import shutdown
from mcphost.serving.background import background
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.events import Waiter, waiters
from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy.reconnection import retry_ms
from mcphost.serving.legacy.storage import event_id, message_of
from mcphost.serving.legacy.takeover import takeovers
from mcphost.serving.limits import may_notify
from mcphost.serving.ports import Reader
from mcphost.vault.errors import VaultError

FIRST_POLL_SECONDS: Final = 0.25
MAX_POLL_SECONDS: Final = 5.0
"""The first and the longest poll interval of a replay without news. The first is short: a call that
ends at that moment does not know yet that its stream is read from another process."""
MAX_POLL_SECONDS_OF_OWNED_CALL: Final = 30.0
"""The longest interval where this process owns the call, which notifies of every event."""

_EVENT: Final = re.compile(r"([0-9a-f]{32})-([0-9]{1,15})")

log = logging.getLogger(__name__)
_unreadable: Final = FirstTimes()


async def follow(session: ClientSession, last_event_id: str, reader: Reader) -> None:
    """Show the events after `last_event_id` of a stream of the session, until the stream has ended.

    Raises ProtocolError, before anything is shown, if the session has no such stream. Waits while
    the database is unreachable.
    """
    stream, after = _parse(last_event_id)
    row = await in_database_unbounded(streams.find, stream, session.tenant)
    if row is None or row.session != session.id:
        raise _no_event()
    await _Following(row, after, reader).run()


def replay(stream: StreamRow, after: int, reader: Reader) -> None:
    """Begin to show the events of a stream after a number, until it or `reader` has ended. On the event
    loop. With too many such streams of a session, the client has to resume this one."""
    replaying = _replay(stream, after, reader)
    background.start(replaying)


async def _replay(stream: StreamRow, after: int, reader: Reader) -> None:
    try:
        with outgoing.following.count_replay(stream.session.hex):
            await _Following(stream, after, reader).run()
    except ProtocolError:
        reader.end(retry_ms())


class _Following:
    """One reader of one stream."""

    def __init__(self, stream: StreamRow, after: int, reader: Reader) -> None:
        self._stream = stream
        self._after = after
        self._reader = reader
        self._poll_seconds = FIRST_POLL_SECONDS

    async def run(self) -> None:
        try:
            await self._run()
        except (SealError, VaultError, ValueError) as error:
            stream = self._stream.id
            if _unreadable.is_first(stream):  # clients reconnect until it expires
                log.error("a stream cannot be shown: %s", error, extra={"stream": str(stream)})
            self._reader.end()

    async def _run(self) -> None:
        awaited = (self._stream.tenant, self._stream.id.hex)
        with (
            waiters.expecting(awaited, until_drain=True) as waiter,
            outgoing.following.present(self._stream.id, self._reader),
        ):
            page = await self._show()
            elsewhere = not page.whole and self._stream.id not in outgoing.live
            if elsewhere and may_notify(self._stream.id.hex):
                await in_database_unbounded(
                    streams.notify_processes, streams.FOLLOWED, [self._stream]
                )
            while not page.whole and not self._reader.closed:
                if shutdown.draining():  # its client resumes it at another process
                    self._reader.end(retry_ms())
                    return
                if len(page.events) < streams.READ_AT_ONCE:
                    await self._wait(waiter)
                page = await self._show()
            self._reader.end()

    async def _wait(self, waiter: Waiter) -> None:
        """Wait for more events; take over the call first if its owner process is dead."""
        if self._stream.id not in outgoing.live:
            await takeovers.take_over(stream=self._stream.id)
        await waiter.wait(self._poll_seconds)
        longest = (
            MAX_POLL_SECONDS_OF_OWNED_CALL if self._stream.id in outgoing.live else MAX_POLL_SECONDS
        )
        self._poll_seconds = min(2 * self._poll_seconds, longest)

    async def _show(self) -> Page:
        """Read and show the next page of events."""
        page = await in_database_unbounded(streams.read, self._stream.id, self._after)
        messages = await in_database_unbounded(_opened, self._stream, page)
        for event, message in zip(page.events, messages, strict=True):
            if self._reader.closed:  # its response was ended: the client reconnects for the rest
                break
            self._reader.write(event_id(self._stream.id, event.number), message)
            self._after = event.number
        return page


def _opened(stream: StreamRow, page: Page) -> list[bytes]:
    return [message_of(stream, event) for event in page.events]


def _parse(last_event_id: str) -> tuple[UUID, int]:
    parts = _EVENT.fullmatch(last_event_id)
    if parts is None:
        raise _no_event()
    return UUID(hex=parts[1]), int(parts[2])


def _no_event() -> ProtocolError:
    return invalid_request("Last-Event-ID names no resumable event of this session")
