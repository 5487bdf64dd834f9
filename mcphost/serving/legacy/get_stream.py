"""GET streams, on which sessions receive notifications of changes (spec: basic/transports,
Listening for Messages from the Server).

A session may have several GET streams, on any processes. Each message goes to the one that was
opened last. The opening and closing of streams is in the change log, among the changes that are
notified. So for each change all processes agree on the newest stream without asking one another.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID

from django.db import Error

from mcphost.audit.records import new_id
from mcphost.calls import sessions as rows
from mcphost.calls.sessions import session_uses
from mcphost.feed.loop import ChangeNews
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.subscriptions import LISTS
from mcphost.protocol.uris import normalize, percent_encoded
from mcphost.runtime.call import Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving import limits, policy
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.legacy.outbound_guard import Gate, pinging
from mcphost.serving.legacy.session import open_stream, session_gone
from mcphost.serving.options import options
from mcphost.serving.ports import LongLivedStream
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import draining
from mcphost.serving.subscriptions.listen import look_at
from mcphost.serving.subscriptions.registry import Listener, listeners

SESSIONS_GAP = ChangeNews(0, None, "sessions-gap", "")
"""Stands for a gap in the change log, which may concern any session."""

log = logging.getLogger(__name__)
_CLOCK = SystemClock()


class SentTask(NamedTuple):
    """What a stream has sent of a task last: its status with the message, and its progress."""

    state: tuple[str, str] | None = None
    progress: float | None = None


NOTHING_SENT: Final = SentTask()


class SessionStream(Listener):
    """A GET stream. It sends notifications only while it is its session's newest.

    `unread`: the session's subscriptions are to be read once the stream is registered. `is_over`:
    its session has ended. `sent_states` is what was sent of tasks, by id.
    """

    __slots__ = ("gate", "is_over", "newest", "sent_states", "session", "stream_id", "unread")

    def __init__(
        self, session: ClientSession, principal: Principal, stream: LongLivedStream
    ) -> None:
        lists = tuple(LISTS) if principal.may(policy.LIST) else ()
        super().__init__(None, principal, stream, lists, {})
        self.session = session
        self.gate = Gate(session, principal)
        self.stream_id = new_id()
        self.newest = False
        self.unread = False
        self.is_over = False
        self.sent_states: dict[UUID, SentTask] = {}

    def notify_change(self, topic: str) -> None:
        if self.newest:
            super().notify_change(topic)

    def send_message(self, message: bytes) -> None:
        if self.gate.says(message):
            super().send_message(message)

    async def subscribed_uris(self) -> Mapping[str, str]:
        """The resource URIs to which its session is subscribed, by normal form."""
        may = self.principal.may(policy.CALL)
        uris = await in_database(rows.topics, self.session.id) if may else ()
        return {normalize(percent_encoded(uri)): uri for uri in reversed(uris)}


class GetStreams:
    """The GET streams of this process, and the order in which their sessions' streams were opened.

    Only for the event loop's thread, except `on_gap` and `sessions`.
    """

    def __init__(self) -> None:
        self._here: dict[UUID, dict[UUID, SessionStream]] = defaultdict(dict)
        self._opened: dict[UUID, list[UUID]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._here.values()))

    def sessions(self) -> tuple[UUID, ...]:
        """The sessions that have GET streams in this process. From any thread."""
        return tuple(self._here)

    def add(self, stream: SessionStream) -> None:
        """Handle the news of the stream's session from now on."""
        self._here[stream.session.id][stream.stream_id] = stream

    def discard(self, stream: SessionStream) -> None:
        session = stream.session.id
        self._here[session].pop(stream.stream_id, None)
        self._forget(session, stream.stream_id)
        if not self._here[session]:
            del self._here[session]
            self._opened.pop(session, None)

    def newest(self, session: UUID) -> SessionStream | None:
        """The newest stream of a session, if it is here."""
        return next((stream for stream in self._of(session).values() if stream.newest), None)

    async def opened(self, news: Sequence[ChangeNews]) -> None:
        """Handle opened streams, of any process: each becomes its session's newest."""
        for session, stream in self._concerning(news):
            self._forget(session, stream)
            self._opened[session].append(stream)
            self._choose(session)
            here = self._here[session].get(stream)
            if here is not None and here.unread:
                await self._turn(session)

    async def closed(self, news: Sequence[ChangeNews]) -> None:
        """Handle closed streams. End one that is still open here: its session had too many."""
        for session, stream in self._concerning(news):
            self._forget(session, stream)
            if stream in self._here[session]:
                self._here[session][stream].stream.end_stay()

    async def ended(self, news: Sequence[ChangeNews]) -> None:
        """End the streams of sessions that have ended."""
        for change in news:
            for stream in tuple(self._of(UUID(change.object_id)).values()):
                stream.is_over = True
                stream.stream.end_stay()

    async def topics_changed(self, news: Sequence[ChangeNews]) -> None:
        """Read the subscriptions of these sessions again."""
        for session in {UUID(change.object_id) for change in news}:
            await self._turn(session)

    async def gap(self, news: Sequence[ChangeNews]) -> None:
        """Forget other processes' streams after a gap: a message sent twice is better than none."""
        for session, here in self._here.items():
            self._opened[session] = [stream for stream in self._opened[session] if stream in here]
            self._choose(session)

    def on_gap(self) -> None:
        """Handle a gap in the change log. From the change log's thread."""
        listeners.on_change(SESSIONS_GAP)

    async def _turn(self, session: UUID) -> None:
        for stream in tuple(self._of(session).values()):
            topics = await stream.subscribed_uris()
            if stream.stream_id in self._of(session):
                listeners.replace_topics(stream, topics)

    def _of(self, session: UUID) -> Mapping[UUID, SessionStream]:
        return self._here.get(session, {})

    def _concerning(self, news: Sequence[ChangeNews]) -> list[tuple[UUID, UUID]]:
        """The session and stream of each news item whose session has a stream here."""
        named = [change.object_id.split() for change in news]
        pairs = [(UUID(session), UUID(stream)) for session, stream in named]
        return [pair for pair in pairs if pair[0] in self._here]

    def _forget(self, session: UUID, stream: UUID) -> None:
        if stream in self._opened[session]:
            self._opened[session].remove(stream)
            self._choose(session)

    def _choose(self, session: UUID) -> None:
        newest = self._opened[session][-1:]
        for stream in self._of(session).values():
            stream.newest = [stream.stream_id] == newest


