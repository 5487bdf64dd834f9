"""Calls of sessions. Each runs in its own task, independent of the responses that show its stream.

A disconnect ends a response, never the call. A call that ends before it has sent anything is
answered as JSON. Every other call is answered on a stream, and any process can replay the events
that the client missed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import Error

from mcphost.audit.records import Record, new_id
from mcphost.audit.services import end_waiting
from mcphost.audit.writer.writer import writer
from mcphost.calls.ownership import Lease, SupersededError
from mcphost.calls.sessions import session_uses
from mcphost.calls.states import OWNED_CALL, CallState, OwnedCallEvent, OwnedCallState
from mcphost.calls.streams import StreamRow
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters, tracing
from mcphost.protocol import messages
from mcphost.protocol.errors import ProtocolError, over_limit
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.runtime.journal import TIMED_OUT
from mcphost.serving import limits, shutdown
from mcphost.serving.background import background
from mcphost.serving.context import ClientSession, Incoming
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.execution import commits, stored_requests
from mcphost.serving.execution.cancelled_calls import CallCancelledError, reply_for
from mcphost.serving.legacy import methods, questions
from mcphost.serving.legacy.cancellation import cancellations, name_of
from mcphost.serving.legacy.outbound_guard import Gate
from mcphost.serving.legacy.owned_call import HeldCall, NotTakenError
from mcphost.serving.legacy.questions import OpenRound
from mcphost.serving.legacy.storage import StoredStream
from mcphost.serving.legacy.stream import Outgoing
from mcphost.serving.limits import InUse, caller
from mcphost.serving.replies import Asking, Refused, SealedState, error_for
from mcphost.serving.revocation import presences

MAX_CALLS: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
"""The total size of the request bodies of those calls."""
TIMES: Final = 4
"""The limits of a tenant are this many times those of one caller."""
RETRY_FULL_SECONDS: Final = 60


class InProgress:
    """How many calls are in progress, and the size of their requests in bytes, by caller and tenant."""

    def __init__(self) -> None:
        self.calls = InUse()
        self.bytes = InUse()

    def check(self, key: str, times: int) -> None:
        """Raise ProtocolError (OVER_LIMIT) if the limits, so many times, are reached under `key`."""
        if self.calls[key] >= MAX_CALLS * times or self.bytes[key] >= MAX_BYTES * times:
            message = "Too many or too large calls in progress: answer or cancel some"
            raise over_limit(message, RETRY_FULL_SECONDS)

    def take(self, keys: Sequence[str], size: int) -> None:
        """Count a call under each key."""
        self.calls.take(keys)
        self.bytes.take(keys, size)

    def give_back(self, keys: Sequence[str], size: int) -> None:
        """Undo `take` with the same arguments."""
        self.calls.give_back(keys)
        self.bytes.give_back(keys, size)


_in_progress = InProgress()


class Capacity:
    """What one call counts for in the limits of its caller and tenant: itself and its size."""

    __slots__ = ("_keys", "_size", "counted")

    def __init__(self, incoming: Incoming) -> None:
        self._keys = (caller(incoming.principal, incoming.source), str(incoming.tenant.id))
        self._size = incoming.size
        self.counted = False

    def take(self, *, anyway: bool = False) -> None:
        """Count the call until `give_back`.

        Raises ProtocolError (OVER_LIMIT) when a limit is reached, unless `anyway` is set.
        """
        if not anyway:
            for key, times in zip(self._keys, (1, TIMES), strict=True):
                _in_progress.check(key, times)
        self.counted = True
        _in_progress.take(self._keys, self._size)

    def give_back(self) -> None:
        """Count the call no longer, if it was counted."""
        if self.counted:
            self.counted = False
            _in_progress.give_back(self._keys, self._size)


PRESENT_AFTER_SECONDS: Final = 0.02
"""When a call is registered for revocation: most calls have ended before, which saves the work."""
WAITING: Final = "Waiting for input"
CALLED_OFF: Final = "an operator cancelled the call: {}"

log = logging.getLogger(__name__)


class JsonAnswer(NamedTuple):
    """The response of a call that ended before it streamed.

    `body` is the JSON-RPC message, empty if the client cancelled the request; `status` is the HTTP
    status; `error` is the error in `body`, if any, before it was adapted to the session's revision.
    """

    body: bytes
    status: int = 200
    error: ProtocolError | None = None


PickUp = Callable[[HeldCall], Awaitable[None]]
"""Restores the state in which another process left a call."""


class SessionCall:
    """One call of a session. `begin` starts a new one.

    A call taken over from another process is restored by `pick_up`; its stream continues after the
    event numbered `last`.

    While the call waits for input responses it rests: it has no task. Whatever wakes it starts
    another one, in the same context.
    """

    __slots__ = (
        "_capacity",
        "_context",
        "_incoming",
        "_moves",
        "_open_round",
        "_owned_call",
        "_pick_up",
        "_reason",
        "_refusal",
        "_session",
        "_settled",
        "_state",
        "_task",
        "_timer",
        "outgoing",
    )

    def __init__(
        self,
        incoming: Incoming,
        stored: StoredStream,
        pick_up: PickUp | None = None,
        last: int | None = None,
    ) -> None:
        assert incoming.session is not None
        loop = asyncio.get_running_loop()
        self._session = incoming.session
        self._pick_up = pick_up
        self._refusal: ProtocolError | None = None
        self._state = OwnedCallState.RUNNING
        self._moves = False
        self._reason = ""
        self._settled: asyncio.Future[JsonAnswer | None] = loop.create_future()
        gate = Gate(incoming.session, incoming.principal, incoming.exchange.id)
        self.outgoing = Outgoing(stored, gate, self._streams, self._give_up, last)
        self._owned_call = HeldCall(self.outgoing)
        self._incoming = incoming._replace(owned_call=self._owned_call)
        # Register at once: a second request with the same id must be refused.
        cancellations.begin(self._session.id, stored.request_name, self._cancel)
        self._capacity = Capacity(incoming)
        self._context = copy_context()
        self._open_round: OpenRound | None = None
        self._task: asyncio.Task[None] | None = None
        self._start()
        self._timer = loop.call_later(PRESENT_AFTER_SECONDS, presences.register, self)
        under_way.add(self)

    @property
    def incoming(self) -> Incoming:
        return self._incoming

    @property
    def principal(self) -> Principal:
        return self._incoming.principal

    async def settled(self) -> JsonAnswer | None:
        """Wait for the response if the call ends before it streams; None as soon as it streams."""
        return await asyncio.shield(self._settled)

    def open(self) -> None:
        """Start the event stream, although there is no message for it yet."""
        self.outgoing.open()

    def revoke(self, refusal: ProtocolError) -> None:
        """End the call because its caller has lost access; `refusal` is its response."""
        if self._refusal is None and self._state is not OwnedCallState.RELEASED:
            self._refusal = refusal
            self._interrupt(refusal.message)

    def release(self) -> None:
        """Release the call at shutdown if it waits for input: another process continues it."""
        if self._owned_call.waiting is not None and self._refusal is None:
            self._interrupt("the server is about to stop", OwnedCallEvent.RELEASE)

    def _cancel(self) -> None:
        """Cancel the call at the client's request. There will be no response."""
        self._interrupt(questions.CANCELLED_REASON)

    def _give_up(self) -> None:
        """Cancel the call because this process can no longer write to its stream."""
        self._interrupt("another process has the call")

    def _start(self, interrupted: str | None = None) -> None:
        """Start a task: for the whole call, or until it rests."""
        self._task = background.start(self._run(interrupted), self._context)
        self._task.add_done_callback(self._over)

    def _become(self, event: OwnedCallEvent) -> None:
        self._state = OWNED_CALL.get((self._state, event), self._state)

    def _interrupt(self, reason: str, event: OwnedCallEvent = OwnedCallEvent.WAKE) -> None:
        """Cancel the call, unless it ends or is released already. If it rests, a task cleans up."""
        if self._state in (OwnedCallState.RELEASED, OwnedCallState.ENDING):
            return
        rested = self._state is OwnedCallState.RESTING
        self._become(event)
        self._reason = reason
        if rested:
            self._start(interrupted=reason)
        elif self._task is not None:
            self._task.cancel(reason)

    def _wake(self) -> None:
        """Go on after a rest: there may be input responses."""
        if self._state is OwnedCallState.RESTING:
            self._become(OwnedCallEvent.WAKE)
            self._start()

    def _streams(self) -> None:
        self._settle(None)

    def _settle(self, answer: JsonAnswer | None) -> None:
        if not self._settled.done():
            self._settled.set_result(answer)

    def _unregister(self) -> None:
        self._become(OwnedCallEvent.END)
        session_uses.note(self._session.id)
        name = self.outgoing.stored.request_name
        cancellations.over(self._session.id, name, self._cancel)
        self._timer.cancel()
        presences.unregister(self)
        self._capacity.give_back()
        self._close_open_round()

    def _close_open_round(self) -> None:
        if self._open_round is not None:
            self._open_round.close()
            self._open_round = None

    def _over(self, task: "asyncio.Task[None]") -> None:
        """Clean up after the last task, even one that was cancelled before it began to run."""
        if task is not self._task:
            return
        if self._state is OwnedCallState.RESTING:
            self._task = None
            return
        under_way.discard(self)
        self._unregister()
        answer = self._refused() if task.cancelled() else JsonAnswer(b"")
        self._settle(answer)
        if task.cancelled() and self.outgoing.streaming and not self.outgoing.closed:
            self._task = background.start(self._end(answer))

    async def _run(self, interrupted: str | None = None) -> None:
        answer = JsonAnswer(b"")
        try:
            if interrupted is not None:
                raise asyncio.CancelledError(interrupted)
            answer = await self._answer()
        except SupersededError:
            log.warning("this process no longer owns a call", extra=self._facts)
        except asyncio.CancelledError as end:
            self._reason = str(end)
            answer = self._refused()
        finally:
            if self._state is not OwnedCallState.RESTING:
                self._unregister()
        if self._state is not OwnedCallState.RESTING:
            await self._end(answer)

    def _refused(self) -> JsonAnswer:
        """The response of a cancelled call: empty unless its caller has lost access."""
        if self._refusal is None:
            return JsonAnswer(b"")
        return _refused(self._incoming, self._refusal)

    async def _answer(self) -> JsonAnswer:
        """Run rounds until the method has a result, or the call rests: then without an answer."""
        identifier = self._incoming.exchange.id
        assert identifier is not None
        try:
            result = await self._run_rounds()
        except SupersededError:
            raise
        except CallCancelledError as end:
            self._reason = CALLED_OFF.format(end.reason)
            exchange = self._incoming.exchange
            reply = reply_for(exchange.method, str(exchange.params.get("uri", "")), end.reason)
            if isinstance(reply, Refused):
                return _refused(self._incoming, reply.error)
            return JsonAnswer(messages.response(identifier, reply.result))
        except Exception as error:  # noqa: BLE001 - it is reported, and logged unless it is a refusal
            return _refused(self._incoming, error_for(error))
        return JsonAnswer(b"" if result is None else messages.response(identifier, result))

    async def _run_rounds(self) -> Mapping[str, Any] | None:
        """Run rounds until the method has a result, and return it; None if the call rests."""
        if not self._capacity.counted:
            self._capacity.take(anyway=self._pick_up is not None)
        if self._pick_up is not None:
            pick_up, self._pick_up = self._pick_up, None
            await pick_up(self._owned_call)
            self._open_round = self._owned_call.waiting
            self._go_if_leaving()
        while await self._is_ready():
            result = await self._round()
            if self._owned_call.asking is not None:
                await self._ask(*self._owned_call.asking)
            elif result is not None:
                return result
        return None

    async def _is_ready(self) -> bool:
        """Prepare the next round, unless the call waits for input responses: then let it rest."""
        waiting = self._owned_call.waiting
        if waiting is None:
            return True
        while (resumed := await waiting.read_responses()) is None:
            if waiting.rest(self._wake, self._tick):
                self._become(OwnedCallEvent.REST)
                return False
        if any(response.answer.failure == TIMED_OUT for response in resumed.responses):
            await self._withdraw(waiting)
        self._owned_call.continue_from(resumed, waiting.last)
        return True

    async def _round(self) -> Mapping[str, Any] | None:
        """Run the next round; None if it did not start, because its last input response was not
        accepted: then the call waits again."""
        waiting = self._open_round
        try:
            return await methods.dispatch(self._incoming, self._session, self.outgoing)
        except NotTakenError:
            assert waiting is not None
            self._owned_call.wait(waiting.again())
            return None
        finally:
            if waiting is not None:
                await waiting.store_last()

    async def _ask(self, asking: Asking, sealed: SealedState) -> None:
        """Send the input requests of a round, which ends with that."""
        revision = REVISIONS[self._session.revision]
        stream = self.outgoing.stored.stream
        requests, call = await questions.prepare(stream, revision, asking, sealed)
        merges = not limits.are_set(self._incoming)
        self._close_open_round()
        round_questions, progress = (
            questions.without_messages(call.round_questions),
            sealed.state.journal.progress,
        )
        self._open_round = OpenRound(
            round_questions, progress, self._owned_call.store, sealed, merges=merges
        )
        self._owned_call.wait(self._open_round)
        await self._committed(partial(self.outgoing.ask, requests, call))
        self._moves = not (asking.requests or shutdown.draining())
        self._go_if_leaving()

    async def _committed(self, write: Callable[[Sequence[Record]], Awaitable[None]]) -> None:
        """Commit the end of the round with what `write` writes.

        Raises the error to reply with if its records could not be committed.
        """
        ending = self._owned_call.take_ending()
        if ending is None:
            await write(())
            return
        try:
            await commits.committed(write(ending.records), ending.turn)
            ending.after_commit()
        except SupersededError:
            # Cancelled elsewhere, the call is still this process's, and so is the record of its round.
            if await in_database_unbounded(self.outgoing.stored.is_mine):
                await _submitted(ending.records)
            else:
                self.outgoing.abandon()
            raise

    def _go_if_leaving(self) -> None:
        """Release a waiting call if its next round is another process's, or if the drain has begun:
        `release_all` ran before it was waiting."""
        if (self._moves or shutdown.draining()) and self._owned_call.waiting is not None:
            self._become(OwnedCallEvent.RELEASE)
            raise asyncio.CancelledError

    @property
    def _tick(self) -> Callable[[], None] | None:
        """Sends minimal progress: some clients time out a request without messages for a minute."""
        token = self._incoming.exchange.meta.progress_token
        return None if token is None else partial(self._send_progress, token)

    def _send_progress(self, token: str | int) -> None:
        text = WAITING if REVISIONS[self._session.revision].audio else None
        self.outgoing.send(messages.progress(token, self._owned_call.next_progress(), message=text))

    async def _end(self, answer: JsonAnswer) -> None:
        if not self.outgoing.streaming:
            self.outgoing.abandon()
            self._settle(await self._recorded(answer))
        elif self._state is OwnedCallState.RELEASED:
            waiting = self._owned_call.waiting
            notify = waiting is None or not waiting.round_questions.questions
            await self.outgoing.release(notify=notify, stays=self._moves)
        else:
            await self._end_waiting()
            await self._finish(answer)

    async def _recorded(self, answer: JsonAnswer) -> JsonAnswer:
        """Commit the end of a round whose input requests could not be sent; return the answer."""
        try:
            await self._committed(_submitted)
        except ProtocolError as error:
            return _refused(self._incoming, error) if answer.body else answer
        return answer

    async def _finish(self, answer: JsonAnswer) -> None:
        """End the stream with the answer, or with an error if its round cannot be recorded."""
        state = CallState.FINISHED if answer.body else CallState.CANCELLED
        failed = answer.error is not None
        finish = partial(self.outgoing.finish, answer.body, state)
        try:
            await self._committed(partial(finish, failed=failed))
        except ProtocolError as error:
            body = _refused(self._incoming, error).body if answer.body else b""
            await self.outgoing.finish(body, state, failed=True)

    async def _end_waiting(self) -> None:
        """Cancel the open input requests of a call that has ended, and record that."""
        waiting, stream = self._owned_call.waiting, self.outgoing.stored.stream
        if waiting is None or self.outgoing.closed:
            return
        try:
            await self._withdraw(waiting)
            number = waiting.round_questions.round
            call = self._owned_call.call
            await in_database_unbounded(end_waiting, call, stream.tenant, number, self._reason)
        except Error as error:
            log.error("the end of a waiting call is not recorded: %r", error, extra=self._facts)

    async def _withdraw(self, waiting: OpenRound) -> None:
        """Notify the client of the input requests of a round that it need not respond to any more."""
        call, number = self._owned_call.call, waiting.round_questions.round
        try:
            for notification in await in_database_unbounded(questions.withdrawals, call, number):
                self.outgoing.send(notification)
        except Error as error:
            log.error("input requests could not be cancelled: %r", error, extra=self._facts)

    @property
    def _facts(self) -> dict[str, str]:
        return {"call": str(self._owned_call.call)}


