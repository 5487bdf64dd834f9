"""Store a streaming call in the database, sealed: its request, its messages, its input requests.

What a stream's owner writes are conditions of the record writer. The rest runs in a database thread
and raises the database's errors.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from mcphost.audit.writer.conditions import Condition
from mcphost.calls import session_calls
from mcphost.calls.ownership import Lease
from mcphost.calls.session_calls import (
    BeginningCall,
    GivenAnswer,
    StoredCall,
    WaitingCall,
)
from mcphost.calls.states import CallState
from mcphost.calls.streams import Batch, Event, StreamRow
from mcphost.sealing.tokens import Purpose, Reason, SealError
from mcphost.serving.options import options
from mcphost.vault import sealer, selectors

PICK_UP = timedelta(hours=1)
"""How long a client may take to fetch missed events once its call is over."""


class NumberedMessages(NamedTuple):
    """Messages that are written together. `first` is the number of the first one.

    `notify`: notify other processes, because one of them reads the stream.
    """

    first: int
    messages: Sequence[bytes]
    notify: bool = False


class StoredStream(NamedTuple):
    """A streaming call that this process owns, as conditions of the record writer.

    `request` returns the encoded request. `polling`: the client may close the stream and resume it.
    What a condition writes is sealed in the writer's thread. A message that cannot be sealed makes
    its submission fail with RecordRefusedError.
    """

    owner: Lease
    stream: StreamRow
    request_name: str
    request: Callable[[], bytes]
    polling: bool

    def begin(self, numbered: NumberedMessages, waiting: WaitingCall | None = None) -> Condition:
        """Write the call and its stream; if `waiting`, with input requests."""

        def written() -> BeginningCall:
            call = self.owner.id
            keys = sealer.fetch(self.stream.tenant)
            request = keys.seal(Purpose.ROW, self.request(), context=call.bytes)
            return BeginningCall(
                StoredCall(call, self.request_name, request), self._batch(numbered), waiting
            )

        return session_calls.begin(self.owner, self.stream, written)

    def append(self, numbered: NumberedMessages) -> Condition:
        """Write more messages."""
        return session_calls.append(self.owner, self.stream, partial(self._batch, numbered))

    def ask(self, waiting: WaitingCall, numbered: NumberedMessages) -> Condition:
        """Write input requests."""
        return session_calls.ask(self.owner, self.stream, waiting, partial(self._batch, numbered))

    def finish(self, state: CallState, numbered: NumberedMessages) -> Condition:
        """Write the last messages and end the call."""

        def written() -> Batch:
            return self._batch(numbered)._replace(kept=PICK_UP)

        return session_calls.finish(self.owner, self.stream, state, written)

    def start(self, number: int) -> Condition:
        """Start a round of the waiting call."""
        return session_calls.start(self.owner, number)

    def answer(self, response: GivenAnswer, number: int, state: CallState) -> Condition:
        """Store an input response; if `state` is running, start the round with that number."""
        return session_calls.answer(self.owner, self.stream, response, number, state)

    def is_mine(self) -> bool:
        """Whether this process still owns the call. In a database thread."""
        return session_calls.is_owned_by(self.owner)

    def release(self, notify: bool) -> None:
        """Release the waiting call. `notify`: notify other processes, because it can go on now.

        In a database thread.
        """
        session_calls.release(self.owner, notify=notify)

    def _batch(self, numbered: NumberedMessages) -> Batch:
        keys = sealer.fetch(self.stream.tenant)
        events = [
            Event(number, keys.seal(Purpose.ROW, message, context=_context(self.stream.id, number)))
            for number, message in enumerate(numbered.messages, numbered.first)
        ]
        return Batch(events, kept_for(), numbered.notify)


def kept_for() -> timedelta:
    """How long events can be replayed while the call goes on."""
    return timedelta(seconds=options().longest_answer_seconds)


def seal(tenant: UUID, context: bytes, content: bytes) -> str:
    """Seal the value of a column; `context` identifies the row and column.

    Raises SealError, VaultError.
    """
    return sealer.seal(Purpose.ROW, tenant, content, context=context)


def unseal(tenant: UUID, context: bytes, sealed: str) -> bytes:
    """Open a value that `seal` sealed for the same context.

    The key ring is read again if the key is unknown. Raises SealError, VaultError.
    """
    try:
        return sealer.unseal(Purpose.ROW, tenant, sealed, context=context)
    except SealError as error:
        if error.reason is not Reason.UNKNOWN_KEY:
            raise
    keys = sealer.fetch(tenant).with_ring(selectors.reread_ring())
    return keys.unseal(Purpose.ROW, sealed, context=context)


def message_of(stream: StreamRow, event: Event) -> bytes:
    """Open the message of an event; it is bound to its stream and number.

    Raises SealError, VaultError.
    """
    return unseal(stream.tenant, _context(stream.id, event.number), event.message)


def event_id(stream: UUID, number: int) -> str:
    """The SSE event id: stream and number."""
    return f"{stream.hex}-{number}"


def _context(stream: UUID, number: int) -> bytes:
    return stream.bytes + number.to_bytes(8)
