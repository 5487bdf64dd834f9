"""The one reader of a process that feeds all sockets of live lists.

It runs while sockets are open: once a second it reads which calls changed, in a thread of its own, and
checks again who may read. So calls write nothing for live lists, and a list with a thousand readers
costs little more than one with a single reader.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from django.utils import timezone

from mcphost.audit.summaries import selectors
from mcphost.console.live.rights import LiveReader, admit, still_allowed
from mcphost.console.live.sockets import CloseCode, LiveSocket
from mcphost.console.live.views import (
    MAX_CHANGES,
    MAX_MISSED,
    LiveView,
    beat,
    messages,
    tenants_read,
)
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter
from mcphost.serving import shutdown

TURN_SECONDS = 1.0
TOGETHER_SECONDS = 0.05
"""How long an arrival waits for others, so that one turn admits them together."""
MAX_ARRIVALS = 256
ADMITTED_AT_ONCE = 64
ADMITTING_SECONDS = 0.25
"""How long a turn admits clients: open lists wait for its end."""
BEAT_SECONDS = 25.0
"""How often a silent list is sent a message, by which its client notices a dead connection."""
BLIND_SECONDS = 10.0
"""How long sockets stay open while the database cannot say who may read."""

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Deciding = asyncio.Future[LiveSocket | None]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A client that wants to read: its session, the list, and the cursor from which it goes on."""

    session: str
    slug: str | None
    record_filter: RecordFilter
    cursor: int
    listing: FilteredList = FilteredList.CALLS


@dataclass(frozen=True, slots=True)
class Seating:
    """What came of an arrival: who reads what, and what changed since its cursor."""

    viewer: LiveReader
    view: LiveView
    first: str


@dataclass(frozen=True, slots=True)
class HubTurn:
    """What one turn found: who may read on, and a message for each list."""

    allowed: frozenset[LiveReader]
    cursor: int
    messages: Mapping[LiveView, str]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "mcphost-live")