@asynccontextmanager
async def open_get_stream(
    session: ClientSession, principal: Principal, source: str, stream: LongLivedStream
) -> AsyncIterator[None]:
    """Send the session's notifications to `stream` inside the context, where the caller waits.

    Beyond the limit of streams per session the oldest ends. Raises ProtocolError: OVER_LIMIT when
    the caller has too many streams, or opened too many per minute; SESSION_GONE when the session
    has ended.
    """
    limits.count_change(principal, source)
    places = listeners.take_place(principal, source)
    try:
        session_stream = SessionStream(session, principal, stream)
        async with _joined(session_stream):
            await _tell_opened(session_stream)
            try:
                yield
            finally:
                await _tell_closed(session_stream)
    finally:
        listeners.give_back(places)


async def _tell_opened(stream: SessionStream) -> None:
    """Announce the stream; its own process reads the session's subscriptions, if it has any."""
    session, max_streams = stream.session, options().sessions.streams
    if await open_stream(session, stream.stream_id):
        return
    stream.unread = True
    await _rejoin(stream)
    opened = session.id, session.tenant, stream.stream_id, heartbeat.id, max_streams
    try:
        await in_database(rows.stream_opened, *opened)
    except rows.SessionOverError:
        raise session_gone() from None


async def _rejoin(stream: SessionStream) -> None:
    """Listen for the resources, too, to which the session is subscribed."""
    topics = await stream.subscribed_uris()
    served, readable = await look_at(stream.principal, tuple(topics))
    read = {normal: readable[normal].reading if normal in readable else None for normal in topics}
    listeners.remove(stream)
    stream.uris = topics
    listeners.join(stream, served, read)


async def _tell_closed(stream: SessionStream) -> None:
    """Announce that the stream is closed, so that an older one of its session receives messages.

    Not if the session has ended. Not in a drain: all streams close then, and their clients open
    others.
    """
    if draining() or stream.is_over:
        return
    session = stream.session
    session_uses.note(session.id)
    try:
        await in_database(rows.stream_closed, session.id, session.tenant, stream.stream_id)
    except Error as error:
        log.warning("the end of a GET stream could not be announced: %s", type(error).__name__)


@asynccontextmanager
async def _joined(stream: SessionStream) -> AsyncIterator[None]:
    served, _ = await look_at(stream.principal, ())
    listeners.join(stream, served, {})
    presences.register(stream)
    get_streams.add(stream)
    seconds = (stream.session.expires_at - _CLOCK.now()).total_seconds()
    expiry = asyncio.get_running_loop().call_later(seconds, stream.stream.end_stay)
    try:
        with pinging(stream.send_message, options().ping_seconds, stream.stream_id):
            yield
    finally:
        expiry.cancel()
        get_streams.discard(stream)
        presences.unregister(stream)
        listeners.remove(stream)


get_streams = GetStreams()
