"""Our uvicorn server, on real loopback connections."""

import asyncio
from typing import Any

import pytest

from mcphost.transport.server.uvicorn import HEADER_BYTES, Cork
from tests.transport.uvicorn_server import GET, LAST, PATIENCE, Line, answer, end, running


async def test_requests_on_a_connection_are_answered_in_order() -> None:
    async with running() as served:
        reader, writer = await served.line(GET)
        first = await answer(reader)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nserver:" not in first.lower()
        writer.write(GET[:20])
        await writer.drain()
        writer.write(GET[20:])
        assert b"200 OK" in await answer(reader)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: loc", b"GE"])
async def test_headers_that_do_not_arrive_in_time_end_the_connection(begun: bytes) -> None:
    async with running(header_seconds=0.05) as served:
        reader, _ = await served.line(begun)
        assert await end(reader) == b""
        assert not served.app.arrived.is_set()


@pytest.mark.parametrize("more", [b"", b"x"])
async def test_a_body_that_does_not_arrive_ends_the_connection_even_after_the_response(
    more: bytes,
) -> None:
    async with running(body_seconds=0.3) as served:
        begun = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
        reader, writer = await served.line(begun)
        await answer(reader)
        writer.write(more)
        assert await end(reader) == b""


async def _endless(line: Line) -> bytes:
    """Send endless headers, beyond the limit; return the server's response."""
    reader, writer = line
    for _ in range(8 * HEADER_BYTES // 1024):
        writer.write(b"a" * 1024)
        await asyncio.sleep(0)
    try:
        return await end(reader)
    except ConnectionError:  # it closed with unread data
        return b""


@pytest.mark.parametrize("before", [b"", GET])
async def test_endless_headers_are_refused_at_a_limit(before: bytes) -> None:
    async with running() as served:
        line = await served.line(before)
        if before:
            await answer(line[0])
        line[1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: ")
        assert (await _endless(line))[:13] in (b"", b"HTTP/1.1 400 ")


def _request_of(size: int) -> bytes:
    """A request whose line and headers have `size` bytes, as the server measures them."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: "
    measured = len(b"/" + b"Host: localhost\r\n" + b"Accept: \r\n")
    return head + b"a" * (size - measured) + b"\r\n\r\n"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("before", [b"", GET])
async def test_headers_over_64_kib_are_refused_whether_split_or_not(
    before: bytes, at_once: bool
) -> None:
    async with running() as served:
        reader, writer = await served.line(before)
        if before:
            await answer(reader)
        head = _request_of(HEADER_BYTES + 1)
        half = len(head) if at_once else len(head) // 2
        served.app.arrived.clear()
        writer.write(head[:half])
        await writer.drain()
        writer.write(head[half:])
        reply = await end(reader)
        assert reply.startswith(b"HTTP/1.1 400 ")
        assert reply.endswith(b"The headers are too large.")
        assert not served.app.arrived.is_set()


async def test_headers_of_64_kib_are_accepted() -> None:
    async with running() as served:
        reader, _ = await served.line(_request_of(HEADER_BYTES) + GET)
        for _ in range(2):
            assert b"200 OK" in await answer(reader)


@pytest.mark.parametrize("pieces", [1, 2])
async def test_trailers_do_not_become_headers(pieces: int) -> None:
    async with running() as served:
        head = b"POST /wait HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        trailers = b"1\r\na\r\n0\r\nAuthorization: Bearer x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
        if pieces == 1:
            reader, writer = await served.line(head + trailers)
            await served.app.arrived.wait()
        else:
            reader, writer = await served.line(head)
            await served.app.arrived.wait()
            writer.write(trailers)
        writer.write(GET)
        served.app.release.set()
        for _ in range(2):
            assert b"200 OK" in await answer(reader)
        names = [name for name, _ in served.app.headers[0]]
        assert names == [b"host", b"transfer-encoding"]
        assert [name for name, _ in served.app.headers[1]] == [b"host"]


async def test_endless_trailers_close_the_connection() -> None:
    async with running() as served:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        line = await served.line(head + b"1\r\na\r\n0\r\nTrailer: ")
        await answer(line[0])
        assert await _endless(line) == b""


async def test_a_client_that_reads_nothing_is_disconnected() -> None:
    async with running(stalled_seconds=0.1) as served:
        reader, _ = await served.line(GET.replace(b"/ ", b"/large "))
        async with asyncio.timeout(PATIENCE):
            await served.app.said.wait()
        got = await end(reader)
        assert got[-len(LAST) :] != LAST


async def test_a_request_that_is_not_http_gets_status_400() -> None:
    async with running() as served:
        reader, _ = await served.line(b"\x00\x01\x02\r\n\r\n")
        assert (await end(reader)).startswith(b"HTTP/1.1 400 ")


class Pipe(asyncio.Transport):
    """Keeps the writes instead of sending them."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1)})
        self.writes: list[bytes] = []
        self.closing = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


def _corked() -> tuple[Cork, Pipe]:
    pipe = Pipe()
    return Cork(pipe, asyncio.get_running_loop()), pipe


async def test_writes_in_one_loop_iteration_are_sent_together() -> None:
    cork, pipe = _corked()
    cork.write(b"headers")
    cork.write(b"body")
    assert pipe.writes == []
    await asyncio.sleep(0)
    assert pipe.writes == [b"headersbody"]
    cork.write(b"more")
    await asyncio.sleep(0)
    assert pipe.writes == [b"headersbody", b"more"]


async def test_data_written_before_a_close_is_still_sent() -> None:
    cork, pipe = _corked()
    cork.write(b"last words")
    cork.close()
    assert (pipe.writes, pipe.closing) == ([b"last words"], True)
    await asyncio.sleep(0)
    assert pipe.writes == [b"last words"]
