"""WebSockets over our uvicorn server, on real loopback connections."""

import asyncio

import pytest

from mcphost.transport.server.graceful_shutdown import ShutdownTimes
from mcphost.transport.server.websockets import MESSAGE_BYTES, WebSocketProtocol
from tests.transport.uvicorn_server import PATIENCE, answer, end, running

UPGRADE = (
    b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
OURS = UPGRADE % b"/admin/calls/changes/"
CLOSE = 0x88


def frame(opcode: int, content: bytes) -> bytes:
    """A frame of a client, masked with zeros."""
    long = len(content) > 125
    length = b"\xfe" + len(content).to_bytes(2, "big") if long else bytes([0x80 | len(content)])
    return bytes([0x80 | opcode]) + length + bytes(4) + content


async def test_an_upgrade_from_the_consoles_own_pages_opens_a_websocket() -> None:
    async with running() as served:
        reader, writer = await served.line(OURS)
        found = await answer(reader)
        assert found.startswith(b"HTTP/1.1 101 ")
        assert b"permessage-deflate" not in found
        writer.write(frame(8, (1000).to_bytes(2, "big")))
        assert (await end(reader))[0] == CLOSE
        assert served.app.ended[-1] == "1000"


@pytest.mark.parametrize("path", [b"/t/acme/mcp", b"/", b"/healthz", b"/administration"])
async def test_an_upgrade_on_other_paths_is_ignored(path: bytes) -> None:
    async with running() as served:
        reader, _ = await served.line(UPGRADE % path)
        assert (await answer(reader)).startswith(b"HTTP/1.1 200 ")


async def test_a_message_that_is_too_large_closes_the_socket() -> None:
    async with running() as served:
        reader, writer = await served.line(OURS)
        await answer(reader)
        writer.write(frame(1, b"x" * (MESSAGE_BYTES + 1)))
        closing = await end(reader)
        assert closing[0] == CLOSE
        assert int.from_bytes(closing[2:4], "big") == 1009


async def test_a_websocket_client_that_reads_nothing_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WebSocketProtocol, "stalled_seconds", 0.1)
    async with running() as served:
        reader, writer = await served.line(OURS)
        await answer(reader)
        writer.write(frame(1, b"more"))
        async with asyncio.timeout(PATIENCE):
            await served.app.said.wait()
        assert served.app.ended[-1] == "1005"


async def test_websockets_still_open_at_shutdown_are_cut() -> None:
    async with running(shutdown_times=ShutdownTimes(0, 0.1)) as served:
        reader, _ = await served.line(OURS)
        await answer(reader)
        served.server.should_exit = True
        assert await end(reader) == b""
