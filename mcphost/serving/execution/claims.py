"""Claims of rounds that must not run twice at once, nor again once they have ended.

The reply of a claimed round is stored in the database, sealed and bound to its round.
"""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar, assert_never
from uuid import UUID

from django.db import Error, close_old_connections

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, Writer, writer
from mcphost.calls import claims
from mcphost.calls.claims import ClaimLease, FoundClaim, LeftClaim, LeftRound, WantedClaim
from mcphost.calls.ownership import NO_OWNER, SupersededError
from mcphost.calls.states import ClaimState
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import sealing
from mcphost.serving.database import in_database
from mcphost.serving.events import Waiters
from mcphost.serving.execution.cancelled_calls import CANCELLED
from mcphost.serving.execution.commits import committed
from mcphost.vault import sealer
from mcphost.vault.errors import VaultError

__all__ = [
    "ClaimLimits",
    "ClaimRefused",
    "Claimed",
    "Claiming",
    "Finished",
    "LeftRound",
    "Unfinished",
    "WantedClaim",
    "Won",
    "abandon",
    "claim",
    "conclude",
    "is_claimed",
    "leave_round",
    "new_left",
    "release",
    "release_all",
    "release_without_waiting",
    "take_left",
    "tidy",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")

RESULT_UNAVAILABLE = "This request was already processed; its result is no longer available"

log = logging.getLogger(__name__)


def seal_outcome(lease: ClaimLease, outcome: bytes) -> str:
    """Seal an outcome for storage; empty if that fails, because the round has ended all the same.

    In the writer's thread. May read the database, and raises its errors.
    """
    context = _context(lease.call, lease.round)
    try:
        return sealer.seal(Purpose.ROW, lease.tenant, outcome, context=context)
    except (SealError, VaultError) as error:
        log.error(
            "the outcome of a round could not be stored: %s", _why(error), extra=_facts(lease)
        )
        return ""


async def unseal_outcome(wanted_claim: WantedClaim, kept: str) -> bytes:
    """Open the stored outcome of this round.

    Raises ProtocolError: INTERNAL_ERROR if it cannot be opened, and the round must not run again;
    UNAVAILABLE if the keys cannot be read now.
    """
    try:
        context = _context(wanted_claim.call, wanted_claim.round)
        return await sealing.unseal(Purpose.ROW, wanted_claim.tenant, kept, context=context)
    except Error:
        raise unavailable(
            "The state of these input responses cannot be read now; retry later"
        ) from None
    except (SealError, VaultError) as error:
        raise _unreadable_outcome(wanted_claim, _why(error)) from None


def _unreadable_outcome(wanted_claim: WantedClaim, why: str) -> ProtocolError:
    log.error(
        "the stored outcome of a round cannot be opened: %s",
        why,
        extra={"call": str(wanted_claim.call), "round": wanted_claim.round},
    )
    return ProtocolError(INTERNAL_ERROR, RESULT_UNAVAILABLE)


def _context(call: UUID, number: int) -> bytes:
    return call.bytes + number.to_bytes(8)


def _why(error: SealError | VaultError) -> str:
    return error.reason.value if isinstance(error, SealError) else str(error)


PORTIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Won:
    """The round was claimed, for the `epoch`th time. Run it, then `conclude` or `release` it."""

    lease: ClaimLease

    @property
    def epoch(self) -> int:
        return self.lease.epoch


@dataclass(frozen=True, slots=True)
class Finished:
    """The round has run with these input responses; `outcome` is what `conclude` stored."""

    outcome: bytes


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """The round must not run with these input responses; `reason` is for the log and the record."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The outcome of a round that was left to another process is not known in time.

    `free` is the claim, if no process runs it: it can be concluded; else None.
    """

    free: Won | None


class _Doubt(NamedTuple):
    """A claim whose last commit has an unknown outcome, since when, and what becomes of it: it is released, or
    finished if its round has ended."""

    lease: ClaimLease
    since: float
    state: ClaimState


Claimed = Won | Finished | ClaimRefused


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """How long a request waits for another's outcome, and its poll intervals, in seconds.

    A claim whose commit has an unknown outcome is settled repeatedly for `doubt` seconds.
    """

    wait: float = 20.0
    first_look: float = 0.05
    longest_pause: float = 1.0
    doubt: float = 60.0


class Claiming:
    """The claims of one process, `owner`. `clock` counts seconds, compared only with itself."""

    def __init__(
        self,
        owner: Callable[[], UUID],
        through: Writer = writer,
        limits: ClaimLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner = owner
        self._writer = through
        self._limits = limits or ClaimLimits()
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Drop all claims, as in a forked child, which does not own those of its parent."""
        self._leases: dict[str, ClaimLease] = {}
        self._doubtful: dict[str, _Doubt] = {}
        self._waiters = Waiters()

    async def claim(self, wanted_claim: WantedClaim, records: Sequence[Record]) -> Claimed:
        """Claim a round; `records` are committed with the claim if it is `Won`, and only then.

        A later request with the same input responses waits for the outcome. Raises ProtocolError:
        UNAVAILABLE, with `retryAfter`, if that is not known in time or the database is unreachable;
        INTERNAL_ERROR if the outcome can no longer be opened, or the records cannot be written.
        After a cancellation nothing stays claimed.
        """
        lease = ClaimLease.of(wanted_claim, self._owner())
        if await self._take(claims.claim(lease, wanted_claim), lease, records):
            claimed: Claimed = Won(lease)
        else:
            claimed = await self._after_another(wanted_claim, records)
        counters.claims.add(_outcome_label(claimed))
        return claimed

    async def leave_round(
        self,
        wanted_claim: WantedClaim,
        left_round: LeftRound,
        leaving: Won,
        records: Sequence[Record],
        *,
        to_the_end: bool = False,
    ) -> Finished | ClaimRefused | Unfinished:
        """Leave a round to a process that has its function, and wait for its outcome.

        `records` are committed with the claim, `leaving`, unless the round was claimed before.
        `to_the_end`: wait also longer while a living process runs it, because its client cannot come
        back for the outcome. Raises ProtocolError as `claim`. A cancellation ends the wait: the round
        stays there to be run.
        """
        commit = self._writer.submit_if(
            claims.leave_round(leaving.lease, wanted_claim, left_round), records
        )
        if not await committed(asyncio.shield(commit)):
            await self._run_in_database(claims.leave_claimed, wanted_claim, left_round)

        async def unfinished(claim: FoundClaim, remaining: float) -> Unfinished | None:
            free = _free(wanted_claim, claim)
            is_over = remaining <= 0 and (free is not None or not to_the_end)
            return Unfinished(free) if is_over else None

        return await self._outcome_of_another(wanted_claim, unfinished)

    async def take_left(self, left_claim: LeftClaim, records: Sequence[Record]) -> Won | None:
        """Take a round that was left to this process or another one; None if another has taken it.

        `records` are committed with that. Raises ProtocolError as `claim`.
        """
        wanted_claim = WantedClaim(
            left_claim.call, left_claim.round, left_claim.tenant, left_claim.answers, 0
        )
        lease = ClaimLease.of(wanted_claim, self._owner(), left_claim.epoch + 1)
        is_taken = await self._take(claims.take_over(lease, wanted_claim), lease, records)
        return Won(lease) if is_taken else None

    def abandon(self, leaving: Won, records: Sequence[Record]) -> None:
        """Finish a round that was left and that no process runs yet, without waiting: the client has
        gone, and cannot come back for the outcome. Never raises."""
        commit = self._writer.submit_if(claims.conclude(leaving.lease, str), records)
        commit.add_done_callback(partial(self._forget_claim, leaving.lease))

    async def is_claimed(self, wanted_claim: WantedClaim) -> bool:
        """Whether any input responses were claimed under this number.

        Raises ProtocolError (UNAVAILABLE, with `retryAfter`) if the database is unreachable.
        """
        return await self._read_claim(wanted_claim) is not None

    async def conclude(self, won: Won, outcome: bytes, records: Sequence[Record]) -> None:
        """Store the outcome of the round, in one commit with `records`.

        Raises SupersededError, and writes nothing, if the claim was taken over; RecordLostError, RecordRefusedError
        as the writer does. If the records are lost or refused, the round has ended all the same,
        and does not run again. Cancellation cancels only the wait.
        """
        lease = won.lease
        sealed = partial(seal_outcome, lease, outcome)
        future = self._writer.submit_if(claims.conclude(lease, sealed), records)
        future.add_done_callback(partial(self._concluded, lease))
        if not await asyncio.shield(future):
            log.warning("a claim was taken over before its round ended", extra=_facts(lease))
            raise SupersededError

    async def release(self, won: Won) -> None:
        """Release a round that did not end, for the next request with the same input responses.

        Raises nothing but CancelledError; cancellation cancels only the wait.
        """
        with suppress(RecordLostError, RecordRefusedError):
            await asyncio.shield(self._submit_release(won.lease))

    def release_without_waiting(self, won: Won) -> None:
        """Release a round without waiting, where no coroutine is left to wait. Never raises."""
        self._submit_release(won.lease)

    def release_all(self) -> None:
        """Release all claims at the end of the process, after the writer has stopped.

        In a database thread. If the database is unreachable, the leases expire.
        """
        doubts = tuple(self._doubtful.values())
        has_run = [doubt.lease for doubt in doubts if doubt.state is ClaimState.FINISHED]
        unfinished = [doubt.lease for doubt in doubts if doubt.state is not ClaimState.FINISHED]
        unfinished += self._leases.values()
        self.forget()
        try:
            claims.settle(has_run, ClaimState.FINISHED)
            claims.settle(unfinished, ClaimState.RELEASED)
        except Error as error:
            log.warning(
                "claims could not be released; their leases will expire: %s", type(error).__name__
            )
        finally:
            close_old_connections()

    def tidy(self) -> None:
        """Settle claims whose commit has an unknown outcome, and delete expired ones.

        To be called every few seconds in a database thread. Raises the database's errors.
        """
        for lease, since, state in tuple(self._doubtful.values()):
            claims.settle([lease], state)
            if self._clock() - since >= self._limits.doubt:
                self._doubtful.pop(lease.nonce, None)
        portions = 1
        while claims.prune() == claims.PRUNED_AT_ONCE and portions < PORTIONS_AT_ONCE:
            portions += 1

    async def _after_another(self, wanted_claim: WantedClaim, records: Sequence[Record]) -> Claimed:
        """Wait for the outcome of a round that is claimed already, or take it over."""

        async def take_over(claim: FoundClaim, remaining: float) -> Won | None:
            won = (
                await self._take_over(wanted_claim, claim, records)
                if self._is_free(claim)
                else None
            )
            if won is None and remaining <= 0:
                raise unavailable("These input responses are being processed; retry later")
            return won

        return await self._outcome_of_another(wanted_claim, take_over)

    async def _outcome_of_another(
        self, wanted_claim: WantedClaim, decide: Callable[[FoundClaim, float], Awaitable[T | None]]
    ) -> Finished | ClaimRefused | T:
        """Look at a claim until its round has ended, or until `decide` returns something for it, given
        the seconds that remain of the wait."""
        ends, pause = self._clock() + self._limits.wait, self._limits.first_look
        with self._waiters.expecting((wanted_claim.call, wanted_claim.round)) as waiter:
            while True:
                claim = await self._read_claim(wanted_claim)
                ended = await _ended(wanted_claim, claim)
                if ended is not None or claim is None:
                    return ended or ClaimRefused("claim-forgotten")
                decided = await decide(claim, ends - self._clock())
                if decided is not None:
                    return decided
                remaining = ends - self._clock()
                await waiter.wait(min(pause, remaining) if remaining > 0 else pause)
                pause = min(pause * 2, self._limits.longest_pause)

    async def _read_claim(self, wanted_claim: WantedClaim) -> FoundClaim | None:
        return await self._run_in_database(
            claims.find_claim, wanted_claim.call, wanted_claim.round, wanted_claim.tenant
        )

    async def _run_in_database(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        try:
            return await in_database(function, *args, **kwargs)
        except Error:
            raise unavailable(
                "The state of these input responses cannot be read now; retry later"
            ) from None

    def _is_free(self, claim: FoundClaim) -> bool:
        """Whether no process runs the round. For its own claims this process checks its memory."""
        if claim.state is ClaimState.RELEASED:
            return True
        if claim.owner == self._owner():
            return (
                claim.lapsed and claim.nonce not in self._leases and not self._has_run(claim.nonce)
            )
        return claim.silent

    def _has_run(self, nonce: str) -> bool:
        doubt = self._doubtful.get(nonce)
        return doubt is not None and doubt.state is ClaimState.FINISHED

    async def _take_over(
        self, wanted_claim: WantedClaim, claim: FoundClaim, records: Sequence[Record]
    ) -> Won | None:
        lease = ClaimLease.of(wanted_claim, self._owner(), claim.epoch + 1)
        if not await self._take(claims.take_over(lease, wanted_claim), lease, records):
            return None
        log.warning("a claim was taken over", extra=_facts(lease))
        return Won(lease)

    async def _take(
        self, condition: Condition, lease: ClaimLease, records: Sequence[Record]
    ) -> bool:
        """Commit a claim and its records; return whether it took effect.

        The claim is registered until the commit has failed, so that this process never takes it for
        free.
        """
        future = self._writer.submit_if(condition, records)
        if not future.done():  # else the writer has refused it, and nothing is written
            self._leases[lease.nonce] = lease
            future.add_done_callback(partial(self._claim_committed, lease))
        try:
            return await committed(asyncio.shield(future))
        except asyncio.CancelledError:
            future.add_done_callback(partial(self._release_unwanted, lease))
            raise

    def _claim_committed(self, lease: ClaimLease, future: "asyncio.Future[bool]") -> None:
        error = future.exception()
        if error is not None or not future.result():
            del self._leases[lease.nonce]
        if isinstance(error, RecordLostError):
            self._doubt(lease, ClaimState.RELEASED)

    def _release_unwanted(self, lease: ClaimLease, _: "asyncio.Future[bool]") -> None:
        """Release a claim whose request was cancelled during the commit."""
        if lease.nonce in self._leases:
            self._submit_release(lease)

    def _submit_release(self, lease: ClaimLease) -> "asyncio.Future[bool]":
        """Submit the release of a claim. It stays registered until that is committed, so that this
        process does not take it for free."""
        future = self._writer.submit_if(claims.release(lease))
        future.add_done_callback(partial(self._forget_claim, lease))
        return future

    def _concluded(self, lease: ClaimLease, future: "asyncio.Future[bool]") -> None:
        if not isinstance(future.exception(), RecordRefusedError):
            self._forget_claim(lease, future, ClaimState.FINISHED)
            return
        again = self._writer.submit_if(claims.conclude(lease, lambda: ""))
        again.add_done_callback(partial(self._forget_claim, lease, state=ClaimState.FINISHED))

    def _forget_claim(
        self,
        lease: ClaimLease,
        future: "asyncio.Future[bool]",
        state: ClaimState = ClaimState.RELEASED,
    ) -> None:
        """The commit after which the claim is in `state` has ended. If its outcome is unknown, that is settled later."""
        self._leases.pop(lease.nonce, None)
        if future.exception() is not None:
            self._doubt(lease, state)
        self._waiters.notify(lease.key)

    def _doubt(self, lease: ClaimLease, state: ClaimState) -> None:
        log.warning("the outcome of a claim's commit is unknown", extra=_facts(lease))
        self._doubtful[lease.nonce] = _Doubt(lease, self._clock(), state)


async def _ended(
    wanted_claim: WantedClaim, claim: FoundClaim | None
) -> Finished | ClaimRefused | None:
    """What a claim says about these input responses; None while their round has not ended."""
    if claim is None:
        return None
    if claim.answers == claims.CANCELLED:
        return ClaimRefused(CANCELLED)
    if claim.answers != wanted_claim.answers:
        return ClaimRefused("other-answers")
    if claim.state is ClaimState.FINISHED:
        return Finished(await unseal_outcome(wanted_claim, claim.outcome))
    return None


def new_left(wanted_claim: WantedClaim) -> Won:
    """A new claim of a round that no process runs yet, for `leave_round`."""
    return Won(ClaimLease.of(wanted_claim, NO_OWNER, 0))


def _free(wanted_claim: WantedClaim, claim: FoundClaim) -> Won | None:
    """The claim as its last owner had it, if no process runs its round."""
    if claim.state is not ClaimState.RELEASED and not claim.silent:
        return None
    lease = ClaimLease.of(wanted_claim, claim.owner, claim.epoch)
    return Won(replace(lease, nonce=claim.nonce))


def _outcome_label(claimed: Claimed) -> str:
    match claimed:
        case Won(lease):
            return "won" if lease.epoch == 1 else "taken_over"
        case Finished():
            return "told"
        case ClaimRefused():
            return "refused"
        case _:
            assert_never(claimed)


def _facts(lease: ClaimLease) -> dict[str, str | int]:
    return {"call": str(lease.call), "round": lease.round, "epoch": lease.epoch}


_claiming = Claiming(lambda: heartbeat.id)
os.register_at_fork(after_in_child=_claiming.forget)

abandon = _claiming.abandon
claim = _claiming.claim
conclude = _claiming.conclude
is_claimed = _claiming.is_claimed
leave_round = _claiming.leave_round
release_without_waiting = _claiming.release_without_waiting
release = _claiming.release
release_all = _claiming.release_all
take_left = _claiming.take_left
tidy = _claiming.tidy
