"""The streams that a session keeps open by GET, to be told what changed (spec: basic/transports,
Listening for Messages from the Server).

A session may have several, on any processes, and each message goes to the one that was opened last.
Which one that is, every process learns from the feed, in its order and between the changes that are
told: so for each change all processes agree on it, and nobody has to be asked.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from django.db import Error

from mcphost.audit.records import new_id
from mcphost.calls import sessions as rows
from mcphost.feed.loop import ChangeNews
from mcphost.protocol.subscriptions import LISTS
from mcphost.protocol.uris import normalize
from mcphost.runtime.call import Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving import policy
from mcphost.serving.authority import presences
from mcphost.serving.drain import draining
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session
from mcphost.serving.legacy.gate import Gate
from mcphost.serving.legacy.pinging import pinging
from mcphost.serving.listeners import Listener, listeners
from mcphost.serving.options import options
from mcphost.serving.streams import StandingStream
from mcphost.serving.subscriptions import look_at

UNHEARD = ChangeNews(0, None, "sessions-unheard", "")
"""Stands for what was not heard of any session."""

log = logging.getLogger(__name__)
_CLOCK = SystemClock()


class SessionStream(Listener):
    """A standing stream. It hears of everything; it is told while it is its session's newest."""

    __slots__ = ("gate", "newest", "session", "stream_id")

    def __init__(self, session: Session, principal: Principal, stream: StandingStream) -> None:
        lists = tuple(LISTS) if principal.may(policy.LIST) else ()
        super().__init__(None, principal, stream, lists, {})
        self.session = session
        self.gate = Gate(session, principal)
        self.stream_id = new_id()
        self.newest = False

    def tell(self, topic: str) -> None:
        if self.newest:
            super().tell(topic)

    def say(self, message: bytes) -> None:
        if self.gate.says(message):
            super().say(message)

    async def wanted(self) -> Mapping[str, str]:
        """What its session wants to be told of, by normal form."""
        may = self.principal.may(policy.CALL)
        uris = await in_database(rows.topics, self.session.id) if may else ()
        return {normalize(uri): uri for uri in reversed(uris)}


class Standings:
    """The standing streams of this process, and what is known of others of the same sessions.

    Only for the event loop's thread, except `heard_nothing`.
    """

    def __init__(self) -> None:
        self._here: dict[UUID, dict[UUID, SessionStream]] = defaultdict(dict)
        self._opened: dict[UUID, list[UUID]] = defaultdict(list)

    def __len__(self) -> int:
        return sum(map(len, self._here.values()))

    def add(self, stream: SessionStream) -> None:
        """From now on, listen for what is told of its session."""
        self._here[stream.session.id][stream.stream_id] = stream

    def discard(self, stream: SessionStream) -> None:
        session = stream.session.id
        self._here[session].pop(stream.stream_id, None)
        self._forget(session, stream.stream_id)
        if not self._here[session]:
            del self._here[session]
            self._opened.pop(session, None)

    async def opened(self, news: Sequence[ChangeNews]) -> None:
        """Streams were opened, here or elsewhere: each is its session's newest now."""
        for session, stream in self._concerning(news):
            self._forget(session, stream)
            self._opened[session].append(stream)
            self._choose(session)
            if stream in self._here[session]:
                await self._turn(session)  # to what it was told of while this one was being opened

    async def closed(self, news: Sequence[ChangeNews]) -> None:
        for session, stream in self._concerning(news):
            self._forget(session, stream)

    async def ended(self, news: Sequence[ChangeNews]) -> None:
        """Sessions ended: so do their streams."""
        for one in news:
            for stream in tuple(self._of(UUID(one.object_id)).values()):
                stream.stream.leave()

    async def turned(self, news: Sequence[ChangeNews]) -> None:
        """Sessions want to be told of something else."""
        for session in {UUID(one.object_id) for one in news}:
            await self._turn(session)

    async def unheard(self, news: Sequence[ChangeNews]) -> None:
        """Of other processes nothing is known any more. Better is a message twice than not at all."""
        for session, here in self._here.items():
            self._opened[session] = [one for one in self._opened[session] if one in here]
            self._choose(session)

    def heard_nothing(self) -> None:
        """There was a gap in the feed. From the feed's thread."""
        listeners.heard(UNHEARD)

    async def _turn(self, session: UUID) -> None:
        for stream in tuple(self._of(session).values()):
            topics = await stream.wanted()
            if stream.stream_id in self._of(session):
                listeners.turn_to(stream, topics)

    def _of(self, session: UUID) -> Mapping[UUID, SessionStream]:
        return self._here.get(session, {})

    def _concerning(self, news: Sequence[ChangeNews]) -> list[tuple[UUID, UUID]]:
        """Session and stream of the news that is about sessions with a stream here."""
        named = [one.object_id.split() for one in news]
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
async def standing(
    session: Session, principal: Principal, source: str, stream: StandingStream
) -> AsyncIterator[None]:
    """While in here, the session is told on `stream` what changes; the caller waits for its end.

    Raises ProtocolError (OVER_LIMIT) when there are too many.
    """
    places = listeners.take_place(principal, source)
    try:
        listeners.attach()
        one = SessionStream(session, principal, stream)
        topics = await one.wanted()
        async with _joined(one, topics):
            await in_database(rows.stream_opened, session.id, session.tenant, one.stream_id)
            try:
                yield
            finally:
                await _tell_closed(one)
    finally:
        listeners.give_back(places)


async def _tell_closed(stream: SessionStream) -> None:
    """Older ones elsewhere may be told again. In a drain all go, and their clients open others."""
    if draining():
        return
    session = stream.session
    try:
        await in_database(rows.stream_closed, session.id, session.tenant, stream.stream_id)
    except Error as error:
        log.warning("a stream's end was not told to other processes: %s", type(error).__name__)


@asynccontextmanager
async def _joined(stream: SessionStream, topics: Mapping[str, str]) -> AsyncIterator[None]:
    served, readable = await look_at(stream.principal, tuple(topics))
    read = {normal: readable[normal].reading if normal in readable else None for normal in topics}
    stream.uris = topics
    listeners.join(stream, served, read)
    presences.enter(stream)
    standings.add(stream)
    seconds = (stream.session.expires_at - _CLOCK.now()).total_seconds()
    expiry = asyncio.get_running_loop().call_later(seconds, stream.stream.leave)
    try:
        with pinging(stream.say, options().ping_seconds):
            yield
    finally:
        expiry.cancel()
        standings.discard(stream)
        presences.leave(stream)
        listeners.leave(stream)


standings = Standings()
