"""Calls of sessions: each lives in a task of its own, whoever reads what comes of it.

A hang-up ends a reader, never the call. What ends before it has said anything is answered as JSON;
all else is answered on a stream, from which any process can show what was missed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, Final, NamedTuple

from django.db import InterfaceError, OperationalError

from mcphost.audit.records import new_id
from mcphost.calls.states import CallState
from mcphost.calls.streamed import SupersededError, Taking
from mcphost.calls.streams import StreamRow
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters, tracing
from mcphost.protocol import messages
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.serving.authority import presences
from mcphost.serving.incoming import Incoming, Session
from mcphost.serving.legacy import asking, methods, requests
from mcphost.serving.legacy.asking import Wanted, wanted_in
from mcphost.serving.legacy.cancelling import Cancel, cancellations, name_of
from mcphost.serving.legacy.holding import Holding
from mcphost.serving.legacy.keeping import Kept
from mcphost.serving.legacy.outgoing import Outgoing
from mcphost.serving.patience import patiently
from mcphost.serving.resumed import Resumed

PRESENT_AFTER_SECONDS: Final = 0.02
"""Most calls are over before anybody could take away what they were admitted with."""
RETRY_SECONDS: Final = 2

log = logging.getLogger(__name__)


class JsonAnswer(NamedTuple):
    """The answer of a call that ended before it streamed: a JSON-RPC message, the status with which it
    travels, and the error that it tells of, if any, in our own words. Without a body there is nothing
    to answer: the client called it off."""

    body: bytes
    status: int = 200
    error: ProtocolError | None = None


class SessionCall:
    """One call of a session. `begin` makes them."""

    def __init__(self, incoming: Incoming, session: Session) -> None:
        loop = asyncio.get_running_loop()
        self._session = session
        self._refusal: ProtocolError | None = None
        self._settled: asyncio.Future[JsonAnswer | None] = loop.create_future()
        self.outgoing = Outgoing(_kept(incoming, session), self._streams, self._give_up)
        self._holding = Holding(self.outgoing)
        self._incoming = incoming._replace(held=self._holding)
        self._known = ExitStack()  # at once: a second request of that id is to be refused
        self._known.enter_context(_callable_off(incoming, self._call_off))
        self._task = loop.create_task(self._run())
        _under_way.add(self._task)
        self._task.add_done_callback(self._over)
        self._timer = loop.call_later(PRESENT_AFTER_SECONDS, presences.enter, self)

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
        if self._refusal is None:
            self._refusal = refusal
            self._task.cancel(refusal.message)

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
        self._known.close()
        self._timer.cancel()
        presences.leave(self)

    def _over(self, task: "asyncio.Task[None]") -> None:
        """Even one that was called off before it began."""
        _under_way.discard(task)
        self._leave()
        self._settle(JsonAnswer(b""))

    async def _run(self) -> None:
        answer = JsonAnswer(b"")
        try:
            answer = await _answer_of(self._incoming, self._result())
        except SupersededError:
            log.warning(
                "a call is no longer this process's", extra={"call": str(self._holding.call)}
            )
        except asyncio.CancelledError:
            if self._refusal is not None:
                answer = _refused(self._incoming, self._refusal)
        finally:
            self._leave()
        await self._end(answer)

    async def _result(self) -> Mapping[str, Any]:
        """The result of the method, after as many rounds as it takes."""
        while True:
            result = await methods.dispatch(self._incoming, self._session, self.outgoing)
            wanted = wanted_in(result)
            if wanted is None:
                return result
            self._holding.go_on(await self._ask(wanted))

    async def _ask(self, wanted: Wanted) -> Resumed:
        """Ask what a round wants to know, and wait for it."""
        stream, call = self.outgoing.kept.stream, self._holding.call
        revision = REVISIONS[self._session.revision]
        requests, waiting = await patiently(asking.put, stream, call, revision, wanted)
        await self.outgoing.ask(requests, waiting)
        return await asking.answered(stream, call, waiting)

    async def _end(self, answer: JsonAnswer) -> None:
        if not self.outgoing.streaming:
            self.outgoing.abandon()
            self._settle(answer)
        else:
            state = CallState.FINISHED if answer.body else CallState.CANCELLED
            await self.outgoing.finish(answer.body, state)


_under_way: set["asyncio.Task[None]"] = set()
"""Nobody else may be there to keep them."""


def begin(incoming: Incoming, session: Session) -> SessionCall:
    """Begin a call, on the event loop."""
    return SessionCall(incoming, session)


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
