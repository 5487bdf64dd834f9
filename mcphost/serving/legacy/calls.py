"""Calls of sessions: each lives in a task of its own, whoever reads what comes of it.

A hang-up ends a reader, never the call. What ends before it has said anything is answered as JSON;
all else is answered on a stream, from which any process can show what was missed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, NamedTuple

from django.db import Error, InterfaceError, OperationalError

from mcphost.audit.records import new_id
from mcphost.audit.services import end_waiting
from mcphost.calls.states import CallState
from mcphost.calls.streamed import SupersededError, Taking, Waiting
from mcphost.calls.streams import StreamRow
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters, tracing
from mcphost.protocol import messages
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import SealError
from mcphost.serving import drain
from mcphost.serving.authority import presences
from mcphost.serving.incoming import Incoming, Session
from mcphost.serving.legacy import asking, methods, requests, room
from mcphost.serving.legacy.asking import Wanted, wanted_in
from mcphost.serving.legacy.cancelling import Cancel, cancellations, name_of
from mcphost.serving.legacy.gate import Gate
from mcphost.serving.legacy.holding import Holding
from mcphost.serving.legacy.keeping import Kept
from mcphost.serving.legacy.outgoing import Outgoing
from mcphost.serving.patience import patiently
from mcphost.serving.resumed import Resumed
from mcphost.vault.errors import VaultError

PRESENT_AFTER_SECONDS: Final = 0.02
"""Most calls are over before anybody could take away what they were admitted with."""
RETRY_SECONDS: Final = 2
WAITING: Final = "Waiting for an answer"

log = logging.getLogger(__name__)


class JsonAnswer(NamedTuple):
    """The answer of a call that ended before it streamed: a JSON-RPC message, the status with which it
    travels, and the error that it tells of, if any, in our own words. Without a body there is nothing
    to answer: the client called it off."""

    body: bytes
    status: int = 200
    error: ProtocolError | None = None


PickUp = Callable[[Holding], Awaitable[None]]
"""Has a call stand where another process has left it."""


class SessionCall:
    """One call of a session: `begin` begins a new one. One that another process has begun is picked up,
    and goes on after the `last` event of its stream."""

    def __init__(
        self,
        incoming: Incoming,
        kept: Kept,
        pick_up: PickUp | None = None,
        last: int | None = None,
    ) -> None:
        assert incoming.session is not None
        loop = asyncio.get_running_loop()
        self._session = incoming.session
        self._pick_up = pick_up
        self._refusal: ProtocolError | None = None
        self._let_go = False
        self._ends = False
        self._reason = ""
        self._settled: asyncio.Future[JsonAnswer | None] = loop.create_future()
        gate = Gate(incoming.session, incoming.principal, incoming.exchange.id)
        self.outgoing = Outgoing(kept, gate, self._streams, self._give_up, last)
        self._holding = Holding(self.outgoing)
        self._incoming = incoming._replace(held=self._holding)
        # At once: a second request of that id is to be refused.
        self._known = _callable_off(incoming, self._call_off)
        self._known.__enter__()
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._over)
        self._timer = loop.call_later(PRESENT_AFTER_SECONDS, presences.enter, self)
        under_way.add(self)

    @property
    def principal(self) -> Principal:
        return self._incoming.principal

    async def settled(self) -> JsonAnswer | None:
        """The answer, if it ended before it streamed; None as soon as it streams."""
        return await asyncio.shield(self._settled)

    def open(self) -> None:
        """Stream from now on, though there is nothing to say yet."""
        self.outgoing.open()

    def lose(self, refusal: ProtocolError) -> None:
        """The caller may not go on: the call ends, and that is its answer."""
        if self._refusal is None and not self._let_go:
            self._refusal = refusal
            self._task.cancel(refusal.message)

    def let_go(self) -> None:
        """The process leaves: if the call waits, another goes on with it."""
        if self._holding.waiting is not None and not (self._refusal or self._ends):
            self._let_go = True
            self._task.cancel("the server is about to stop")

    def _call_off(self) -> None:
        """The client takes its request back: there will be no answer."""
        self._task.cancel("the client cancelled the request")

    def _give_up(self) -> None:
        """What it says is heard by nobody any more."""
        self._task.cancel("another process has the call")

    def _streams(self) -> None:
        self._settle(None)

    def _settle(self, answer: JsonAnswer | None) -> None:
        if not self._settled.done():
            self._settled.set_result(answer)

    def _leave(self) -> None:
        self._ends = True
        self._known.__exit__(None, None, None)
        self._timer.cancel()
        presences.leave(self)

    def _over(self, task: "asyncio.Task[None]") -> None:
        """Even one that was called off before it began."""
        under_way.discard(self)
        self._leave()
        self._settle(JsonAnswer(b""))
        if task.cancelled() and self.outgoing.streaming and not self.outgoing.closed:
            self._task = asyncio.get_running_loop().create_task(self._end(JsonAnswer(b"")))

    async def _run(self) -> None:
        answer = JsonAnswer(b"")
        try:
            answer = await _answer_of(self._incoming, self._result())
        except SupersededError:
            log.warning("a call is no longer this process's", extra=self._facts)
        except asyncio.CancelledError as end:
            self._reason = str(end)
            if self._refusal is not None:
                answer = _refused(self._incoming, self._refusal)
        finally:
            self._leave()
        await self._end(answer)

    async def _result(self) -> Mapping[str, Any]:
        with room.taken(self._incoming, anyway=self._pick_up is not None):
            return await self._run_rounds()

    async def _run_rounds(self) -> Mapping[str, Any]:
        """The result of the method, after as many rounds as it takes."""
        if self._pick_up is not None:
            await self._pick_up(self._holding)
            self._go_if_leaving()
        while True:
            if self._holding.waiting is not None:
                self._holding.go_on(await self._answered(self._holding.waiting))
            result = await methods.dispatch(self._incoming, self._session, self.outgoing)
            wanted = wanted_in(result)
            if wanted is None:
                return result
            await self._ask(wanted)

    async def _ask(self, wanted: Wanted) -> None:
        """Ask what a round wants to know."""
        stream, call = self.outgoing.kept.stream, self._holding.call
        revision = REVISIONS[self._session.revision]
        requests, pause = await patiently(asking.put, stream, call, revision, wanted)
        self._holding.wait(pause)
        await self.outgoing.ask(requests, pause.waiting)
        self._go_if_leaving()

    def _go_if_leaving(self) -> None:
        """The process leaves, and has said so already: what waits goes on elsewhere."""
        if drain.draining() and self._holding.waiting is not None:
            self._let_go = True
            raise asyncio.CancelledError

    async def _answered(self, waiting: Waiting) -> Resumed:
        stream, call = self.outgoing.kept.stream, self._holding.call
        token = self._incoming.exchange.meta.progress_token
        tell = None if token is None else partial(self._tell_of_waiting, token)
        return await asking.answered(stream, call, waiting, tell)

    def _tell_of_waiting(self, token: str | int) -> None:
        """Some clients give up what says nothing for a minute: progress, by next to nothing."""
        self.outgoing.send(messages.progress(token, self._holding.tell(), message=WAITING))

    async def _end(self, answer: JsonAnswer) -> None:
        if not self.outgoing.streaming:
            self.outgoing.abandon()
            self._settle(answer)
        elif self._let_go:
            waiting = self._holding.waiting
            await self.outgoing.release(told=waiting is None or not waiting.asked.questions)
        else:
            await self._withdraw()
            state = CallState.FINISHED if answer.body else CallState.CANCELLED
            await self.outgoing.finish(answer.body, state)

    async def _withdraw(self) -> None:
        """Tell the client that nobody waits for its answers any more, and record that."""
        waiting, stream = self._holding.waiting, self.outgoing.kept.stream
        if waiting is None or self.outgoing.closed:
            return
        call, number = self._holding.call, waiting.asked.round
        try:
            for each in await patiently(asking.withdrawals, stream, call, number):
                self.outgoing.send(each)
            await patiently(end_waiting, call, stream.tenant, number, self._reason)
        except (SealError, VaultError, Error) as error:
            log.error("questions cannot be taken back: %r", error, extra=self._facts)

    @property
    def _facts(self) -> dict[str, str]:
        return {"call": str(self._holding.call)}


under_way: Final[set[SessionCall]] = set()
"""The calls that this process has. For the event loop's thread."""


