"""Streams, their events, and the calls that write to them."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from mcphost.calls import session_calls, streams
from mcphost.calls.models import Stream, StreamedCall, StreamEvent
from mcphost.calls.session_calls import Batch, CallOwner, StoredCall, SupersededError
from mcphost.calls.states import CallState
from mcphost.calls.streams import Event, StreamRow
from mcphost.feed.models import Change
from tests.calls.made import TENANT

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def _batch(*numbers: int, **said: Any) -> Batch:
    return Batch([Event(each, f"message {each}") for each in numbers], HOUR, **said)


def _begun() -> tuple[CallOwner, StreamRow]:
    taking, stream = CallOwner(uuid4(), uuid4(), 1), StreamRow(uuid4(), TENANT, uuid4())
    session_calls.begin(taking, stream, StoredCall(taking.call, "name", "sealed"), _batch(1, 2))
    return taking, stream


def _numbers(stream: StreamRow, after: int = 0) -> list[int]:
    return [each.number for each in streams.read(stream.id, after).events]


def _call(taking: CallOwner) -> StreamedCall:
    return StreamedCall.objects.get(id=taking.call)


def test_a_stream_is_read_from_anywhere_until_it_is_whole() -> None:
    taking, stream = _begun()
    assert streams.read(stream.id, 1) == ((Event(2, "message 2"),), False)
    session_calls.append(taking, stream, _batch(3))
    session_calls.finish(taking, stream, _batch(4))
    assert _numbers(stream, 2) == [3, 4]
    assert streams.read(stream.id, 4) == ((), True)
    assert streams.last(stream.id) == 4
    assert streams.last(uuid4()) == 0
    assert (_call(taking).state, _call(taking).request) == (CallState.FINISHED, "")


def test_a_page_that_is_full_is_not_the_last() -> None:
    taking, stream = _begun()
    session_calls.finish(taking, stream, _batch(*range(3, streams.READ_AT_ONCE + 1)))
    page = streams.read(stream.id, 0)
    assert (len(page.events), page.whole) == (streams.READ_AT_ONCE, False)
    assert streams.read(stream.id, streams.READ_AT_ONCE).whole


def test_what_was_written_already_is_not_written_again() -> None:
    taking, stream = _begun()
    session_calls.begin(taking, stream, StoredCall(taking.call, "name", "sealed"), _batch(1, 2))
    session_calls.append(taking, stream, _batch(2, 3))
    for _ in range(2):
        session_calls.finish(taking, stream, _batch(4))
    assert _numbers(stream) == [1, 2, 3, 4]


@pytest.mark.parametrize("write", [session_calls.append, session_calls.finish])
def test_who_was_superseded_writes_nothing(write: Any) -> None:
    taking, stream = _begun()
    for other in (taking._replace(owner=uuid4()), taking._replace(epoch=2)):
        with pytest.raises(SupersededError):
            write(other, stream, _batch(3))
    assert _numbers(stream) == [1, 2]


def test_nothing_is_written_after_the_end() -> None:
    taking, stream = _begun()
    session_calls.finish(taking, stream, _batch(3))
    with pytest.raises(SupersededError):
        session_calls.append(taking, stream, _batch(4))
    assert _numbers(stream) == [1, 2, 3]


def test_a_stream_is_its_tenants() -> None:
    _, stream = _begun()
    assert streams.find(stream.id, TENANT) == stream
    assert streams.find(stream.id, UUID(int=8)) is None


def test_others_are_told_only_if_somebody_follows() -> None:
    taking, stream = _begun()
    before = Change.objects.count()
    session_calls.append(taking, stream, _batch(3))
    assert Change.objects.count() == before
    session_calls.append(taking, stream, _batch(4, told=True))
    told = Change.objects.order_by("seq").last()
    assert told is not None
    assert (told.tenant, told.what, told.object_id) == (TENANT, streams.NEWS, stream.id.hex)


def test_what_is_over_is_forgotten_and_nothing_else() -> None:
    _begun()
    taking, stream = _begun()
    session_calls.finish(taking, stream, Batch([Event(3, "m")], -HOUR))
    assert streams.prune() == 3
    assert session_calls.prune() == 1
    assert (streams.prune(), session_calls.prune()) == (0, 0)
    assert Stream.objects.count() == StreamedCall.objects.count() == 1
    assert StreamEvent.objects.count() == 2


def test_a_stream_is_forgotten_with_its_last_event() -> None:
    taking, stream = _begun()
    many = range(3, streams.PRUNED_AT_ONCE + 2)
    session_calls.finish(taking, stream, Batch([Event(each, "m") for each in many], -HOUR))
    assert streams.prune() == streams.PRUNED_AT_ONCE
    assert Stream.objects.count() == 1
    assert streams.prune() == 1
    assert Stream.objects.count() == 0
