"""Run rounds of stateless calls that other processes left because they lack the function.

The claim is the truth. Whatever wakes this module, an announcement, a freed place or the regular
look, it reads the claims, and takes one by compare-and-set.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from mcphost.audit.records import new_id
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import claims as rows
from mcphost.calls.claims import LeftClaim
from mcphost.calls.ownership import SupersededError
from mcphost.feed.loop import ChangeNews
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.python.kind import python_kind
from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    OVER_LIMIT,
    UNAVAILABLE,
    ProtocolError,
    invalid_params,
)
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import lookups, replies, revocation, sealing, shutdown
from mcphost.serving.background import background
from mcphost.serving.context import Incoming, Turn
from mcphost.serving.database import DATABASE_ERRORS, in_database
from mcphost.serving.events import Relay
from mcphost.serving.execution import (
    audit_records,
    claims,
    missing_functions,
    rounds,
    stored_requests,
)
from mcphost.serving.execution.calls import RoundPorts, resume_turn, turn_of
from mcphost.serving.execution.claims import Won
from mcphost.serving.ports import NoStream
from mcphost.serving.replies import Refused
from mcphost.serving.request_state import InvalidStateError
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import Phase
from mcphost.vault.errors import VaultError

MAX_ROUNDS: Final = 64
"""How many left rounds this process runs at once."""
MAX_ROUNDS_PER_TENANT: Final = 16
NOT_OFFERED: Final = "What this call calls is no longer offered to this caller"
UNREADABLE: Final = "The call can no longer be read"

log = logging.getLogger(__name__)


class TakenRound:
    """A left round that runs here. It is a `serving.revocation.Presence`: it ends when its caller loses
    access."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.refusal: ProtocolError | None = None
        self.work: asyncio.Task[None] | None = None

    def revoke(self, refusal: ProtocolError) -> None:
        """End the round; `refusal` is its reply. At the cut of this process there is none: another
        process runs the round."""
        if self.refusal is None and self.work is not None:
            self.refusal = None if shutdown.phase() is Phase.CUT else refusal
            self.work.cancel(refusal.message)


class LeftRounds:
    """Takes rounds that other processes have left. On the event loop, except `find_rounds` and `on_…`."""

    def __init__(self) -> None:
        self._running: dict[tuple[UUID, int], asyncio.Task[None]] = {}
        self._by_tenant: Counter[UUID] = Counter()
        self._relay: Relay[None] = Relay(self._take_all)

    def __len__(self) -> int:
        return len(self._running)

    def start(self) -> None:
        """Take rounds, on the running loop."""
        self._relay.start()

    async def stop(self) -> None:
        """Take no more rounds. Those that run go on."""
        await self._relay.stop()

    def find_rounds(self) -> None:
        """Find rounds that wait for a process. In a database thread, every few seconds."""
        self._relay.put(None)

    def on_left(self, news: ChangeNews) -> None:
        """A round may wait for this process. From the change log's thread."""
        self._relay.put(None)

    async def all_over(self) -> None:
        """Wait until no left round runs here."""
        while self._running:
            await asyncio.wait(tuple(self._running.values()))

    def cut(self) -> None:
        """Cancel all, at the end of the drain: their claims are released."""
        for work in tuple(self._running.values()):
            work.cancel("the server is about to stop")

    async def _take_all(self, _: Sequence[None]) -> None:
        functions = tuple(python_kind.functions())
        if shutdown.draining() or not functions or len(self._running) >= MAX_ROUNDS:
            return
        full = [tenant for tenant in self._by_tenant if self._is_full(tenant)]
        for left_claim in await in_database(rows.left_claims, functions, heartbeat.id, full):
            key = left_claim.call, left_claim.round
            if key in self._running or self._is_full(left_claim.tenant):
                continue
            if len(self._running) >= MAX_ROUNDS:
                return
            work = background.start(self._run_left(left_claim))
            self._running[key] = work
            self._by_tenant[left_claim.tenant] += 1
            work.add_done_callback(partial(self._over, left_claim))

    def _is_full(self, tenant: UUID) -> bool:
        return self._by_tenant[tenant] >= MAX_ROUNDS_PER_TENANT

    def _over(self, left_claim: LeftClaim, _: "asyncio.Task[None]") -> None:
        was_full = self._is_full(left_claim.tenant) or len(self._running) >= MAX_ROUNDS
        del self._running[left_claim.call, left_claim.round]
        self._by_tenant -= Counter([left_claim.tenant])
        if was_full:
            self._relay.put(None)

    async def _run_left(self, left_claim: LeftClaim) -> None:
        """Run a round. Whatever happens, its claim is concluded or can be taken again."""
        try:
            turn = await _turn_of(left_claim)
            won = (
                None
                if turn is None
                else await claims.take_left(left_claim, audit_records.started(turn))
            )
            if turn is not None and won is not None:
                left_claim = left_claim._replace(epoch=won.epoch)
                await _run_won(turn, won)
        except (*DATABASE_ERRORS, RecordLostError, asyncio.CancelledError, SupersededError):
            pass  # the next look finds it again, here or at another process
        except ProtocolError as error:
            await _refuse(left_claim, error)
        except (SealError, VaultError, InvalidStateError) as error:
            log.error("a left round can no longer be read: %r", error, extra=_facts(left_claim))
            await _refuse(left_claim, ProtocolError(INTERNAL_ERROR, UNREADABLE))
        except Exception:
            log.exception("a left round could not run", extra=_facts(left_claim))