def begin(incoming: Incoming, session: Session) -> SessionCall:
    """Begin a call, on the event loop."""
    return SessionCall(incoming, _kept(incoming, session))


def let_all_go() -> None:
    """The process leaves: what waits goes on elsewhere. On the event loop."""
    for each in tuple(under_way):
        each.let_go()


def _callable_off(incoming: Incoming, cancel: Cancel) -> AbstractContextManager[None]:
    session, identifier = incoming.session, incoming.exchange.id
    assert session is not None
    assert identifier is not None
    return cancellations.possible(session.id, identifier, cancel)


def _kept(incoming: Incoming, session: Session) -> Kept:
    assert incoming.exchange.id is not None
    return Kept(
        Taking(new_id(), heartbeat.id, 1),
        StreamRow(new_id(), session.tenant, session.id),
        name_of(session.id, incoming.exchange.id),
        partial(requests.write, incoming),
        REVISIONS[session.revision].polling,
    )


async def _answer_of(incoming: Incoming, work: Awaitable[Mapping[str, Any]]) -> JsonAnswer:
    identifier = incoming.exchange.id
    assert identifier is not None
    try:
        return JsonAnswer(messages.response(identifier, await work))
    except ProtocolError as error:
        return _refused(incoming, error)
    except SupersededError:
        raise
    except (OperationalError, InterfaceError) as error:
        log.error("the database is away: %s", type(error).__name__)
        again = {"retryAfter": RETRY_SECONDS}
        text = "The database is away; try again soon"
        return _refused(incoming, ProtocolError(UNAVAILABLE, text, again))
    except Exception:
        log.exception("a request failed")
        return _refused(incoming, ProtocolError(INTERNAL_ERROR, "Internal error"))


def _refused(incoming: Incoming, error: ProtocolError) -> JsonAnswer:
    counters.refused(error.code)
    tracing.refused(error.code)
    named = error.with_id(incoming.exchange.id)
    told = in_session(named, incoming.exchange.method)
    return JsonAnswer(messages.error_response(told), told.status, named)
