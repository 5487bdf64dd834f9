"""Streams, their events, and the calls that write to them."""

from uuid import UUID, uuid4

import pytest

from mcphost.calls import session_calls, streams
from mcphost.calls.models import Stream, StreamedCall, StreamEvent
from mcphost.calls.states import CallState
from mcphost.calls.streams import Event
from tests.calls.claim_rows import TENANT
from tests.calls.conftest import Start
from tests.calls.streaming import HOUR, MadeCall, begun, write

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_stream_is_read_by_its_tenant_from_any_event_to_its_end(start: Start) -> None:
    made, writer = MadeCall(), start()
    for _ in range(2):  # what was written already is not written again
        assert write(writer, made.begin(1, 2)) == [True]
    stream = made.stream.id
    assert streams.find(stream, TENANT) == made.stream
    assert streams.find(stream, UUID(int=8)) is None
    assert streams.read(stream, 1) == ((Event(2, "message 2"),), False)
    assert write(writer, made.append(2, 3)) == [True]
    for _ in range(2):
        assert write(writer, made.finish(4)) == [True]
    late = made.append(5), made.finish(5, state=CallState.CANCELLED)
    assert write(writer, *late) == [False, False], "nothing is written after the end"
    assert made.numbers == [1, 2, 3, 4]
    assert [each.number for each in streams.read(stream, 2).events] == [3, 4]
    assert streams.read(stream, 4) == ((), True)
    assert streams.last(stream) == 4
    assert streams.last(uuid4()) == 0
    assert (made.row.state, made.row.request) == (CallState.FINISHED, "")


def test_only_expired_streams_and_their_calls_and_events_are_pruned(start, monkeypatch):
    monkeypatch.setattr(streams, "PRUNED_AT_ONCE", 3)
    begun(writer := start())
    assert write(writer, begun(writer).finish(2, 3, 4, kept=-HOUR)) == [True]
    assert streams.prune() == 3
    assert Stream.objects.count() == 2
    assert streams.prune() == 1
    assert session_calls.prune() == 1
    assert (streams.prune(), session_calls.prune()) == (0, 0)
    assert Stream.objects.count() == StreamedCall.objects.count() == 1
    assert StreamEvent.objects.count() == 1
