"""Rounds of stateless calls that this process cannot run because it lacks the function, for
instance during a rolling upgrade.

The round is left to a process that has the function, with the input responses in its claim, and this
one waits for the outcome. If no process has taken it in time, the client is sent elsewhere once: with
a state that holds the responses. After that it gets an error, and the same request succeeds later. A
first call, whose client cannot come back for its outcome, waits as long as a process runs it.
`released_rounds` runs rounds that others have left.
"""

import asyncio
import time
from typing import Final, NamedTuple, assert_never
from uuid import UUID

from mcphost.calls.ownership import SupersededError
from mcphost.kinds.declarations import ABSENT
from mcphost.protocol.errors import unavailable
from mcphost.runtime.outcomes import Yielded
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import replies, sealing
from mcphost.serving.context import Turn
from mcphost.serving.execution import audit_records, claims, commits, rounds, stored_requests
from mcphost.serving.execution.claims import (
    ClaimRefused,
    Finished,
    LeftRound,
    Unfinished,
    WantedClaim,
    Won,
)
from mcphost.serving.execution.deliveries import deliver, may_move
from mcphost.serving.load import ABSENT_FUNCTION
from mcphost.serving.replies import Asking, Reply
from mcphost.vault.errors import VaultError

NOT_TAKEN: Final = (
    "No running server process that has the code of this has taken the call yet; "
    "retry with the same request"
)


def context(call: UUID) -> bytes:
    """The context to which the sealed request of a left round is bound."""
    return call.bytes + b"left"


async def run(turn: Turn) -> Reply:
    """Leave the round to a process that can run it, and return its reply.

    A first call of a primitive that is read-only and needs nothing of its client is only refused: the
    client loses nothing by calling again. Raises ProtocolError (UNAVAILABLE, with `retryAfter`) for
    that, and if no process has run the round; what `rounds.run` raises.
    """
    await commits.check()
    resumed = turn.resumed
    if resumed.state is None:
        if turn.primitive.read_only and not turn.primitive.requires and not resumed.responses:
            raise unavailable(ABSENT)
    elif not resumed.goes_on:  # it would only ask again
        raise unavailable(ABSENT)
    elif (cancelled := await rounds.cancelled_reply(turn)) is not None:
        return cancelled
    return await _leave_round(turn)


class _Leaving(NamedTuple):
    """A round that is left to another process, and when this one began to wait for it."""

    wanted_claim: WantedClaim
    claim: Won
    began: float


async def _leave_round(turn: Turn) -> Reply:
    wanted_claim = rounds.wanted_claim(turn)
    leaving = _Leaving(wanted_claim, claims.new_left(wanted_claim), time.perf_counter())
    left_round = LeftRound(turn.primitive.missing_function, await _sealed_request(turn))
    is_first = turn.resumed.state is None  # its client cannot come back for the reply
    while True:
        try:
            return await _reply(turn, leaving, left_round, is_first=is_first)
        except asyncio.CancelledError as end:
            if is_first:
                seconds = time.perf_counter() - leaving.began
                claims.abandon(leaving.claim, (audit_records.cancelled(turn, seconds, end),))
            raise
        except SupersededError:  # a process has taken it just now
            if not is_first:
                raise unavailable(NOT_TAKEN) from None


async def _reply(turn: Turn, leaving: _Leaving, left_round: LeftRound, *, is_first: bool) -> Reply:
    """The outcome of the round, or the reply that sends the client elsewhere. Raises SupersededError if a
    process has taken the round meanwhile."""
    records = audit_records.answers(turn)
    ended = await claims.leave_round(
        leaving.wanted_claim, left_round, leaving.claim, records, to_the_end=is_first
    )
    match ended:
        case Finished(reply):
            return replies.read(reply)
        case ClaimRefused(reason):
            return await rounds.refused_reply(turn, reason)
        case Unfinished(free):
            return await _sent_on(turn, leaving, free)
        case _:
            assert_never(ended)


async def _sealed_request(turn: Turn) -> str:
    """The request for the process that runs the round. Raises ProtocolError (UNAVAILABLE)."""
    call = turn.call
    try:
        written = stored_requests.write(turn.incoming)
        return await sealing.seal(Purpose.ROW, call.tenant, written, context=context(call.id))
    except (SealError, VaultError):  # too large for a row, or no key now
        raise unavailable(ABSENT) from None


async def _sent_on(turn: Turn, leaving: _Leaving, free: Won | None) -> Reply:
    """The reply that sends the client elsewhere with all that its call has learned, once.

    That ends the round. Raises SupersededError if a process has taken it meanwhile: its outcome is not known
    then; ProtocolError (UNAVAILABLE).
    """
    if free is None or not may_move(turn):
        raise unavailable(NOT_TAKEN)
    delivered = await deliver(turn, Yielded(turn.journal, ABSENT_FUNCTION))
    if not isinstance(delivered.reply, Asking):
        raise unavailable(NOT_TAKEN)
    seconds = time.perf_counter() - leaving.began
    records = audit_records.after(turn, delivered, audit_records.YIELDED, seconds, 0)
    await commits.committed(claims.conclude(free, replies.write(delivered.reply), records))
    return delivered.reply
