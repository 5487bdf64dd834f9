"""Calls of sessions: answered as JSON, or on a stored stream."""

import asyncio
from uuid import UUID

import pytest

from mcphost.calls import streams
from mcphost.feed.loop import ChangeNews
from mcphost.feed.models import Change
from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy.cancellation import cancellations
from tests.cast import Cast
from tests.served import probes
from tests.serving.legacy.callers import PATIENCE, Caller, Shown, true

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_call_cancelled_at_once_is_not_run(served: Cast) -> None:
    caller = await Caller.at(served)
    call = caller.call("write", text="a")
    assert cancellations.is_under_way(caller.session.id, 1)
    await cancellations.cancel(caller.session, 1)
    answer = await asyncio.wait_for(call.settled(), PATIENCE)
    assert answer is not None
    assert answer.body == b""
    assert probes().ran == []
    assert not cancellations.is_under_way(caller.session.id, 1)


def _announced(what: str, stream: UUID) -> bool:
    return Change.objects.filter(name=what, object_id=stream.hex).exists()


async def test_a_stream_followed_from_another_process_is_continued_by_the_change_log(
    served: Cast,
) -> None:
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
    await true(lambda: _announced(streams.CHANGE_NAME, stream))
    probes().release.set()
    assert len(await follower.whole()) == 1
    await following
