"""The state of a stream after each event in each state, on real streams with rows."""

import asyncio

import pytest

from mcphost.audit.records import new_id
from mcphost.calls.ownership import Lease
from mcphost.calls.states import STREAM, StreamState, StreamStep
from mcphost.calls.streams import StreamRow
from mcphost.feed.nodes import heartbeat
from mcphost.serving.legacy.outbound_guard import Gate
from mcphost.serving.legacy.storage import StoredStream
from mcphost.serving.legacy.stream import Outgoing, live
from tests.cast import Cast
from tests.serving.legacy.callers import PATIENCE, Caller

pytestmark = pytest.mark.django_db(transaction=True)

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
PATHS = {
    StreamState.SILENT: (),
    StreamState.OPEN: (StreamStep.OPEN,),
    StreamState.LAST: (StreamStep.OPEN, StreamStep.FINISH),
    StreamState.ENDED: (StreamStep.OPEN, StreamStep.FINISH, StreamStep.WRITTEN),
    StreamState.MOVED: (StreamStep.OPEN, StreamStep.MOVE),
    StreamState.DROPPED: (StreamStep.ABANDON,),
}


class Walked:
    """A stream to which events happen."""

    def __init__(self, caller: Caller) -> None:
        session = caller.session
        row = StreamRow(new_id(), session.tenant, session.id)
        taking = Lease(new_id(), session.tenant, heartbeat.id, 1)
        stored = StoredStream(taking, row, "name", lambda: b"{}", polling=True)
        gate = Gate(session, caller.principal, 1)
        self.outgoing = Outgoing(stored, gate, lambda: None, lambda: None)
        self._finishing: list[asyncio.Task[None]] = []

    async def happens(self, event: StreamStep) -> None:
        match event:
            case StreamStep.OPEN:
                self.outgoing.open()
            case StreamStep.FINISH:  # it begins, and is not written yet
                if self.outgoing._state is StreamState.OPEN:
                    await self.outgoing.written()
                began = asyncio.Event()
                self._finishing.append(asyncio.create_task(self._finish(began)))
                await began.wait()
            case StreamStep.WRITTEN:
                await self.over()
            case StreamStep.ABANDON:
                self.outgoing.abandon()
            case StreamStep.MOVE:
                await self.outgoing.release(notify=False, stays=True)

    async def _finish(self, began: asyncio.Event) -> None:
        began.set()  # who waits for it goes on when `finish` waits for the commit
        await self.outgoing.finish(ANSWER)

    async def over(self) -> None:
        await asyncio.wait_for(asyncio.gather(*self._finishing), PATIENCE)


@pytest.mark.parametrize("state", StreamState)
async def test_a_stream_changes_state_only_as_the_table_allows(
    asking: Cast, state: StreamState
) -> None:
    caller = await Caller.at(asking)
    for event in (one for one in StreamStep if one is not StreamStep.UNRECORDED):
        walked = Walked(caller)
        for one in PATHS[state]:
            await walked.happens(one)
        assert walked.outgoing._state is state
        expected = STREAM.get((state, event), state)
        if (state, event) == (StreamState.LAST, StreamStep.MOVE):
            expected = StreamState.ENDED  # a release waits for what is queued
        await walked.happens(event)
        assert walked.outgoing._state is expected, event
        assert walked.outgoing.closed is (expected not in (StreamState.SILENT, StreamState.OPEN))
        walked.outgoing.abandon()
        await walked.over()
        assert walked.outgoing.stored.stream.id not in live
