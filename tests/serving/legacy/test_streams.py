"""The messages and readers of a call's stream, and the number of concurrent calls per caller."""

import asyncio
from uuid import UUID, uuid4

import pytest

from mcphost.calls.states import OwnedCallState
from mcphost.serving import shutdown
from mcphost.serving.legacy import call, replay, stream
from mcphost.serving.legacy.stream import MAX_READERS, Readers
from mcphost.serving.legacy.takeover import takeovers
from tests.cast import Cast
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _only, _waits

pytestmark = pytest.mark.django_db(transaction=True)
RED = accept(colour="red")
AT_ONCE = 10.0
"""Seconds in which nothing but the drain wakes a reader."""


async def test_with_too_many_readers_of_a_stream_the_first_is_disconnected() -> None:
    readers, stream = Readers(), uuid4()
    shown = [Shown() for _ in range(MAX_READERS + 2)]
    present = [readers.present(stream, each) for each in shown]
    for each in present:
        each.__enter__()
    assert [each.ended for each in shown] == [True, True] + [False] * MAX_READERS
    readers.send_away(stream)
    assert all(each.ended for each in shown)
    for each in present:
        each.__exit__(None, None, None)
    assert stream not in readers


@pytest.mark.parametrize("limit", [("MAX_CALLS", 2), ("MAX_BYTES", 20)])
async def test_a_caller_with_too_many_calls_in_progress_is_refused_until_one_ends(
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
    await true(lambda: _only()._state is OwnedCallState.RESTING)  # else it would leave by itself
    for name in ("FIRST_POLL_SECONDS", "MAX_POLL_SECONDS"):
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
    assert followed.retry == 10_000
    call.release_all()
    await true(lambda: not call.under_way)
