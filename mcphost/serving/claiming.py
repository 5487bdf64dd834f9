"""Claiming rounds that must not run twice at once, nor again once they have ended.

Whoever takes in answers first claims (call, round): the claim lands in the same commit as the record
of these answers. The same answers once more wait for the outcome and get what was kept of it; others
are refused for good. The claim of a process that has died is taken over, and the round runs again.
Where nothing is known, nothing is run.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import assert_never
from uuid import UUID

from django.db import Error, close_old_connections

from mcphost.audit.conditions import Condition
from mcphost.audit.records import Record
from mcphost.audit.writer import RecordLost, RecordRefused, Writer, writer
from mcphost.calls import claims, selectors, services
from mcphost.calls.claims import Taking, Wanted
from mcphost.calls.selectors import Found
from mcphost.calls.states import ClaimState
from mcphost.feed.nodes import heartbeat
from mcphost.observability import counters
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.serving import kept_outcomes
from mcphost.serving.endings import Endings
from mcphost.serving.hop import in_database

__all__ = [
    "Claimed", "Claiming", "Finished", "Limits", "Refused", "Superseded", "Wanted", "Won",
    "claim", "conclude", "let_go", "release", "release_all", "tidy",
]  # fmt: skip

RETRY_SECONDS = 2
PORTIONS_AT_ONCE = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Won:
    """The round is the caller's to run, for the `epoch`th time. `conclude` it, or `release` it."""

    taking: Taking

    @property
    def epoch(self) -> int:
        return self.taking.epoch


