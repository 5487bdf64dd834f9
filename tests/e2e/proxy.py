"""A small reverse proxy: round robin over the nodes that say they are ready, and it retries nothing.

Calls of tools have a round of their own: whatever else a client requests between two calls, the second goes to the next
node. It keeps connections to nodes open, as real ones do, and streams in both directions. Whatever goes
wrong between it and a node is a 502, and is kept in `failures`.
"""

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

POLL_SECONDS = 0.1
PATIENCE = 60.0
READYZ = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
REFUSAL = "HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"


class Line(NamedTuple):
    """A connection, from our end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Head(NamedTuple):
    """The first line and the headers of a message, as they came."""

    raw: bytes

    def value(self, name: bytes) -> bytes:
        for line in self.raw.lower().split(b"\r\n")[1:]:
            found, _, value = line.partition(b":")
            if found == name:
                return value.strip()
        return b""

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ", 2)[1])

    @property
    def last(self) -> bool:
        return self.value(b"connection") == b"close"


class Proxy:
    """Serves on `port`."""

    def __init__(self, nodes: Collection[int]) -> None:
        self._nodes = tuple(nodes)
        self._turns: dict[bool, int] = defaultdict(int)
        self._idle: dict[int, list[Line]] = defaultdict(list)
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready: frozenset[int] = frozenset()
        self.failures: list[str] = []
        self.served: dict[int, int] = defaultdict(int)
        self.called: list[int] = []
        self.port = 0

    async def run(self, started: threading.Event, stopping: asyncio.Event) -> None:
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._loop = asyncio.get_running_loop()
        for node in self._nodes:
            self._begin_to_look_after(node)
        started.set()
        await stopping.wait()
        server.close()
        tasks = (*self._looks.values(), *self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for lines in self._idle.values():
            for line in lines:
                line.writer.close()

    def add(self, node: int) -> None:
        assert self._loop is not None
        self._nodes = (*self._nodes, node)
        self._loop.call_soon_threadsafe(self._begin_to_look_after, node)

    def remove(self, node: int) -> None:
        assert self._loop is not None
        self._nodes = tuple(each for each in self._nodes if each != node)
        self._loop.call_soon_threadsafe(self._looks.pop(node).cancel)

    @contextmanager
    def without(self, node: int) -> Iterator[None]:
        """Send nothing new to this node for a while, though it is ready."""
        self.remove(node)
        try:
            yield
        finally:
            self.add(node)

    def wait_for(self, *nodes: int) -> None:
        ends = time.monotonic() + PATIENCE
        with self._changed:
            while self.ready != frozenset(nodes):
                assert self._changed.wait(ends - time.monotonic()), f"in rotation: {self.ready}"

    def wait_until_served_by(self, node: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.served[node], PATIENCE)

    def _begin_to_look_after(self, node: int) -> None:
        self._looks[node] = asyncio.create_task(self._look_after(node))

    async def _look_after(self, node: int) -> None:
        while True:
            is_ready = await self._is_ready(node)
            with self._changed:
                self.ready = self.ready | {node} if is_ready else self.ready - {node}
                self._changed.notify_all()
            await asyncio.sleep(POLL_SECONDS)

    async def _is_ready(self, node: int) -> bool:
        try:
            line = Line(*await asyncio.open_connection("127.0.0.1", node))
        except OSError:
            return False
        try:
            line.writer.write(READYZ)
            return (await _head(line.reader)).status == 200
        except (OSError, EOFError):
            return False
        finally:
            line.writer.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._serve(Line(reader, writer))
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, client: Line) -> None:
        ahead = b""
        while True:
            head = Head(ahead + (await _head(client.reader)).raw)
            body = await client.reader.readexactly(int(head.value(b"content-length") or 0))
            relaying = asyncio.create_task(self._relay(head, body, client.writer))
            hang_up = asyncio.create_task(client.reader.read(1))
            try:
                await asyncio.wait({relaying, hang_up}, return_when=asyncio.FIRST_COMPLETED)
                if not relaying.done() and hang_up.result() == b"":
                    return
                last = await relaying
                if last or head.last:
                    return
                ahead = await hang_up
            finally:
                relaying.cancel()
                hang_up.cancel()

    async def _relay(self, request: Head, body: bytes, client: asyncio.StreamWriter) -> bool:
        is_call = request.value(b"mcp-method") == b"tools/call"
        node = self._choose(is_call)
        if node is None:
            await _refuse(client, 503, self._note("no node is ready"))
            return True
        if is_call:
            self.called.append(node)
        started = False
        try:
            async with asyncio.timeout(PATIENCE):
                line, head = await self._ask(node, request.raw + body)
            started = True
            with self._changed:
                self.served[node] += 1
                self._changed.notify_all()
            client.write(head.raw)
            await _pass_on(head, line, client)
        except (OSError, EOFError, TimeoutError) as error:
            if client.is_closing():  # it has hung up while it was written to: no fault of the node
                return True
            words = self._note(f"{node}: {type(error).__name__} {error}")
            if not started:
                await _refuse(client, 502, words)
            return True
        if head.last or node not in self.ready:
            line.writer.close()
        else:
            self._idle[node].append(line)
        return head.last

    async def _ask(self, node: int, request: bytes) -> tuple[Line, Head]:
        line = self._kept(node) or Line(*await asyncio.open_connection("127.0.0.1", node))
        try:
            line.writer.write(request)
            return line, await _head(line.reader)
        except BaseException:
            line.writer.close()
            raise

    def _kept(self, node: int) -> Line | None:
        while self._idle[node]:
            line = self._idle[node].pop()
            if not line.reader.at_eof():
                return line
            line.writer.close()
        return None

    def _choose(self, is_call: bool) -> int | None:
        ready = [node for node in self._nodes if node in self.ready]
        self._turns[is_call] += 1
        return ready[self._turns[is_call] % len(ready)] if ready else None

    def _note(self, failure: str) -> str:
        self.failures.append(failure)
        return failure


async def _head(reader: asyncio.StreamReader) -> Head:
    return Head(await reader.readuntil(b"\r\n\r\n"))


async def _pass_on(head: Head, node: Line, client: asyncio.StreamWriter) -> None:
    """The body as it comes. A hang-up of the client, which cancels this, hangs up on the node."""
    try:
        if head.value(b"transfer-encoding") == b"chunked":
            await _pass_on_chunks(node.reader, client)
        else:
            client.write(await node.reader.readexactly(int(head.value(b"content-length") or 0)))
        await client.drain()
    except BaseException:
        node.writer.close()
        raise


async def _pass_on_chunks(node: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    size = -1
    while size:
        line = await node.readline()
        size = int(line, 16)
        client.write(line + await node.readexactly(size + 2))
        await client.drain()


async def _refuse(client: asyncio.StreamWriter, status: int, text: str) -> None:
    client.write(REFUSAL.format(status=status, length=len(text.encode()), text=text).encode())
    await client.drain()


@contextmanager
def proxying(*nodes: int) -> Iterator[Proxy]:
    """A proxy before these ports of 127.0.0.1, in a thread of its own, with all of them ready."""
    proxy, started = Proxy(nodes), threading.Event()
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(proxy.run(started, stopping)), name="proxy"
    )
    thread.start()
    try:
        assert started.wait(PATIENCE)
        proxy.wait_for(*nodes)
        yield proxy
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(PATIENCE)
        loop.close()
