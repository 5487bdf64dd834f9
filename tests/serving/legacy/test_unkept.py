"""Messages too large to be stored: they are dropped, or the call ends and no reader waits."""

import pytest

from mcphost.calls.states import CallState
from mcphost.calls.streams import Batch
from mcphost.protocol import messages
from mcphost.sealing.tokens import Reason, SealError
from mcphost.serving.legacy.storage import NumberedMessages, StoredStream
from mcphost.serving.legacy.stream import MOST_BYTES
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, accept
from tests.serving.legacy.test_takeover import _only, _row, _text, _waits

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_message_too_large_to_be_kept_is_left_out(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    _only().outgoing.send(messages.log_message("info", "x" * 4 * MOST_BYTES, None))
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    assert not shown.of("notifications/message")


async def test_a_stream_that_cannot_be_kept_ends(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)

    real = StoredStream._batch

    def too_large(stored: StoredStream, said: NumberedMessages) -> Batch:
        if any(b"unstorable" in message for message in said.messages):
            raise SealError(Reason.TOO_LARGE)
        return real(stored, said)

    monkeypatch.setattr(StoredStream, "_batch", too_large)
    _only().outgoing.send(messages.log_message("info", "unstorable", None))
    await shown.whole()
    await caller.resumed(shown.ids[-1])
    row = await _row()
    assert (row.state, row.request) == (CallState.CANCELLED, "")
