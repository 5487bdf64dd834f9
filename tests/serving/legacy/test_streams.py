"""What goes on a call's stream, who reads it, and how many calls a caller has at once."""

import asyncio
from uuid import UUID, uuid4

import pytest

from mcphost.calls.states import CallState
from mcphost.calls.streams import Batch
from mcphost.protocol import messages
from mcphost.runtime.notification_channel import NotificationChannel
from mcphost.runtime.ports import NullNotifier
from mcphost.runtime.tool_tasks import ToolTasks
from mcphost.sealing.tokens import Reason, SealError
from mcphost.serving import shutdown
from mcphost.serving.legacy import call, replay, stream
from mcphost.serving.legacy.storage import NumberedMessages, StoredStream
from mcphost.serving.legacy.stream import MOST, MOST_BYTES, Readers
from mcphost.serving.legacy.takeover import takeovers
from tests.cast import Cast
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _only, _row, _text, _waits

pytestmark = pytest.mark.django_db(transaction=True)
RED = accept(colour="red")
AT_ONCE = 10.0
"""Seconds in which nothing but the drain wakes a reader."""


async def test_what_a_tools_own_code_says_is_written_though_its_round_ends_at_once_unless_too_large(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    tool = ToolTasks(NotificationChannel(NullNotifier()))
    tool.enter()
    for text in ("x" * 4 * MOST_BYTES, "said last"):
        _only().outgoing.send(messages.log_message("info", text, None))
    await tool.end()
    tool.leave()
    await caller.answer(shown.requests[0], RED)
    await shown.whole()
    assert _text(shown) == "a wall is red"
    assert [one["params"]["data"] for one in shown.of("notifications/message")] == ["said last"]


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


async def test_of_too_many_readers_the_first_has_to_go() -> None:
    readers, stream = Readers(), uuid4()
    shown = [Shown() for _ in range(MOST + 2)]
    present = [readers.present(stream, each) for each in shown]
    for each in present:
        each.__enter__()
    assert [each.ended for each in shown] == [True, True] + [False] * MOST
    readers.send_away(stream)
    assert all(each.ended for each in shown)
    for each in present:
        each.__exit__(None, None, None)
    assert stream not in readers


@pytest.mark.parametrize("limit", [("MAX_CALLS", 2), ("MAX_BYTES", 20)])
async def test_who_has_too_much_under_way_is_refused_until_some_is_over(
    asking: Cast, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(call, *limit)
    caller, other = await Caller.at(asking), await Caller.at(asking, asking.member)
    first, second = await _waits(caller), await _waits(caller)
    refused = await caller.call("paint", what="a wall").settled()
    assert refused is not None
    assert b'"retryAfter":60' in refused.body
    third = await _waits(other)
    await caller.answer(first.requests[0], RED)
    await first.whole()
    fourth = await _waits(caller)
    assert not second.ended
    for one, shown in ((caller, second), (other, third), (caller, fourth)):
        await one.answer(shown.requests[0], RED)
        await shown.whole()
    await true(lambda: not call.under_way)
    assert (call._in_progress.calls.total(), call._in_progress.bytes.total()) == (0, 0)


@pytest.mark.parametrize("resumed", ["before the drain", "during the drain"])
async def test_a_stream_of_another_process_is_not_followed_beyond_the_drain(
    asking: Cast, monkeypatch: pytest.MonkeyPatch, resumed: str
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await true(lambda: _only()._resting)  # else it would leave by itself
    for name in ("FIRST_LOOK_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(replay, name, 600.0)
    real, looked = takeovers.take_over, asyncio.Event()

    async def look(stream: UUID) -> None:
        await real(stream=stream)
        looked.set()

    monkeypatch.setattr(takeovers, "take_over", look)
    with monkeypatch.context() as of_another:
        of_another.setattr(stream, "live", {})
        of_another.setattr(call, "under_way", set())
        if resumed == "during the drain":
            shutdown.begin()
        followed, following = caller.following(shown.ids[0])
        if resumed == "before the drain":
            await asyncio.wait_for(looked.wait(), PATIENCE)
            shutdown.begin()
        async with asyncio.timeout(AT_ONCE):
            await following
    assert followed.retry is not None
    call.release_all()
    await true(lambda: not call.under_way)
