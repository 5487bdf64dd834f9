"""The rounds of a session call that this process owns: the state they start from, and the
changes they commit.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NoReturn
from uuid import UUID

from mcphost.audit.records import Record
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, writer
from mcphost.calls import cancelled
from mcphost.calls.ownership import SupersededError
from mcphost.calls.states import CallState
from mcphost.runtime.call import Delivery
from mcphost.serving.context import FRESH, Resumed, RoundEnding
from mcphost.serving.database import in_database_unbounded
from mcphost.serving.execution.cancelled_calls import CallCancelledError
from mcphost.serving.legacy.questions import IncomingResponse, OpenRound
from mcphost.serving.legacy.stream import Outgoing
from mcphost.serving.replies import Asking, Delivered, SealedState

PROGRESS: Final = 1e-6
"""By how much progress rises while the call waits for input: less than any tool reports."""


class NotTakenError(Exception):
    """The last input response was not accepted, so the round that takes it in did not start."""


class HeldCall:
    """Implements `serving.context.OwnedCall` for a call of a session.

    A call that has nothing on its stream yet has no row, and no other process can continue it: its
    rounds are only recorded, without a condition. `waiting` is set while the call waits for input
    responses; `asking`, with its state, when a round ended with input requests; `ending` when the
    records of its last round are still to be committed.
    """

    __slots__ = (
        "_answer",
        "_begun",
        "_outgoing",
        "_progress",
        "asking",
        "ending",
        "resumed",
        "uncertain",
        "waiting",
    )

    delivery = Delivery.LEGACY

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self.resumed = FRESH
        self.uncertain = False
        self.waiting: OpenRound | None = None
        self.asking: tuple[Asking, SealedState] | None = None
        self.ending: RoundEnding | None = None
        self._answer: IncomingResponse | None = None
        self._begun = True
        self._progress = 0.0

    @property
    def call(self) -> UUID:
        return self._outgoing.stored.owner.id

    @property
    def round(self) -> int:
        """The number of the current round, from 1."""
        state = self.resumed.state
        return 1 if state is None else state.round + 1

    @property
    def movable(self) -> bool:
        return self._outgoing.can_be_found

    def close_stream(self) -> None:
        self._outgoing.pause()

    def wait(self, waiting: OpenRound) -> None:
        """Mark the call as waiting for the input responses that its last round requested."""
        self.asking = None
        self.waiting = waiting
        self._progress = max(self._progress, waiting.progress)

    def next_progress(self) -> float:
        """Raise the progress of a waiting call by PROGRESS and return it."""
        self._progress += PROGRESS
        return self._progress

    def continue_from(
        self, resumed: Resumed, answer: IncomingResponse | None = None, *, begun: bool = False
    ) -> None:
        """Prepare the next round. `answer` is the input response to be committed with its start.
        `begun`: a process that has died since has recorded its start."""
        if self._progress:
            journal = replace(resumed.journal, progress=self._progress)
            resumed = resumed._replace(journal=journal)
        self.resumed = resumed
        self.waiting = None
        self._answer = answer
        self._begun = begun

    def take_ending(self) -> RoundEnding | None:
        """The end of the last round, to be committed now."""
        ending, self.ending = self.ending, None
        return ending

    async def start(self, records: Sequence[Record]) -> None:
        """As in `OwnedCall`. Raises NotTakenError if the last input response was not accepted."""
        if self._answer is not None:
            await self._start_with(self._answer, records)
        elif not self._begun:
            condition = self._outgoing.stored.start(self.round)
            if not await self._outgoing.commit(condition, records):
                await self._superseded()
        elif self.resumed.state is None and records:
            await writer.submit(records)

    async def _superseded(self) -> NoReturn:
        """Raise CallCancelledError if a user cancelled the call before the round, else SupersededError."""
        tenant = self._outgoing.stored.stream.tenant
        reason = await in_database_unbounded(cancelled.reason_of, self.call, tenant)
        raise SupersededError if reason is None else CallCancelledError(reason)

    async def _start_with(self, answer: IncomingResponse, records: Sequence[Record]) -> None:
        self._answer = None
        condition = self._outgoing.stored.answer(answer, self.round, CallState.RUNNING)
        try:
            accepted = await self._outgoing.commit(condition, records)
        except (RecordLostError, RecordRefusedError) as error:
            answer.settle(error)
            if isinstance(error, RecordRefusedError):
                raise
            raise NotTakenError from None
        answer.settle(accepted)
        if not accepted:
            raise NotTakenError

    async def store(self, answer: IncomingResponse) -> bool:
        """Commit an input response without a round's start; return whether it was accepted.

        Raises RecordLostError, RecordRefusedError.
        """
        waiting = self.waiting
        number = self.round if waiting is None else waiting.round_questions.round + 1
        condition = self._outgoing.stored.answer(answer, number, CallState.WAITING)
        return await self._outgoing.commit(condition)

    async def conclude(self, delivered: Delivered, ending: RoundEnding) -> None:
        reply = delivered.reply
        if isinstance(reply, Asking):
            assert delivered.sealed is not None
            self.asking, self.ending = (reply, delivered.sealed), ending
        elif self._outgoing.streaming:
            self.ending = ending
        else:
            await writer.submit(ending.records)
