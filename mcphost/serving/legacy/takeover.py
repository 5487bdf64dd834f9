"""Take over calls of sessions whose owner process has died or released them.

Housekeeping looks for them every few seconds. A process that receives an input response for such a
call, or a request to replay its stream, takes it over at once. A process that lacks the code of a call
leaves it to others, while one of them has it or may come with it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final
from uuid import UUID

from mcphost.audit.records import new_id
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import session_calls, sessions
from mcphost.calls.session_calls import TakenOver
from mcphost.calls.states import CallState
from mcphost.calls.streams import Batch
from mcphost.feed.loop import ChangeNews
from mcphost.feed.nodes import heartbeat
from mcphost.identity import selectors as identity
from mcphost.identity.selectors import anonymous
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import SealError
from mcphost.serving import revocation, shutdown
from mcphost.serving.background import background
from mcphost.serving.context import Incoming
from mcphost.serving.database import commit_patiently, in_database_unbounded
from mcphost.serving.events import Relay
from mcphost.serving.execution import stored_requests
from mcphost.serving.execution.stored_requests import TenantGoneError
from mcphost.serving.legacy import missing_functions, questions, storage
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.missing_functions import SessionTarget
from mcphost.serving.legacy.owned_call import HeldCall
from mcphost.serving.legacy.questions import OpenRound
from mcphost.serving.legacy.session import principal_in
from mcphost.serving.legacy.storage import StoredStream
from mcphost.serving.request_state import InvalidStateError
from mcphost.tenants import selectors as tenants
from mcphost.vault.errors import VaultError

ENDED: Final = "the client ended the session"

log = logging.getLogger(__name__)


class Takeovers:
    """The takeovers of one process, one at a time for each call."""

    def __init__(self) -> None:
        self._orphans: Relay[UUID] = Relay(self._take_over_all)
        self._deferred: dict[UUID, SessionTarget] = {}
        """Calls that were left to other processes, and what they run."""
        self._in_hand: dict[UUID, asyncio.Future[None]] = {}
        """Calls that are being taken over, so that only one task does it; others wait for it. For the
        event loop's thread."""

    def find_orphans(self) -> None:
        """Take over calls that no living process owns. In a database thread."""
        if not shutdown.draining():
            # Those that are left do not keep it from finding the others.
            limit = session_calls.FOUND_AT_ONCE + len(self._deferred)
            orphans = dict.fromkeys(session_calls.orphans(heartbeat.id, limit))
            for call in tuple(self._deferred):  # the event loop's thread changes it meanwhile
                if call not in orphans:
                    self._deferred.pop(call, None)
            for call in orphans:
                self._orphans.put(call)

    def retry_deferred(self) -> None:
        """Look at the calls that were left to other processes, whose functions have changed. From the
        change log's thread."""
        for call in tuple(self._deferred):
            self._orphans.put(call)

    def on_change(self, news: ChangeNews) -> None:
        """Take over a call that a process has released. From the change log's thread."""
        if not shutdown.draining():
            self._orphans.put(UUID(news.object_id))

    def start(self) -> None:
        """Continue calls, on the running loop."""
        self._orphans.start()

    async def stop(self) -> None:
        """Take over no more calls."""
        await self._orphans.stop()
        self._deferred.clear()

    async def take_over(self, **which: UUID) -> None:
        """Take over calls that no living process owns; `which` filters by column values.

        Cancelling this coroutine does not stop the takeover.
        """
        if shutdown.draining():
            return
        if orphans := await in_database_unbounded(session_calls.orphans, heartbeat.id, **which):
            await asyncio.shield(background.start(self._take_over_all(orphans)))

    async def continue_call(self, call: UUID, tenant: UUID) -> None:
        """Continue a call of another process that has a new input response: here if no living process
        owns it, or where its code is."""
        await self.take_over(id=call)
        if call in self._deferred:
            await in_database_unbounded(session_calls.announce_released, call, tenant)

    async def _take_over_all(self, calls: Sequence[UUID]) -> None:
        for call in calls:
            if shutdown.draining():  # other processes take over the rest without waiting
                return
            takeover = self._in_hand.get(call)
            if takeover is not None:
                await asyncio.wait((takeover,))
                continue
            done = self._in_hand[call] = asyncio.get_running_loop().create_future()
            try:
                await self._take_over(call)
            finally:
                del self._in_hand[call]
                done.set_result(None)

    async def _take_over(self, call: UUID) -> None:
        if await self._is_left(call):
            return
        taken_over = await in_database_unbounded(session_calls.Takeover(call, heartbeat.id))
        if taken_over is not None:
            log.warning("a call is taken over", extra={"call": str(call)})
            await _go_on(taken_over)

    async def _is_left(self, call: UUID) -> bool:
        """Whether the call is left to another process, which can run it. Its request is read once."""
        target = self._deferred.get(call) or await _target(call)
        if target is None or not await missing_functions.awaits_another(target):
            self._deferred.pop(call, None)
            return False
        if call not in self._deferred:
            log.info("a call is left to processes that have its code", extra={"call": str(call)})
            self._deferred[call] = target
        return True


