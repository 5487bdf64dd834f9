"""Streams that stay open: no task writes for them, and slow readers get every message once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcphost.observability import counters
from mcphost.transport.legacy.stream_response import StreamReader
from mcphost.transport.long_stream import LongStream
from mcphost.transport.response import StreamLimits

PATIENT = StreamLimits(stream_after=60, comment_every=60, unread=1000)


class Peer:
    """A client that can stop reading, disconnect, or fail, and what it has received."""

    def __init__(self, limits: StreamLimits = PATIENT) -> None:
        self.events: list[dict[str, Any]] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.gone = asyncio.Event()
        self.changed = asyncio.Event()
        self.broken = self.asked = False
        self.stream = LongStream(self.receive, self.send, limits, [(b"x-test", b"1")])

    async def receive(self) -> dict[str, Any]:
        if not self.asked:
            self.asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: dict[str, Any]) -> None:
        if self.broken:
            raise OSError("the connection is broken")
        await self.reading.wait()
        self.events.append(event)
        self.changed.set()

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.events)

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(10):
            while text not in self.body:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def peer(limits: StreamLimits = PATIENT) -> AsyncIterator[Peer]:
    made = Peer(limits)
    try:
        yield made
    finally:
        made.stream.end()


async def test_a_message_to_a_fast_reader_is_sent_at_once() -> None:
    async with peer() as reader:
        tasks = len(asyncio.all_tasks())
        reader.stream.send(b'{"a":1}')
        reader.stream.send(b'{"a":1}')
        assert reader.body == b'data: {"a":1}\n\n' * 2
        assert len(asyncio.all_tasks()) == tasks
        assert reader.events[0]["status"] == 200
        assert dict(reader.events[0]["headers"])[b"x-test"] == b"1"


async def test_repeated_messages_for_a_slow_reader_are_sent_once() -> None:
    async with peer() as reader:
        reader.stream.send(b"first")
        reader.reading.clear()
        for message in (b"second", b"third", b"third", b"fourth", b"third"):
            reader.stream.send(message)
        assert reader.body == b"data: first\n\n"
        reader.reading.set()
        await reader.until(b"fourth")
        assert reader.body.count(b"third") == 1
        await reader.stream.finish(200, b"last")
        assert reader.body.endswith(b"data: last\n\n")
        assert reader.events[-1]["more_body"] is False


async def test_the_response_is_sent_after_the_unread_messages_of_a_slow_reader() -> None:
    async with peer() as reader:
        reader.reading.clear()
        reader.stream.send(b"first")
        finishing = asyncio.create_task(reader.stream.finish(200, b"last"))
        await asyncio.sleep(0)
        assert not finishing.done()
        reader.reading.set()
        await finishing
        assert reader.body == b"data: first\n\ndata: last\n\n"
        reader.stream.send(b"late")
        assert b"late" not in reader.body


async def test_a_reader_with_too_much_unread_data_is_disconnected() -> None:
    async with peer() as reader:
        reader.reading.clear()
        before = counters.streams_cut.value
        with pytest.raises(asyncio.CancelledError):
            for number in range(200):
                reader.stream.send(b"%d" % number * 10)
            await reader.stream.stay()
        assert reader.stream.lost
        assert counters.streams_cut.value == before + 1
        reader.stream.uncancel()


async def test_a_broken_connection_counts_as_a_disconnect() -> None:
    async with peer() as reader:
        reader.broken = True
        with pytest.raises(asyncio.CancelledError):
            reader.stream.send(b"first")
            await reader.stream.stay()
        assert reader.stream.lost
        reader.stream.uncancel()


async def test_waiting_on_a_stream_ends_with_its_release_and_with_the_disconnect() -> None:
    async with peer() as reader:
        asyncio.get_running_loop().call_soon(reader.stream.end_stay)
        await reader.stream.stay()
        reader.stream.end_stay()
        assert not reader.stream.lost
    async with peer() as gone:
        gone.gone.set()
        with pytest.raises(asyncio.CancelledError):
            await gone.stream.stay()
        assert gone.stream.lost
        gone.stream.end_stay()
        gone.stream.cut()
        gone.stream.uncancel()


async def test_silent_streams_get_keep_alive_comments_and_busy_ones_do_not() -> None:
    quick = StreamLimits(stream_after=60, comment_every=0.02, unread=1000)
    async with peer(quick) as silent, peer(quick) as behind, peer(quick) as over:
        for reader in (silent, behind, over):
            reader.stream.send(b"first")
        behind.reading.clear()
        behind.stream.send(b"second")
        await over.stream.finish(200, b"last")
        await silent.until(b":\n\n:\n\n")
        assert b":\n\n" not in over.body
        behind.reading.set()
        await behind.until(b"second")
    assert behind.body.startswith(b"data: first\n\ndata: second\n\n")


async def test_a_response_for_several_streams_ends_with_the_last_of_them() -> None:
    async with peer() as one:
        reader = StreamReader(one.stream, polling=True, parts=2)
        reader.write("a-1", b"{}")
        reader.end()
        assert not reader.closed
        reader.write("b-1", b"{}")
        for _ in range(2):
            reader.end()
            assert reader.closed
        await one.stream.stay()
        assert reader.last() == b""
    assert one.body == b"id: a-1\ndata: {}\n\nid: b-1\ndata: {}\n\n"


async def test_only_polling_clients_get_a_retry_delay_when_the_stream_ends() -> None:
    for polling, last in ((True, b"retry: 500\n\n"), (False, b"")):
        async with peer() as one:
            reader = StreamReader(one.stream, polling, parts=2)
            reader.end(500)
            assert reader.closed
            await one.stream.stay()
            assert reader.last() == last
