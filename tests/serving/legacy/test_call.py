"""Calls of sessions: answered as JSON, or on a stored stream."""

import asyncio
from uuid import UUID

import orjson
import pytest
from django.utils import timezone

from mcphost.calls import streams
from mcphost.calls.models import Stream, StreamedCall, StreamEvent
from mcphost.feed.loop import ChangeNews
from mcphost.feed.models import Change
from mcphost.serving.database import in_database
from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy import stream as readers
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.legacy.stream import MOST_AT_ONCE
from mcphost.serving.process import lifecycle
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.served import entries, probes
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, true

pytestmark = pytest.mark.django_db(transaction=True)


async def _rows() -> tuple[int, int, int]:
    def count() -> tuple[int, int, int]:
        return Stream.objects.count(), StreamedCall.objects.count(), StreamEvent.objects.count()

    return await in_database(count)


async def test_a_call_that_says_nothing_meanwhile_is_json_and_leaves_no_rows(served: Cast) -> None:
    caller = await Caller.at(served)
    answer = await caller.call("echo", text="hello").settled()
    assert answer is not None
    assert (answer.status, answer.error) == (200, None)
    assert orjson.loads(answer.body)["result"]["content"] == [{"type": "text", "text": "hello"}]
    assert await _rows() == (0, 0, 0)
    assert not outgoing.live


async def test_what_a_call_says_is_written_before_it_is_shown(served: Cast) -> None:
    caller = await Caller.at(served)
    shown = await caller.streamed("steps", "t")
    messages = await shown.whole()
    assert [one["params"]["progress"] for one in shown.of("notifications/progress")] == [1, 2, 3]
    assert messages[-1]["result"]["content"][0]["text"] == "done"
    assert [int(each.split("-")[1]) for each in shown.ids] == list(range(1, len(messages) + 1))
    assert await _rows() == (1, 1, len(messages))
    assert not outgoing.live
    kept = await in_database(lambda: StreamEvent.objects.get(number=1).message)
    assert "progress" not in kept


async def test_a_stream_is_shown_again_from_any_of_its_events(served: Cast) -> None:
    caller = await Caller.at(served)
    first = await caller.streamed("steps", "t")
    whole = await first.whole()
    for number, event_id in enumerate(first.ids, 1):
        again = await caller.resumed(event_id)
        assert again.messages == whole[number:]
        assert again.ids == first.ids[number:]
        assert (again.ended, again.retry) == (True, None)


async def test_a_call_goes_on_without_its_reader(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("wait_until_told")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    call.open()
    assert await call.settled() is None
    gone = Shown()
    call.outgoing.attach(gone)
    await gone.until(lambda shown: shown.ids)
    call.outgoing.detach(gone)
    follower, following = caller.following(gone.ids[0])
    probes().release.set()
    assert (await follower.whole())[-1]["result"]["content"][0]["text"] == "released"
    await following
    assert gone.messages == [{}]
    assert not gone.ended


async def test_revisions_without_polling_have_no_first_event_of_their_own(served: Cast) -> None:
    caller = await Caller.at(served, revision="2025-06-18")
    call = caller.call("wait_until_told")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    call.open()
    call.open()
    assert await call.settled() is None
    shown = Shown()
    call.outgoing.attach(shown)
    probes().release.set()
    assert [one["id"] for one in await shown.whole()] == [1]


async def test_a_stream_is_no_other_sessions(served: Cast) -> None:
    caller, other = await Caller.at(served), await Caller.at(served)
    shown = await caller.streamed("steps", "t")
    await shown.whole()
    unknown = "0" * 32 + "-1"
    for session, event_id in ((other, shown.ids[0]), (caller, unknown), (caller, "nonsense")):
        with pytest.raises(Exception, match="Last-Event-ID"):
            await session.resumed(event_id)


async def test_errors_are_told_with_the_status_that_their_revision_has(served: Cast) -> None:
    caller = await Caller.at(served)
    answer = await caller.call("nothing").settled()
    assert answer is not None
    assert answer.status == 200
    assert answer.error is not None
    assert orjson.loads(answer.body)["error"]["code"] == -32602


async def test_what_is_called_off_is_not_answered(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("hang")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    await cancellations.cancel(caller.session, 1)
    answer = await asyncio.wait_for(call.settled(), PATIENCE)
    assert answer is not None
    assert answer.body == b""
    assert probes().cancelled.is_set()
    await in_database(lifecycle.stop)  # writes the waiting records
    assert [one.outcome for one in await entries("hang")] == ["", "cancelled"]


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


async def test_what_is_called_off_while_it_streams_ends_its_stream(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("hang")
    await asyncio.wait_for(probes().running.wait(), PATIENCE)
    call.open()
    shown = Shown()
    call.outgoing.attach(shown)
    await shown.until(lambda shown: shown.ids)
    await cancellations.cancel(caller.session, 1)
    assert await shown.whole() == [{}]
    assert not outgoing.live


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
    outgoing.on_change(ChangeNews(1, served.acme.id, streams.FOLLOWED, stream.hex))
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
    outgoing.on_gap()
    await true(lambda: call.outgoing.followed)
    await cancellations.cancel(caller.session, 1)
    await call.outgoing.written()


def _announced(what: str, stream: UUID) -> bool:
    return Change.objects.filter(what=what, object_id=stream.hex).exists()


async def test_a_stream_that_its_tool_closes_goes_on_where_its_client_comes_back(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    call = caller.call("closes_its_stream")
    assert await asyncio.wait_for(call.settled(), PATIENCE) is None
    shown = Shown()
    call.outgoing.attach(shown)
    await shown.until(lambda shown: shown.ended)
    assert shown.messages == [{}]
    assert shown.retry is not None
    follower, following = caller.following(shown.ids[0])
    await true(lambda: call.outgoing.stored.stream.id in readers.following)
    module("asking").running.set()
    await follower.until(lambda shown: shown.ended)
    assert follower.retry is not None
    await following
    module("asking").release.set()
    rest = await caller.resumed(shown.ids[0])
    assert rest.messages[-1]["result"]["content"][0]["text"] == "closed twice"


async def test_revisions_that_cannot_come_back_keep_their_streams(asking: Cast) -> None:
    caller = await Caller.at(asking, revision="2025-06-18")
    module("asking").running.set()
    module("asking").release.set()
    answer = await asyncio.wait_for(caller.call("closes_its_stream").settled(), PATIENCE)
    assert answer is not None
    assert b"closed twice" in answer.body


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
