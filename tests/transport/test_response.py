"""A response is JSON unless something must be streamed."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.transport.request_cycle import Conversation
from mcphost.transport.response import Responder, StreamLimits

CALLER = Principal(PrincipalKind.ANONYMOUS, uuid4())
QUICK = StreamLimits(stream_after=60, comment_every=60, unread=1000)


class Wire:
    """Keeps what the server would have sent."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.changed = asyncio.Event()
        self.cut = asyncio.Event()

    async def send(self, event: dict[str, Any]) -> None:
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

    def responder(self, limits: StreamLimits = QUICK) -> "Cuttable":
        return Cuttable(self, limits)


class Cuttable(Responder):
    """A responder that notes on its wire that it was cut."""

    def __init__(self, wire: Wire, limits: StreamLimits) -> None:
        super().__init__(wire.send, limits, [(b"x-test", b"1")])
        self.wire = wire

    def cut(self) -> None:
        self.wire.cut.set()


@pytest.mark.requirement("http.answer-type")
async def test_a_response_without_notifications_is_json() -> None:
    wire = Wire()
    responder = wire.responder()
    await responder.finish(200, b"{}")
    assert dict(wire.events[0]["headers"])[b"content-type"] == b"application/json"
    assert wire.body == b"{}"
    assert not responder.streaming


@pytest.mark.requirement("http.answer-type")
async def test_the_first_notification_turns_the_response_into_a_stream() -> None:
    wire = Wire()
    responder = wire.responder()
    responder.send(b'{"a":1}')
    await responder.finish(400, b'{"b":2}')
    assert wire.events[0]["status"] == 200
    assert dict(wire.events[0]["headers"])[b"x-test"] == b"1"
    assert wire.body.index(b'{"a":1}') < wire.body.index(b'{"b":2}')
    assert wire.events[-1]["more_body"] is False


@pytest.mark.requirement("http.keep-alive")
async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    wire = Wire()
    responder = wire.responder(StreamLimits(60, 0.001, 1000))
    responder.open()
    await wire.until(b":")
    await responder.finish(200, b"{}")
    assert responder.streaming
    assert wire.body.endswith(b"data: {}\n\n")


@pytest.mark.requirement("progress.ends")
@pytest.mark.requirement("http.response-ends-stream")
async def test_nothing_is_sent_after_the_response() -> None:
    wire = Wire()
    responder = wire.responder()
    await responder.finish(200, b"{}")
    responder.send(b'{"late":1}')
    responder.open()
    assert responder.closed
    assert wire.body == b"{}"


async def test_a_reader_with_too_much_unread_data_is_disconnected() -> None:
    wire = Wire()
    responder = wire.responder()
    for _ in range(20):
        responder.send(b"x" * 100)
    assert wire.cut.is_set()
    responder.abandon()


@pytest.mark.requirement("cancellation.silence")
async def test_an_abandoned_response_sends_nothing_more() -> None:
    wire = Wire()
    responder = wire.responder()
    responder.send(b'{"a":1}')
    responder.abandon()
    responder.send(b'{"b":1}')
    await asyncio.sleep(0)
    assert b'"b"' not in wire.body


async def test_a_slow_call_becomes_a_stream() -> None:
    wire = Wire()
    never: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def receive() -> dict[str, Any]:
        return await never

    conversation = Conversation(receive, wire.send, StreamLimits(0.001, 0.001, 1000), (), CALLER)
    await wire.until(b":")
    await conversation.finish(200, b"{}")
    assert conversation.streaming
    assert wire.body.endswith(b"data: {}\n\n")
    conversation.end()
