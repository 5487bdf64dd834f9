"""Our uvicorn server, run in this process, and connections to it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcphost.transport.server.graceful_shutdown import GracefulServer, ShutdownTimes
from mcphost.transport.server.uvicorn import SHUTDOWN_TIMES, ClientTimeouts, build

PATIENCE = 20
LARGE = bytes(8 * 1024 * 1024)  # more than the kernel buffers
LAST = b"hello\r\n0\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Hello:
    """A tiny application. `/wait` answers when the test lets it, and so ends `/stream`; a disconnect
    is noted."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.release = asyncio.Event()
        self.said = asyncio.Event()
        self.ended: list[str] = []
        self.headers: list[list[tuple[bytes, bytes]]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] == "websocket":
            await self._talk(receive, send)
            return
        self.arrived.set()
        if scope["path"] == "/wait":
            await self.release.wait()
        self.headers.append(list(scope["headers"]))
        if scope["path"] == "/stream":
            await self._stream(send)
            return
        if scope["path"] == "/large":
            await self._say_much(send)
            return
        length = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": b"hello"})

    async def _talk(self, receive: Any, send: Any) -> None:
        """Accept a socket, say hello, and note how it ends."""
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "hello"})
        self.arrived.set()
        while (event := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": LARGE})
        self.ended.append(str(event["code"]))
        self.said.set()

    async def _stream(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await self.release.wait()
        await send({"type": "http.response.body", "body": b"hello"})

    async def _say_much(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": LARGE, "more_body": True})
        await asyncio.sleep(0)  # ends the loop's iteration: it is written, and not all is sent
        await send({"type": "http.response.body", "body": b"hello"})
        self.said.set()

    async def _live(self, receive: Any, send: Any) -> None:
        for _ in range(2):
            event = (await receive())["type"]
            self.ended.append(event)
            await send({"type": f"{event}.complete"})


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Running:
    """A server in this loop, and connections to it."""

    def __init__(self, server: GracefulServer, app: Hello, port: int) -> None:
        self.server, self.app, self.port = server, app, port
        self._writers: list[asyncio.StreamWriter] = []

    async def line(self, begun: bytes = b"") -> Line:
        end = socket.socket()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=end)
        self._writers.append(writer)
        writer.write(begun)
        return reader, writer

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def running(
    header_seconds: float = 60,
    body_seconds: float = 60,
    stalled_seconds: float = 60,
    shutdown_times: ShutdownTimes = SHUTDOWN_TIMES,
) -> AsyncIterator[Running]:
    """Run the server inside the block; it must end by itself, without an error, after it."""
    app = Hello()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        patience = ClientTimeouts(header_seconds, body_seconds, stalled_seconds)
        server = build(app, "127.0.0.1", port, patience, shutdown_times)
        serving = asyncio.create_task(server.serve([listener]))
        served = Running(server, app, port)
        try:
            yield served
        except BaseException:
            server.force_exit = True
            raise
        finally:
            server.should_exit = True
            served.hang_up()
            async with asyncio.timeout(PATIENCE):
                await serving


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The next response."""
    async with asyncio.timeout(PATIENCE):
        return await reader.readuntil(b"hello")


async def end(reader: asyncio.StreamReader) -> bytes:
    """All bytes until the server closes the connection."""
    async with asyncio.timeout(PATIENCE):
        return await reader.read()