@dataclass(frozen=True, slots=True)
class Finished:
    """The round has run with these answers, and this is what `conclude` was given then."""

    outcome: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The round is not to be run with these answers; `reason` is for the log and the record."""

    reason: str


Claimed = Won | Finished | Refused


class Superseded(Exception):  # noqa: N818 - what happened to a claim
    """Another process has taken the claim over: what this one did is not the call's outcome."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long somebody waits for another's outcome, and how soon and how often it looks: seconds.

    What may have been claimed although nobody was told is let go, again and again, for `doubt`.
    """

    wait: float = 20.0
    first_look: float = 0.05
    longest_pause: float = 1.0
    doubt: float = 60.0


class Claiming:
    """What one process, `owner`, has claimed. `clock` counts seconds, compared only with itself."""

    def __init__(
        self,
        owner: Callable[[], UUID],
        through: Writer = writer,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner = owner
        self._writer = through
        self._limits = limits or Limits()
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Begin anew, as in a forked child: what its parent has claimed is not its own."""
        self._held: dict[str, Taking] = {}
        self._doubtful: dict[str, tuple[Taking, float]] = {}
        self._endings = Endings()

    async def claim(self, wanted: Wanted, records: Sequence[Record]) -> Claimed:
        """Claim a round; `records` are committed with the claim if it is `Won`, and only then.

        Whoever comes later with the same answers waits for the outcome. Raises ProtocolError:
        UNAVAILABLE, with `retryAfter`, where it is not known in time or the database is away;
        INTERNAL_ERROR for an outcome that can no longer be read, and for records that cannot be
        written. Cancelled, it leaves nothing claimed.
        """
        taking = Taking.of(wanted, self._owner())
        if await self._take(claims.claim(taking, wanted), taking, records):
            claimed: Claimed = Won(taking)
        else:
            claimed = await self._after_another(wanted, records)
        counters.claims.add(_word(claimed))
        return claimed

    async def conclude(self, won: Won, outcome: bytes, records: Sequence[Record]) -> None:
        """Keep how the round ended, in one commit with `records`.

        Raises Superseded when it is no longer ours, and then nothing is written; ProtocolError as
        `claim` when it could not be. Where that is for records that can never be written, the round
        has ended all the same, and is not run again. Cancelling it cancels only the waiting.
        """
        taking = won.taking
        seal = partial(kept_outcomes.seal, taking, outcome)
        future = self._submit(claims.conclude(taking, seal), taking, records)
        future.add_done_callback(partial(self._concluded, taking))
        if not await _committed(future):
            log.warning("a claim was taken over before its round ended", extra=_facts(taking))
            raise Superseded

    async def release(self, won: Won) -> None:
        """Let go of a round that did not end, for whoever comes with the same answers. Never raises
        but for being cancelled, which cancels only the waiting."""
        with suppress(ProtocolError):
            await _committed(self._submit_release(won.taking))

    def let_go(self, won: Won) -> None:
        """The same without waiting, where nobody is left who could wait. Never raises."""
        with suppress(ProtocolError):
            self._submit_release(won.taking)

    def release_all(self) -> None:
        """At the end of the process, after the writer's: what is still claimed is anybody's.

        In a thread that may wait for the database; without one, the lease will end.
        """
        takings = [*self._held.values(), *(taking for taking, _ in self._doubtful.values())]
        self.forget()
        try:
            services.release(takings)
        except Error as error:
            log.warning("claims were left to end by themselves: %s", type(error).__name__)
        finally:
            close_old_connections()

    def tidy(self) -> None:
        """Let go of what may be claimed without anybody knowing, and forget what is long over.

        To be called every few seconds, in a thread that may wait for the database, whose errors it
        raises.
        """
        for taking, since in tuple(self._doubtful.values()):
            services.release([taking])
            if self._clock() - since >= self._limits.doubt:
                self._doubtful.pop(taking.nonce, None)
        portions = 1
        while services.prune() == services.AT_ONCE and portions < PORTIONS_AT_ONCE:
            portions += 1

    async def _after_another(self, wanted: Wanted, records: Sequence[Record]) -> Claimed:
        """Wait for the end of a round that somebody has claimed, or take it over."""
        ends, pause = self._clock() + self._limits.wait, self._limits.first_look
        with self._endings.listening((wanted.call, wanted.round)) as ending:
            while True:
                found = await self._look(wanted)
                if found is None:
                    return Refused("claim-forgotten")
                if found.answers != wanted.answers:
                    return Refused("other-answers")
                if found.state is ClaimState.FINISHED:
                    return Finished(await kept_outcomes.unseal(wanted, found.outcome))
                if self._is_free(found) and (won := await self._over(wanted, found, records)):
                    return won
                if (left := ends - self._clock()) <= 0:
                    raise _unavailable("These answers are being acted on at the moment")
                await ending.wait(min(pause, left))
                pause = min(pause * 2, self._limits.longest_pause)

    async def _look(self, wanted: Wanted) -> Found | None:
        try:
            return await in_database(selectors.claim, wanted.call, wanted.round, wanted.tenant)
        except Error:
            raise _unavailable("The server cannot look up these answers at the moment") from None

    def _is_free(self, found: Found) -> bool:
        """Whether nobody runs the round. This process knows of itself what it has claimed."""
        if found.state is ClaimState.RELEASED:
            return True
        if found.owner == self._owner():
            return found.lapsed and found.nonce not in self._held
        return found.silent

    async def _over(self, wanted: Wanted, found: Found, records: Sequence[Record]) -> Won | None:
        taking = Taking.of(wanted, self._owner(), found.epoch + 1)
        if not await self._take(claims.take_over(taking, wanted), taking, records):
            return None
        log.warning("a claim was taken over", extra=_facts(taking))
        return Won(taking)

    async def _take(self, condition: Condition, taking: Taking, records: Sequence[Record]) -> bool:
        """Have a claim and its records committed; whether it is ours. Known before it is there."""
        self._held[taking.nonce] = taking
        try:
            future = self._writer.submit_if(condition, records)
        except RecordLost:
            del self._held[taking.nonce]
            raise _unavailable("The server cannot record calls at the moment") from None
        future.add_done_callback(partial(self._taken, taking))
        try:
            return await _committed(future)
        except asyncio.CancelledError:
            future.add_done_callback(partial(self._unwanted, taking))
            raise

    def _taken(self, taking: Taking, future: "asyncio.Future[bool]") -> None:
        error = future.exception()
        if error is not None or not future.result():
            del self._held[taking.nonce]
        if isinstance(error, RecordLost):
            self._doubt(taking)

    def _unwanted(self, taking: Taking, _: "asyncio.Future[bool]") -> None:
        """Whoever claimed it has gone since."""
        if taking.nonce in self._held:
            with suppress(ProtocolError):
                self._submit_release(taking)

    def _submit(
        self, condition: Condition, taking: Taking, records: Sequence[Record] = ()
    ) -> "asyncio.Future[bool]":
        """Submit the end of a taking. Until it is committed the claim is held: nobody here may think
        that it is free."""
        try:
            return self._writer.submit_if(condition, records)
        except RecordLost:
            self._ended(taking, known=False)
            raise _unavailable("The server cannot record calls at the moment") from None

    def _submit_release(self, taking: Taking) -> "asyncio.Future[bool]":
        future = self._submit(claims.release(taking), taking)
        future.add_done_callback(partial(self._gone, taking))
        return future

    def _concluded(self, taking: Taking, future: "asyncio.Future[bool]") -> None:
        if not isinstance(future.exception(), RecordRefused):
            self._gone(taking, future)
            return
        with suppress(ProtocolError):
            again = self._submit(claims.conclude(taking, lambda: ""), taking)
            again.add_done_callback(partial(self._gone, taking))

    def _gone(self, taking: Taking, future: "asyncio.Future[bool]") -> None:
        self._ended(taking, known=future.exception() is None)

    def _ended(self, taking: Taking, *, known: bool) -> None:
        self._held.pop(taking.nonce, None)
        if not known:
            self._doubt(taking)
        self._endings.tell(taking.key)

    def _doubt(self, taking: Taking) -> None:
        log.warning("whether a round is claimed is not known", extra=_facts(taking))
        self._doubtful[taking.nonce] = (taking, self._clock())


async def _committed(future: "asyncio.Future[bool]") -> bool:
    """Wait for a commit; to cancel the waiting does not cancel what hears of it."""
    try:
        return await asyncio.shield(future)
    except RecordLost:
        raise _unavailable("The server could not record the call") from None
    except RecordRefused:
        raise ProtocolError(INTERNAL_ERROR, "The call could not be recorded as it is") from None


def _word(claimed: Claimed) -> str:
    match claimed:
        case Won(taking):
            return "won" if taking.epoch == 1 else "taken_over"
        case Finished():
            return "told"
        case Refused():
            return "refused"
        case _:
            assert_never(claimed)


def _unavailable(message: str) -> ProtocolError:
    return ProtocolError(UNAVAILABLE, message, {"retryAfter": RETRY_SECONDS})


def _facts(taking: Taking) -> dict[str, str | int]:
    return {"call": str(taking.call), "round": taking.round, "epoch": taking.epoch}


_claiming = Claiming(lambda: heartbeat.id)
os.register_at_fork(after_in_child=_claiming.forget)

claim = _claiming.claim
conclude = _claiming.conclude
let_go = _claiming.let_go
release = _claiming.release
release_all = _claiming.release_all
tidy = _claiming.tidy