async def _target(call: UUID) -> SessionTarget | None:
    """What a call runs, if this process lacks code; None also if its request cannot be read."""
    row = await in_database_unbounded(session_calls.request_of, call)
    if row is None or not await missing_functions.lacks_any(row.tenant):
        return None
    tenant = await in_database_unbounded(tenants.tenant, row.tenant)
    if tenant is None:
        return None
    try:
        written = await in_database_unbounded(storage.unseal, row.tenant, call.bytes, row.request)
        return missing_functions.target_of(stored_requests.read(written, tenant))
    except (SealError, VaultError, InvalidStateError):
        return None


async def _go_on(taken_over: TakenOver) -> None:
    """Continue the call, or end it if that fails: no other process will."""
    try:
        await _take_up(taken_over)
    except Exception:
        log.exception("a call cannot go on", extra={"call": str(taken_over.call.id)})
        end = partial(Batch, (), storage.PICK_UP)
        with suppress(RecordLostError, RecordRefusedError):
            await commit_patiently(
                session_calls.finish(taken_over.owner, taken_over.stream, CallState.CANCELLED, end)
            )


async def _take_up(taken_over: TakenOver) -> None:
    """Restore the call and start its task.

    Raises SealError, VaultError, TenantGoneError: another attempt would fail in the same way.
    """
    stream = taken_over.stream
    tenant = await in_database_unbounded(tenants.tenant, stream.tenant)
    if tenant is None:
        raise TenantGoneError
    written = await in_database_unbounded(
        storage.unseal, stream.tenant, taken_over.call.id.bytes, taken_over.call.request
    )
    incoming = stored_requests.read(written, tenant)
    incoming = incoming._replace(
        http_request_id=new_id()
    )  # records distinguish both processes' runs
    now = await _present(incoming)
    ended = await in_database_unbounded(sessions.find, stream.session, stream.tenant) is None
    pick_up = partial(_pick_up, taken_over, incoming.principal, now, ended)
    if now is not None:
        incoming = incoming._replace(principal=now)
    SessionCall(incoming, _stored(taken_over, incoming, written), pick_up, last=taken_over.last)


def _stored(taken_over: TakenOver, incoming: Incoming, written: bytes) -> StoredStream:
    assert incoming.session is not None
    polling = REVISIONS[incoming.session.revision].polling
    name = taken_over.call.request_name
    return StoredStream(taken_over.owner, taken_over.stream, name, lambda: written, polling)


async def _present(incoming: Incoming) -> Principal | None:
    """The principal of the call with its current scopes; None if it has lost access."""
    token, session = incoming.principal.token_id, incoming.session
    assert session is not None
    if token is not None:
        return (await in_database_unbounded(identity.current_principals, [token])).get(token)
    now = anonymous(incoming.tenant)
    return None if now is None else principal_in(session, now)


async def _pick_up(
    taken_over: TakenOver,
    before: Principal,
    now: Principal | None,
    ended: bool,
    owned_call: HeldCall,
) -> None:
    """Restore the state of the call in `owned_call`.

    Raises ProtocolError if the caller may no longer go on, CancelledError if the client cancelled
    the request or ended the session, and CallCancelledError if a user cancelled the call.
    """
    tenant, call = taken_over.stream.tenant, taken_over.call.id
    if taken_over.journal and taken_over.state is not CallState.RUNNING:
        round_questions, progress = await in_database_unbounded(
            questions.waiting_of, taken_over.stream, call, taken_over.journal
        )
        owned_call.wait(OpenRound(round_questions, progress, owned_call.store))
    if ended:
        raise asyncio.CancelledError(ENDED)
    if taken_over.state is CallState.CANCELLED:
        raise await questions.cancellation_of(call, tenant)
    refusal = revocation.refusal(before, now)
    if refusal is not None:
        raise refusal
    if owned_call.waiting is not None:
        return
    if taken_over.journal:
        owned_call.continue_from(await questions.take_in(tenant, call), begun=True)
    else:
        owned_call.uncertain = True


takeovers: Final = Takeovers()