released_rounds: Final = LeftRounds()


async def _turn_of(left_claim: LeftClaim) -> Turn | None:
    """The turn of a left round, with the rights that its caller has now; None if it has ended, or is
    not for this process any more. Raises ProtocolError if it must not run; SealError, VaultError and
    InvalidStateError if it cannot be read."""
    if left_claim.epoch >= rounds.MAX_ATTEMPTS:
        raise ProtocolError(INTERNAL_ERROR, rounds.GIVEN_UP)
    request = await in_database(rows.left_request, left_claim)
    if not request:
        return None
    incoming, now = await _restored(left_claim, request)
    refusal = revocation.refusal(incoming.principal, now)
    if refusal is not None or now is None:
        raise refusal or invalid_params(NOT_OFFERED)
    incoming = incoming._replace(principal=now)
    params = incoming.exchange.params
    target = lookups.target(incoming.exchange.method, params)
    offering = await lookups.offering(incoming.tenant.id)
    served = None if target is None else lookups.primitive(offering, target, now.scopes)
    if target is None or served is None:
        raise invalid_params(NOT_OFFERED)
    primitive, variables = served
    if primitive.missing_function:  # it was published with another function meanwhile
        return None
    is_read = target.method == "resources/read"
    arguments = variables if is_read else params.get("arguments") or {}
    turn = turn_of(incoming, primitive, target.name, arguments)
    return await resume_turn(turn._replace(call=turn.call._replace(id=left_claim.call)))


async def _run_won(turn: Turn, won: Won) -> None:
    running = TakenRound(turn.call.principal)
    running.work = asyncio.current_task()
    presences.register(running)
    try:
        await rounds.run_won(turn, RoundPorts(turn, NoStream()), won)
    except asyncio.CancelledError:
        if running.refusal is None:
            raise
        raise running.refusal from None
    finally:
        presences.unregister(running)


async def _restored(left_claim: LeftClaim, request: str) -> tuple[Incoming, Principal | None]:
    """The request, and its principal as it is now. Raises SealError, VaultError, InvalidStateError, and
    ProtocolError if its tenant is gone."""
    tenant = await lookups.tenant(left_claim.tenant)
    if tenant is None:
        raise invalid_params(NOT_OFFERED)
    context = missing_functions.context(left_claim.call)
    written = await sealing.unseal(Purpose.ROW, left_claim.tenant, request, context=context)
    incoming = stored_requests.read(written, tenant)
    incoming = incoming._replace(http_request_id=new_id())  # records distinguish the processes
    return incoming, await revocation.current(incoming.principal, tenant)


async def _refuse(left_claim: LeftClaim, error: ProtocolError) -> None:
    """Conclude a round that must not run, or not again, with an error, unless a retry may succeed, or
    another process has taken it."""
    if error.code in (UNAVAILABLE, OVER_LIMIT):
        return
    try:
        won = await claims.take_left(left_claim, ())
        if won is not None:
            await claims.conclude(won, replies.write(Refused(error)), ())
    except (ProtocolError, RecordLostError, RecordRefusedError, SupersededError) as failure:
        log.warning("a left round could not be refused: %r", failure, extra=_facts(left_claim))


def _facts(left_claim: LeftClaim) -> dict[str, str | int]:
    return {"call": str(left_claim.call), "round": left_claim.round}
