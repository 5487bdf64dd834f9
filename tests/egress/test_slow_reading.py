"""Responses that are expensive to read are refused, and do not block other work."""

import asyncio

import pytest

from mcphost.egress.errors import EgressResponseError
from mcphost.egress.messages import OutgoingRequest
from mcphost.egress.reading import MAX_PIECES
from mcphost.egress.streams import MAX_HEAD_BYTES, MAX_HEAD_READS
from tests.egress.conftest import local, opened, running
from tests.egress.exchanges import exchange, saying

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


PRECEDED = "too much precedes them"
MANY_LINKS = b"HTTP/1.1 103 Early\r\n" + b"Link: a\r\n" * 50 + b"\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [INTERIM * 100] * 20,
        [MANY_LINKS * 100] * 20,
        [b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 900_000],
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * MAX_HEAD_READS * 4,
    ],
    ids=["interim responses", "interim headers", "one header", "packets"],
)
async def test_bytes_before_a_response_are_limited(parts: list[bytes]):
    sent = await exchange(saying(*parts))
    sent.refused(EgressResponseError, PRECEDED)
    assert len(sent.arrived) == 1


async def test_each_response_of_a_connection_has_its_own_limit():
    count = MAX_HEAD_BYTES // len(INTERIM) * 2 // 3
    async with running(saying(INTERIM * count, OK)) as service, opened(service) as egress:
        for _ in range(3):
            request = OutgoingRequest(f"http://127.0.0.1:{service.port}/")
            assert (await egress.send(request, local(service))).body == b"ok"
        assert service.connections == 1


async def test_a_body_in_too_many_pieces_is_refused():
    sent = await exchange(saying(CHUNKED, b"1\r\nx\r\n" * (MAX_PIECES + 1)))
    sent.refused(EgressResponseError, f"more than {MAX_PIECES} pieces")


async def test_reading_a_body_in_many_pieces_does_not_block_other_work():
    """Turns of the loop are counted, not time."""
    count = MAX_PIECES // 2
    over = asyncio.Event()

    async def turns() -> int:
        taken = 0
        while not over.is_set():
            await asyncio.sleep(0)
            taken += 1
        return taken

    other = asyncio.create_task(turns())
    sent = await exchange(saying(CHUNKED + b"1\r\nx\r\n" * count + b"0\r\n\r\n"))
    assert sent.response.body == b"x" * count
    over.set()
    assert await other > count // 64
