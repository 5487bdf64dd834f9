"""Services that make reading their responses dear: each is refused, and other work goes on meanwhile."""

import asyncio
from collections.abc import Mapping

import pytest

from mcphost.egress.errors import EgressResponseError
from mcphost.egress.messages import OutgoingRequest
from mcphost.egress.reading import MOST_PIECES
from mcphost.egress.streams import MOST_HEAD, MOST_HEAD_READS
from tests.egress.conftest import Arrived, Handler, Service, local, opened, running

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def saying(*parts: bytes) -> Handler:
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return handler


async def sent(service: Service) -> bytes:
    async with opened(service) as egress:
        request = OutgoingRequest(f"http://127.0.0.1:{service.port}/")
        return (await egress.send(request, local(service))).body


ENDLESS: Mapping[str, tuple[bytes, str]] = {
    "interim responses": (INTERIM, "too much precedes them"),
    "interim headers": (
        b"HTTP/1.1 103 Early\r\n" + b"Link: a\r\n" * 50 + b"\r\n",
        "too much precedes them",
    ),
    "one header": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 9000, "too much precedes them"),
}


@pytest.mark.parametrize("attack", ENDLESS)
async def test_what_precedes_a_response_is_limited(attack: str):
    part, words = ENDLESS[attack]
    async with running(saying(*[part * 100] * 20)) as service:
        with pytest.raises(EgressResponseError, match=words):
            await sent(service)
        assert len(service.arrived) == 1


async def test_the_packets_of_a_head_are_counted():
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        for _ in range(MOST_HEAD_READS * 4):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0)

    async with running(handler) as service:
        with pytest.raises(EgressResponseError, match="too much precedes them"):
            await sent(service)


async def test_some_interim_responses_are_no_harm():
    async with running(saying(INTERIM * 20, OK)) as service:
        assert await sent(service) == b"ok"


async def test_each_response_of_a_connection_has_its_own_limit():
    count = MOST_HEAD // len(INTERIM) * 2 // 3
    async with running(saying(INTERIM * count, OK)) as service, opened(service) as egress:
        for _ in range(3):
            request = OutgoingRequest(f"http://127.0.0.1:{service.port}/")
            assert (await egress.send(request, local(service))).body == b"ok"
        assert service.connections == 1


async def test_a_body_in_too_many_pieces_is_refused():
    async with running(saying(CHUNKED, b"1\r\nx\r\n" * (MOST_PIECES + 1))) as service:
        with pytest.raises(EgressResponseError, match=f"more than {MOST_PIECES} pieces"):
            await sent(service)


async def test_a_body_in_many_pieces_is_read_and_other_work_goes_on():
    """Turns of the loop are counted, not time."""
    count = MOST_PIECES // 2
    over = asyncio.Event()

    async def turns() -> int:
        taken = 0
        while not over.is_set():
            await asyncio.sleep(0)
            taken += 1
        return taken

    async with running(saying(CHUNKED + b"1\r\nx\r\n" * count + b"0\r\n\r\n")) as service:
        other = asyncio.create_task(turns())
        assert await sent(service) == b"x" * count
        over.set()
        assert await other > count // 64
