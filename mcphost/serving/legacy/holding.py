"""One call of a session from round to round, as the process has it that runs them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from mcphost.audit.conditions import Condition
from mcphost.audit.records import Record
from mcphost.audit.writer import writer
from mcphost.calls import streamed_rounds
from mcphost.calls.streamed import SupersededError, Waiting
from mcphost.serving import replies
from mcphost.serving.legacy import keeping
from mcphost.serving.legacy.asking import Pause
from mcphost.serving.legacy.outgoing import Outgoing
from mcphost.serving.replies import Reply
from mcphost.serving.resumed import FRESH, Resumed

PROGRESS: Final = 1e-6
"""By how much progress rises while somebody is waited for: less than any tool tells."""


class Holding:
    """Fills `serving.held.Held`.

    A call that has nothing on its stream has no row, and nobody could go on with it but this process:
    what it does is recorded, and that is all. `waiting` is what it waits for, while it does.
    """

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self.resumed = FRESH
        self.reply: Reply | None = None
        self.uncertain = False
        self.waiting: Waiting | None = None
        self._begun = True
        self._told = 0.0

    @property
    def call(self) -> UUID:
        return self._outgoing.kept.taking.call

    @property
    def round(self) -> int:
        """Which round it is, from 1."""
        state = self.resumed.state
        return 1 if state is None else state.round + 1

    @property
    def movable(self) -> bool:
        return self._outgoing.can_be_found

    def close_stream(self) -> None:
        self._outgoing.pause()

    def wait(self, pause: Pause) -> None:
        """The call waits for what its last round asked."""
        self.waiting = pause.waiting
        self._told = max(self._told, pause.told)

    def tell(self) -> float:
        """Progress of next to nothing, while it waits."""
        self._told += PROGRESS
        return self._told

    def go_on(self, resumed: Resumed, *, begun: bool = False) -> None:
        """The next round is about to be run; `begun` by a process that has recorded that and died."""
        if self._told:
            told = replace(resumed.journal, progress=self._told)
            resumed = resumed._replace(journal=told)
        self.resumed = resumed
        self.reply = None
        self.waiting = None
        self._begun = begun

    async def start(self, records: Sequence[Record]) -> None:
        if not self._begun:
            taking = self._outgoing.kept.taking
            await _held(streamed_rounds.start(taking, self.round), records)
        elif self.resumed.state is None and records:
            await writer.submit(records)

    async def conclude(self, reply: Reply, records: Sequence[Record]) -> None:
        if not self._outgoing.streaming:
            await writer.submit(records)
            return
        await self._outgoing.begun()
        kept, number = self._outgoing.kept, self.round
        place = place_of(self.call, number)

        def sealed() -> str:
            return keeping.seal(kept.stream.tenant, place, replies.write(reply))

        await _held(streamed_rounds.conclude(kept.taking, number, sealed), records)


def place_of(call: UUID, number: int) -> bytes:
    """Where the reply of a round lies."""
    return call.bytes + b"reply" + number.to_bytes(8)


async def _held(condition: Condition, records: Sequence[Record]) -> None:
    if not await writer.submit_if(condition, records):
        raise SupersededError
