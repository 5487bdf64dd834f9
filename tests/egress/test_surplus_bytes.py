"""Services that send more than a response: it never answers the tenant's next request to that origin."""

import asyncio
import ssl
from collections.abc import Mapping

import pytest

from mcphost.egress.errors import EgressError
from mcphost.egress.messages import OutgoingRequest
from tests.egress.conftest import Arrived, Authority, opened, policy, running, write
from tests.egress.exchanges import saying

SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
OWN = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nown\r\n0\r\n\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 98\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 98\r\n\r\n"
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000

FIRST: Mapping[str, tuple[str, bytes]] = {
    "a body by its length": ("GET", OWN),
    "a chunked body": ("GET", CHUNKED),
    "a head of more than one portion": (
        "GET",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 5000 + b"\r\nContent-Length: 3\r\n\r\nown",
    ),
    "a large body": ("GET", LARGE),
    "204": ("GET", NO_CONTENT),
    "304": ("GET", NOT_MODIFIED),
    "HEAD": ("HEAD", HEAD),
}
SURPLUS: Mapping[str, bytes] = {
    "a response": SMUGGLED,
    "half a response": b"HTTP/1.1 200 OK\r\nX-Head: ",
    "an interim response": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "much": SMUGGLED + b"x" * 100_000,
}


class Smuggler:
    """Sends a response and a surplus for the first request, and a proper response for any other."""

    def __init__(self, first: bytes, surplus: bytes, moment: str) -> None:
        self._first, self._surplus, self._moment = first, surplus, moment
        self._writer: asyncio.StreamWriter | None = None

    async def handle(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        if request.path != "/first":
            write(writer, 200, b"proper")
            return
        self._writer = writer
        writer.write(self._first + (self._surplus if self._moment == "at once" else b""))
        if self._moment == "in a packet of its own":
            await writer.drain()
            await self.send_surplus()

    async def send_surplus(self) -> None:
        assert self._writer is not None
        self._writer.write(self._surplus)
        await self._writer.drain()


async def next_body(smuggler: Smuggler, method: str, tls: ssl.SSLContext | None, client: ssl.SSLContext | None) -> bytes:  # fmt: skip
    """Return what answers the request after the one with a surplus."""
    options = {} if client is None else {"tls": client}
    async with running(smuggler.handle, tls=tls) as service, opened(service, **options) as egress:
        base = f"{'http' if tls is None else 'https'}://127.0.0.1:{service.port}"
        first = OutgoingRequest(f"{base}/first", method)
        await egress.send(first, policy(base))
        if smuggler._moment == "while the connection is idle":
            await smuggler.send_surplus()
        response = await egress.send(OutgoingRequest(f"{base}/next"), policy(base))
        assert [arrived.path for arrived in service.arrived] == ["/first", "/next"]
        assert {arrived.connection for arrived in service.arrived} == {1, 2}
    return response.body


MOMENTS = ["at once", "in a packet of its own", "while the connection is idle"]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("first", FIRST)
async def test_bytes_after_a_response_never_answer_the_next_request(first: str, moment: str):
    method, response = FIRST[first]
    smuggler = Smuggler(response, SMUGGLED, moment)
    assert await next_body(smuggler, method, None, None) == b"proper"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("surplus", SURPLUS)
async def test_a_connection_with_surplus_bytes_is_closed(surplus: str, moment: str):
    smuggler = Smuggler(OWN, SURPLUS[surplus], moment)
    assert await next_body(smuggler, "GET", None, None) == b"proper"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("first", ["a body by its length", "204"])
async def test_surplus_bytes_inside_tls_are_detected(first: str, moment: str, authority: Authority):
    method, response = FIRST[first]
    smuggler = Smuggler(response, SMUGGLED + b"x" * 40_000, moment)
    tls, client = authority.server("127.0.0.1"), authority.client()
    assert await next_body(smuggler, method, tls, client) == b"proper"


async def test_a_connection_without_surplus_bytes_is_reused(authority: Authority):
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        _, response = FIRST[request.headers["x-first"]]
        writer.write(response)

    async with (
        running(handler, tls=authority.server("127.0.0.1")) as service,
        opened(service, tls=authority.client()) as egress,
    ):
        base = f"https://127.0.0.1:{service.port}"
        for name, (method, _) in FIRST.items():
            request = OutgoingRequest(base, method, headers=(("X-First", name),))
            await egress.send(request, policy(base))
        assert service.connections == 1


TWO_WAYS, NO_HTTP = "in two ways where it ends", "does not speak HTTP"
OK = b"HTTP/1.1 200 OK\r\n"
EARLY = b"HTTP/1.1 103 Early\r\nLink: a\r\n"
LENGTH = b"Content-Length: 3\r\n"
CHUNKS = b"Transfer-Encoding: chunked\r\n"
END = b"\r\nown"
AMBIGUOUS: Mapping[str, tuple[bytes, str]] = {
    "length and chunks": (OK + LENGTH + CHUNKS + b"\r\n3\r\nown\r\n0\r\n\r\n", TWO_WAYS),
    "two lengths": (OK + LENGTH + b"Content-Length: 11\r\n" + END, NO_HTTP),
    "a length with a sign": (OK + b"Content-Length: +3\r\n" + END, NO_HTTP),
    "an unknown coding": (
        OK + b"Transfer-Encoding: xchunked\r\n\r\n3\r\nown\r\n0\r\n\r\n",
        NO_HTTP,
    ),
    "a space before the colon": (OK + b"Content-Length : 3\r\n" + END, NO_HTTP),
    "a folded header": (OK + b"X-Folded: a\r\n Content-Length: 9\r\n" + LENGTH + END, "folded"),
    "a folded header of an interim response": (EARLY + b" b\r\n\r\n" + OWN, "folded"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_an_ambiguously_framed_response_is_refused(name: str):
    content, words = AMBIGUOUS[name]
    async with running(saying(content)) as service, opened(service) as egress:
        base = f"http://127.0.0.1:{service.port}"
        with pytest.raises(EgressError, match=words):
            await egress.send(OutgoingRequest(base), policy(base, attempts=1))
        await asyncio.wait_for(service.ended.wait(), 10)