under_way: Final[set[SessionCall]] = set()
"""The calls that this process owns. Only for the event loop's thread."""


def sessions_in_use() -> list[UUID]:
    """The sessions of the calls in progress in this process. From any thread."""
    return [call.outgoing.stored.stream.session for call in tuple(under_way)]


def begin(incoming: Incoming, session: ClientSession) -> SessionCall:
    """Start a call. On the event loop."""
    assert incoming.exchange.id is not None
    stored = StoredStream(
        Lease(new_id(), session.tenant, heartbeat.id, 1),
        StreamRow(new_id(), session.tenant, session.id),
        name_of(session.id, incoming.exchange.id),
        partial(stored_requests.write, incoming),
        REVISIONS[session.revision].polling,
    )
    return SessionCall(incoming, stored)


def release_all() -> None:
    """Release all waiting calls at shutdown: other processes continue them. On the event loop."""
    for call in tuple(under_way):
        call.release()


async def _submitted(records: Sequence[Record]) -> None:
    if records:
        await writer.submit(records)


def _refused(incoming: Incoming, error: ProtocolError) -> JsonAnswer:
    counters.refused(error.code)
    tracing.refused(error.code)
    named = error.with_id(incoming.exchange.id)
    converted = in_session(named, incoming.exchange.method)
    return JsonAnswer(messages.error_response(converted), converted.status, named)
