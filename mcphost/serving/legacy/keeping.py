"""What a call on a stream leaves in the database, sealed: its request, and each of its messages.

All of it runs in a thread that may wait for the database, whose errors it raises.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from mcphost.calls import streamed
from mcphost.calls.streamed import Batch, CallRow, Taking
from mcphost.calls.streams import Event, StreamRow
from mcphost.sealing.tokens import Purpose
from mcphost.serving.options import options
from mcphost.vault import sealer
from mcphost.vault.sealer import TenantSealer

PICK_UP_SECONDS = 3600
"""How long a client may take to come back for what it missed, on top of how long people think."""


class Messages(NamedTuple):
    """Messages that are written together, the first of them as number `first`."""

    first: int
    messages: Sequence[bytes]
    told: bool = False


class Kept(NamedTuple):
    """A call on a stream, as this process has it."""

    taking: Taking
    stream: StreamRow
    request_name: str
    request: Callable[[], bytes]

    def begin(self, said: Messages) -> None:
        """Write the call and its stream. Raises SupersededError, SealError, VaultError."""
        keys = sealer.fetch(self.stream.tenant)
        call = self.taking.call
        request = keys.seal(Purpose.ROW, call.bytes + self.request())
        row = CallRow(call, self.request_name, request)
        streamed.begin(self.taking, self.stream, row, self._batch(keys, said))

    def append(self, said: Messages) -> None:
        """Write more. Raises as `begin`."""
        batch = self._batch(sealer.fetch(self.stream.tenant), said)
        streamed.append(self.taking, self.stream, batch)

    def finish(self, said: Messages) -> None:
        """Write the last of it. Raises as `begin`."""
        batch = self._batch(sealer.fetch(self.stream.tenant), said)
        streamed.finish(self.taking, self.stream, batch)

    def _batch(self, keys: TenantSealer, said: Messages) -> Batch:
        events = [
            Event(number, keys.seal(Purpose.ROW, _place(self.stream.id, number) + message))
            for number, message in enumerate(said.messages, said.first)
        ]
        return Batch(events, kept_for(), said.told)


def kept_for() -> timedelta:
    """For how long what was said may be asked for again."""
    return timedelta(seconds=options().longest_answer_seconds + PICK_UP_SECONDS)


def message_of(stream: StreamRow, event: Event) -> bytes:
    """The message of an event of just this stream, at its place. Raises SealError, VaultError."""
    written = sealer.unseal(Purpose.ROW, stream.tenant, event.message)
    place = _place(stream.id, event.number)
    if not written.startswith(place):
        raise ValueError("an event of another place")
    return written[len(place) :]


def event_id(stream: UUID, number: int) -> str:
    """What clients call an event."""
    return f"{stream.hex}-{number}"


def _place(stream: UUID, number: int) -> bytes:
    return stream.bytes + number.to_bytes(8)
