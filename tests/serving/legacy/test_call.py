"""Calls of sessions: answered as JSON, or on a stored stream."""

import asyncio
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.calls import streams
from mcphost.calls.models import Stream, StreamedCall, StreamEvent
from mcphost.feed.loop import ChangeNews
from mcphost.feed.models import Change
from mcphost.serving.database import in_database
from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.legacy.stream import MOST_AT_ONCE
from tests.cast import Cast
from tests.served import probes
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, true

pytestmark = pytest.mark.django_db(transaction=True)


async def _rows() -> tuple[int, int, int]:
    def count() -> tuple[int, int, int]:
        return Stream.objects.count(), StreamedCall.objects.count(), StreamEvent.objects.count()

    return await in_database(count)


async def test_what_is_called_off_at_once_is_not_begun(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("write", text="a")
    assert cancellations.is_under_way(caller.session.id, 1)
    await cancellations.cancel(caller.session, 1)
    answer = await asyncio.wait_for(call.settled(), PATIENCE)
    assert answer is not None
    assert answer.body == b""
    assert probes().ran == []
    assert not cancellations.is_under_way(caller.session.id, 1)


async def test_who_follows_from_another_process_is_told_by_the_feed(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("wait_until_told")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    call.open()
    shown = Shown()
    call.outgoing.attach(shown)
    await shown.until(lambda shown: shown.ids)
    stream = call.outgoing.stored.stream.id
    here = outgoing.live.pop(stream)  # as if this were another process
    follower, following = caller.following(shown.ids[0])
    await true(lambda: _announced(streams.FOLLOWED, stream))
    outgoing.live[stream] = here
    outgoing.live.on_change(ChangeNews(1, served.acme.id, streams.FOLLOWED, stream.hex))
    await true(lambda: _announced(streams.NEWS, stream))
    probes().release.set()
    assert len(await follower.whole()) == 1
    await following


async def test_a_stream_that_ends_unheard_just_as_it_is_followed_is_looked_at_again_soon(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(served)
    shown = await caller.streamed("steps", "t")
    await shown.whole()
    monkeypatch.setattr("mcphost.serving.legacy.replay.LOOK_SECONDS", 3600.0)
    await in_database(Stream.objects.all().update, ended_at=None)
    follower, following = caller.following(shown.ids[-1])
    await true(Change.objects.filter(what=streams.FOLLOWED).exists)
    await in_database(Stream.objects.all().update, ended_at=timezone.now())
    async with asyncio.timeout(PATIENCE):
        await following
    assert follower.ended


async def test_after_a_gap_every_stream_may_be_followed(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("hang")
    call.open()
    outgoing.live.on_gap()
    await true(lambda: call.outgoing.followed)
    await cancellations.cancel(caller.session, 1)
    await call.outgoing.written()


def _announced(what: str, stream: UUID) -> bool:
    return Change.objects.filter(what=what, object_id=stream.hex).exists()


async def test_what_comes_faster_than_it_is_written_is_written_together_or_dropped(
    served: Cast,
) -> None:
    caller = await Caller.at(served)
    call = caller.call("flood", "t")
    shown = Shown()
    call.outgoing.attach(shown)
    await shown.until(lambda shown: len(shown.messages) > MOST_AT_ONCE)
    await cancellations.cancel(caller.session, 1)
    await shown.whole()
    told = [one["params"]["progress"] for one in shown.of("notifications/progress")]
    assert told == sorted(told)
    assert [int(each.split("-")[1]) for each in shown.ids] == list(range(1, len(shown.ids) + 1))


async def test_a_reader_that_has_closed_is_shown_nothing_more(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("wait_until_told")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    call.open()
    shown, gone = Shown(), Shown()
    for each in (shown, gone):
        call.outgoing.attach(each)
    gone.closed = True
    probes().release.set()
    await shown.whole()
    assert (gone.messages, gone.ended) == ([], False)
    late = Shown()
    call.outgoing.attach(late)
    assert late.ended
