"""What a call on a stream leaves in the database, sealed: its request, each of its messages, and what
it waits for.

All of it runs in a thread that may wait for the database, whose errors it raises.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from mcphost.calls import streamed
from mcphost.calls.states import CallState
from mcphost.calls.streamed import Batch, CallRow, Taking, Waiting
from mcphost.calls.streams import Event, StreamRow
from mcphost.sealing.tokens import Purpose, Reason, SealError
from mcphost.serving.options import options
from mcphost.vault import sealer, selectors
from mcphost.vault.sealer import TenantSealer

PICK_UP = timedelta(hours=1)
"""How long a client may take to come back for what it missed, once its call is over."""


class Messages(NamedTuple):
    """Messages that are written together, the first of them as number `first`."""

    first: int
    messages: Sequence[bytes]
    told: bool = False


class Kept(NamedTuple):
    """A call on a stream, as this process has it. `polling`: its client may close the stream, and come
    back to it. All methods raise SupersededError, SealError, VaultError.
    """

    taking: Taking
    stream: StreamRow
    request_name: str
    request: Callable[[], bytes]
    polling: bool

    def begin(self, said: Messages) -> None:
        """Write the call and its stream."""
        keys = sealer.fetch(self.stream.tenant)
        streamed.begin(self.taking, self.stream, self._row(keys), self._batch(keys, said))

    def append(self, said: Messages) -> None:
        """Write more."""
        batch = self._batch(sealer.fetch(self.stream.tenant), said)
        streamed.append(self.taking, self.stream, batch)

    def ask(self, waiting: Waiting, opens: bool, said: Messages) -> None:
        """Write what is asked, and the call and its stream with it if it `opens` them."""
        keys = sealer.fetch(self.stream.tenant)
        opening = self._row(keys) if opens else None
        streamed.ask(self.taking, self.stream, self._batch(keys, said), waiting, opening)

    def finish(self, state: CallState, said: Messages) -> None:
        """Write the last of it."""
        batch = self._batch(sealer.fetch(self.stream.tenant), said)
        streamed.finish(self.taking, self.stream, batch._replace(kept=PICK_UP), state)

    def release(self, told: bool) -> None:
        """Let the call go, which waits. `told`: it can go on now."""
        streamed.release(self.taking, self.stream.tenant, told=told)

    def _row(self, keys: TenantSealer) -> CallRow:
        call = self.taking.call
        request = keys.seal(Purpose.ROW, call.bytes + self.request())
        return CallRow(call, self.request_name, request)

    def _batch(self, keys: TenantSealer, said: Messages) -> Batch:
        events = [
            Event(number, keys.seal(Purpose.ROW, _place(self.stream.id, number) + message))
            for number, message in enumerate(said.messages, said.first)
        ]
        return Batch(events, kept_for(), said.told)


def kept_for() -> timedelta:
    """For how long what was said may be asked for again while the call goes on."""
    return timedelta(seconds=options().longest_answer_seconds)


def seal(tenant: UUID, place: bytes, content: bytes) -> str:
    """What is kept of a row, bound to its place. Raises SealError, VaultError."""
    return sealer.seal(Purpose.ROW, tenant, place + content)


def unseal(tenant: UUID, place: bytes, kept: str) -> bytes:
    """What `seal` kept at that very place. Raises SealError, VaultError."""
    written = _opened(tenant, kept)
    if not written.startswith(place):
        raise SealError(Reason.NOT_AUTHENTIC)
    return written[len(place) :]


def _opened(tenant: UUID, kept: str) -> bytes:
    """What was sealed by us, if need be under a key of which this process has not heard."""
    try:
        return sealer.unseal(Purpose.ROW, tenant, kept)
    except SealError as error:
        if error.reason is not Reason.UNKNOWN_KEY:
            raise
    return sealer.fetch(tenant).with_ring(selectors.reread_ring()).unseal(Purpose.ROW, kept)


def message_of(stream: StreamRow, event: Event) -> bytes:
    """The message of an event of just this stream, at its place. Raises SealError, VaultError."""
    return unseal(stream.tenant, _place(stream.id, event.number), event.message)


def event_id(stream: UUID, number: int) -> str:
    """What clients call an event."""
    return f"{stream.hex}-{number}"


def _place(stream: UUID, number: int) -> bytes:
    return stream.bytes + number.to_bytes(8)