class Hub:
    """The sockets of one event loop, and the task that feeds them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._sockets: set[LiveSocket] = set()
        self._of_user: Counter[int] = Counter()
        self._arrivals: list[tuple[Arrival, Deciding]] = []
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._cursor: int | None = None
        self._beaten_at = self._read_at = 0.0

    @property
    def feeding(self) -> asyncio.Task[None] | None:
        """The task that feeds the sockets; None while there are none."""
        return self._task

    def __len__(self) -> int:
        return len(self._sockets)

    async def admit(self, arrival: Arrival) -> LiveSocket | None:
        """Wait for the turn that decides; None if the client may not read, or there are too many."""
        places = settings.MCPHOST_CONSOLE_SOCKETS - len(self._sockets)
        if shutdown.draining() or len(self._arrivals) >= min(places, MAX_ARRIVALS):
            return None
        deciding: Deciding = self.loop.create_future()
        self._arrivals.append((arrival, deciding))
        self._woken.set()
        if self._task is None:
            self._task = self.loop.create_task(self._feed_sockets())
        return await deciding

    def remove(self, socket: LiveSocket) -> None:
        """Forget a socket that was closed."""
        if socket in self._sockets:
            self._sockets.remove(socket)
            self._of_user[socket.viewer.user] -= 1

    def drain(self) -> None:
        """End all sockets: their clients connect to another process."""
        for socket in tuple(self._sockets):
            self._close_socket(socket, CloseCode.RESTART)
        for _, deciding in self._arrivals:
            self._decide(deciding, None)
        self._arrivals.clear()

    async def _feed_sockets(self) -> None:
        self._read_at = self._beaten_at = time.monotonic()
        try:
            while self._sockets or self._arrivals:
                if self._arrivals:
                    await asyncio.sleep(TOGETHER_SECONDS)
                await self._turn()
                await self._pause()
        finally:
            self._task = self._cursor = None
            _threads().submit(connections.close_all)

    async def _pause(self) -> None:
        self._woken.clear()
        if not self._arrivals:
            try:
                await asyncio.wait_for(self._woken.wait(), TURN_SECONDS)
            except TimeoutError:
                return

    async def _turn(self) -> None:
        now = time.monotonic()
        deciding = self._arrivals[:ADMITTED_AT_ONCE]
        del self._arrivals[:ADMITTED_AT_ONCE]
        viewers = {socket.viewer for socket in self._sockets}
        views = {socket.view for socket in self._sockets}
        try:
            turn = await self._in_thread(read_turn, self._cursor, viewers, views)
            self._read_at, self._cursor = now, turn.cursor
            self._deliver(turn)
            await self._admit(turn.cursor, deciding)
        except DatabaseError as error:
            log.warning("the live lists cannot be read: %s", type(error).__name__)
            self._fail(now, deciding)
            return
        except Exception:
            log.exception("the live lists go on after an error")
            self._fail(now, deciding)
            return
        if now - self._beaten_at >= BEAT_SECONDS:
            self._beaten_at = now
            for socket in tuple(self._sockets):
                self._offer(socket, beat(turn.cursor))

    def _in_thread(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> Awaitable[T]:
        return self.loop.run_in_executor(_threads(), work, *args)

    async def _admit(self, cursor: int, deciding: list[tuple[Arrival, Deciding]]) -> None:
        """Decide about arrivals, the first ones first. Those for whom there is no time come next."""
        if not deciding:
            return
        max_sockets = settings.MCPHOST_CONSOLE_SOCKETS_PER_USER
        full = frozenset(user for user, count in self._of_user.items() if count >= max_sockets)
        arrivals = [arrival for arrival, _ in deciding]
        seatings = await self._in_thread(read_arrivals, cursor, arrivals, full)
        for (_, future), seating in zip(deciding, seatings, strict=False):
            self._decide(future, self._seat(seating))
        remaining = deciding[len(seatings) :]
        if shutdown.draining():
            for _, future in remaining:
                self._decide(future, None)
        else:
            self._arrivals[:0] = remaining

    def _deliver(self, turn: HubTurn) -> None:
        for socket in tuple(self._sockets):
            if socket.viewer not in turn.allowed:
                self._close_socket(socket, CloseCode.NO_ACCESS)
            elif socket.view in turn.messages:
                self._offer(socket, turn.messages[socket.view])

    def _offer(self, socket: LiveSocket, text: str) -> None:
        socket.offer(text)
        if socket.code is not None:
            self.remove(socket)

    def _close_socket(self, socket: LiveSocket, code: CloseCode) -> None:
        socket.end(code)
        self.remove(socket)

    def _seat(self, admission: Seating | None) -> LiveSocket | None:
        if admission is None or shutdown.draining():
            return None
        user = admission.viewer.user
        if self._of_user[user] >= settings.MCPHOST_CONSOLE_SOCKETS_PER_USER:
            return None
        socket = LiveSocket(admission.viewer, admission.view)
        self._sockets.add(socket)
        self._of_user[user] += 1
        socket.offer(admission.first)
        return socket

    def _decide(self, future: Deciding, socket: LiveSocket | None) -> None:
        if not future.done():
            future.set_result(socket)
        elif socket is not None:  # the client disconnected meanwhile
            self.remove(socket)

    def _fail(self, now: float, deciding: Sequence[tuple[Arrival, Deciding]]) -> None:
        for _, future in deciding:
            self._decide(future, None)
        if now - self._read_at >= BLIND_SECONDS:
            for socket in tuple(self._sockets):
                self._close_socket(socket, CloseCode.TRY_LATER)


def read_turn(
    cursor: int | None, viewers: Collection[LiveReader], views: Collection[LiveView]
) -> HubTurn:
    """Read what changed since `cursor`, and who may read on. Runs in a thread."""
    close_old_connections()
    try:
        allowed = still_allowed(viewers)
        if cursor is None or not views:
            changes = selectors.CallChanges(frozenset(), selectors.newest())
        else:
            changes = selectors.changed(tenants_read(views), cursor, MAX_CHANGES)
        texts = messages(changes, views, timezone.now())
        return HubTurn(allowed, changes.cursor, texts)
    finally:
        close_old_connections()


def read_arrivals(
    cursor: int, arrivals: Sequence[Arrival], full: Collection[int]
) -> Sequence[Seating | None]:
    """Read who may join, of the first at least, and what they missed. Runs in a thread.

    After the turn that read up to `cursor`, so that no change falls between the two. `full` are the
    users who have as many sockets as they may.
    """
    close_old_connections()
    seatings: list[Seating | None] = []
    end = time.monotonic() + ADMITTING_SECONDS
    try:
        for arrival in arrivals:
            seatings.append(_admitted(arrival, cursor, full))
            if time.monotonic() >= end:
                break
    finally:
        close_old_connections()
    return seatings


def _admitted(arrival: Arrival, cursor: int, full: Collection[int]) -> Seating | None:
    admitted = admit(arrival.session, arrival.slug, arrival.record_filter, arrival.listing)
    if admitted is None or admitted[0].user in full:
        return None
    viewer, view = admitted
    missed = selectors.changed(view.tenants, arrival.cursor, MAX_MISSED)
    first = messages(missed, [view], timezone.now()).get(view)
    return Seating(viewer, view, first or beat(max(cursor, missed.cursor)))


_latest: Hub | None = None


def hub() -> Hub:
    """Return the hub of the running loop. A server has one loop; tests use several in turn."""
    global _latest  # noqa: PLW0603 - one per event loop
    loop = asyncio.get_running_loop()
    if _latest is None or _latest.loop is not loop:
        _latest = Hub(loop)
    return _latest


def drain() -> None:
    """End the sockets of this process, when its drain begins."""
    if _latest is not None:
        _latest.drain()
