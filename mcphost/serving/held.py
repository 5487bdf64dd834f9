"""A call that lasts longer than the request that made it, because its client is asked in between."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from mcphost.audit.records import Record
from mcphost.serving.replies import Reply
from mcphost.serving.resumed import Resumed


class Held(Protocol):
    """A call as this process has it: nobody else begins or ends a round of it.

    `resumed` is what the round goes on from. `reply` is what came of it, if it has run already;
    `uncertain` says that it was begun, as the call's first, and nobody knows what came of it. `movable`
    says that its client has what it takes to find the call in another process.
    Both methods wait for the commit. They raise SupersededError where the call is this process's no
    more, and nothing is written then; RecordLost and RecordRefused as the writer does.
    """

    @property
    def call(self) -> UUID: ...
    @property
    def resumed(self) -> Resumed: ...
    @property
    def reply(self) -> Reply | None: ...

    @property
    def uncertain(self) -> bool: ...

    @property
    def movable(self) -> bool: ...

    def close_stream(self) -> None:
        """Have the client come back for what is said from now on, if it can."""

    async def start(self, records: Sequence[Record]) -> None:
        """Begin the round, in one commit with `records`."""

    async def conclude(self, reply: Reply, records: Sequence[Record]) -> None:
        """Keep how the round ended, in one commit with `records`."""
