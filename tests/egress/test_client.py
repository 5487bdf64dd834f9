"""Tests of the client over real connections: what it reaches, follows, repeats, reads and keeps."""

import asyncio
import gzip
import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from mcphost.egress.client import Egress
from mcphost.egress.errors import (
    EgressAddressError,
    EgressConnectionError,
    EgressError,
    EgressRequestError,
    EgressResponseError,
    EgressTimeoutError,
)
from mcphost.egress.messages import METHODS, JsonBody, OutgoingRequest, ReceivedResponse
from mcphost.observability import counters
from tests.egress.conftest import (
    Arrived,
    Authority,
    Handler,
    answer,
    echo,
    local,
    opened,
    policy,
    running,
    url,
    write,
)

NAME = "service.example"


def resolving(*answers: Sequence[str]) -> tuple[Callable[[str], Sequence[str]], list[str]]:
    """Return a resolver that gives one answer after the other, and the names it was asked."""
    asked: list[str] = []

    def resolve(host: str) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


def failing(error: Exception) -> Callable[[str], Sequence[str]]:
    def resolve(host: str) -> Sequence[str]:
        raise error

    return resolve


async def never(request: Arrived, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


# Addresses


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]",
     "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "100.100.100.200", "0.0.0.0"],
)  # fmt: skip
async def test_an_address_that_is_not_public_is_refused_although_the_tenant_allows_it(host: str):
    async with running(answer()) as service:
        egress = Egress()
        entry = f"http://{host}:{service.port}"
        with pytest.raises(EgressAddressError, match="has no address on the public internet"):
            await egress.send(OutgoingRequest(entry), policy(entry))
        await egress.aclose()
    assert service.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_named_loopback_port_is_reached_and_no_other(host: str):
    async with running(answer()) as named, running(answer()) as other, opened(named) as egress:
        allowed = local(named, other, host=host)
        received = await egress.send(OutgoingRequest(url(named, host=host)), allowed)
        assert (received.status, received.body) == (200, b"ok")
        with pytest.raises(EgressAddressError):
            await egress.send(OutgoingRequest(url(other, host=host)), allowed)
    assert other.connections == 0


async def test_a_host_that_the_tenant_does_not_allow_is_refused_before_it_is_resolved():
    resolve, asked = resolving(["127.0.0.1"])
    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        with pytest.raises(EgressAddressError, match="is not among the allowed hosts"):
            await egress.send(OutgoingRequest(url(service, host=NAME)), local(service))
    assert asked == []
    assert service.connections == 0


async def test_the_connection_goes_to_the_address_that_was_checked():
    """The second answer is never asked for: what was checked is what is connected to."""
    resolve, asked = resolving(["127.0.0.1"], ["10.0.0.1"])
    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        await egress.send(OutgoingRequest(url(service, host=NAME)), local(service, host=NAME))
    assert asked == [NAME]
    assert service.arrived[0].headers["host"] == f"{NAME}:{service.port}"


async def test_a_new_connection_is_checked_again():
    async def closing(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, b"ok", Connection="close")

    resolve, asked = resolving(["127.0.0.1"], ["169.254.169.254"])
    async with running(closing) as service, opened(service, resolve=resolve) as egress:
        request, allowed = OutgoingRequest(url(service, host=NAME)), local(service, host=NAME)
        await egress.send(request, allowed)
        with pytest.raises(EgressAddressError):
            await egress.send(request, allowed)
    assert asked == [NAME, NAME]


async def test_a_name_with_one_forbidden_address_among_others_is_refused():
    resolve, _ = resolving(["127.0.0.1", "10.0.0.1"])
    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        with pytest.raises(EgressAddressError):
            await egress.send(OutgoingRequest(url(service, host=NAME)), local(service, host=NAME))
    assert service.connections == 0


async def test_an_internal_name_and_an_unknown_one_give_the_same_message():
    messages = set()
    for resolve in (
        resolving(["10.1.2.3"])[0],
        resolving([])[0],
        failing(OSError("no such name")),
        failing(UnicodeError("label too long")),
    ):
        egress = Egress(resolve=resolve)
        with pytest.raises(EgressAddressError) as caught:
            await egress.send(OutgoingRequest(f"https://{NAME}/"), policy(NAME))
        await egress.aclose()
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert "10.1.2.3" not in messages.pop()


async def test_a_refused_address_is_logged_for_operators():
    egress = Egress(resolve=resolving(["10.1.2.3"])[0])
    with capture_logs() as lines, pytest.raises(EgressAddressError):
        await egress.send(OutgoingRequest(f"https://{NAME}/"), policy(NAME))
    await egress.aclose()
    (line,) = lines
    assert (line["tenant"], line["host"], line["addresses"]) == ("acme", NAME, ["10.1.2.3"])


async def test_the_next_address_is_tried_when_one_does_not_answer():
    resolve, _ = resolving(["::1", "127.0.0.1"])
    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        request = OutgoingRequest(url(service, host=NAME))
        assert (await egress.send(request, local(service, host=NAME))).status == 200


async def test_the_real_resolver_is_asked_for_a_name():
    async with running(answer(), host="localhost") as service, opened(service) as egress:
        request = OutgoingRequest(url(service, host="localhost"))
        assert (await egress.send(request, local(service, host="localhost"))).status == 200


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch):
    async with running(answer()) as proxy, running(answer()) as service:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, url(proxy))
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with opened(service, proxy) as egress:
            await egress.send(OutgoingRequest(url(service)), local(service))
    assert proxy.connections == 0
    assert service.connections == 1


# TLS


async def test_tls_is_verified_for_the_name_of_the_url(authority: Authority):
    resolve, _ = resolving(["127.0.0.1"])
    async with (
        running(answer(), tls=authority.server(NAME)) as service,
        opened(service, resolve=resolve, tls=authority.client()) as egress,
    ):
        entry = f"https://{NAME}:{service.port}"
        assert (await egress.send(OutgoingRequest(entry), policy(entry))).status == 200
        other = f"https://other.example:{service.port}"
        with pytest.raises(EgressConnectionError, match="certificate"):
            await egress.send(OutgoingRequest(other), policy(other))
    assert len(service.arrived) == 1


async def test_a_certificate_of_an_unknown_authority_is_refused(authority: Authority):
    async with (
        running(answer(), tls=authority.server("127.0.0.1")) as service,
        opened(service) as egress,
    ):
        entry = f"https://127.0.0.1:{service.port}"
        with pytest.raises(EgressConnectionError, match="certificate"):
            await egress.send(OutgoingRequest(entry), policy(entry))
    assert service.arrived == []


async def test_an_expired_certificate_is_refused(authority: Authority):
    async with (
        running(answer(), tls=authority.server("127.0.0.1", days=-1)) as service,
        opened(service, tls=authority.client()) as egress,
    ):
        entry = f"https://127.0.0.1:{service.port}"
        with pytest.raises(EgressConnectionError, match="certificate"):
            await egress.send(OutgoingRequest(entry), policy(entry))
    assert service.arrived == []


async def test_a_service_without_tls_is_refused_for_https():
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    egress = Egress(loopback_ports=frozenset({port}))
    entry = f"https://127.0.0.1:{port}"
    with pytest.raises(EgressConnectionError):
        await egress.send(OutgoingRequest(entry), policy(entry))
    await egress.aclose()
    server.close()


# Redirects


async def test_a_redirect_to_a_forbidden_address_is_refused():
    for location, expected in (
        ("http://169.254.169.254/latest/meta-data", "has no address"),
        ("http://[::ffff:a9fe:a9fe]/", "has no address"),
        ("http://0xa9fea9fe/", "four decimal numbers"),
        ("file:///etc/passwd", "must begin with"),
        ("http://user@127.0.0.1/", "user name"),
        ("http://[::1", "malformed"),
        ("//not-allowed.example/", "not among the allowed hosts"),
    ):
        async with running(answer(302, Location=location)) as service, opened(service) as egress:
            allowed = policy(
                f"http://127.0.0.1:{service.port}",
                "http://169.254.169.254",
                "http://[::ffff:a9fe:a9fe]",
            )
            with pytest.raises(EgressError, match=expected):
                await egress.send(OutgoingRequest(url(service)), allowed)


async def test_a_redirect_from_https_to_http_needs_an_entry(authority: Authority):
    async with running(answer()) as plain:
        location = url(plain)
        async with (
            running(answer(302, Location=location), tls=authority.server("127.0.0.1")) as service,
            opened(service, plain, tls=authority.client()) as egress,
        ):
            secure = f"https://127.0.0.1:{service.port}"
            with pytest.raises(EgressAddressError, match="not among the allowed hosts"):
                await egress.send(OutgoingRequest(secure), policy(secure))
    assert plain.connections == 0


async def test_redirects_are_counted():
    async with running(answer(302, Location="/again")) as service, opened(service) as egress:
        with pytest.raises(EgressResponseError, match="redirects more than 3 times"):
            await egress.send(OutgoingRequest(url(service)), local(service, redirects=3))
        assert len(service.arrived) == 4
        with pytest.raises(EgressResponseError, match="more than 0 times"):
            await egress.send(OutgoingRequest(url(service)), local(service, redirects=0))
    assert len(service.arrived) == 5


@pytest.mark.parametrize(
    ("status", "method", "following", "body"),
    [
        (301, "POST", "GET", b""), (302, "POST", "GET", b""), (303, "POST", "GET", b""),
        (303, "PUT", "GET", b""), (303, "HEAD", "HEAD", None), (302, "PUT", "PUT", b"{}"),
        (307, "POST", "POST", b"{}"), (308, "POST", "POST", b"{}"), (302, "GET", "GET", b""),
    ],
)  # fmt: skip
async def test_a_redirect_changes_the_method_as_http_says(
    status: int, method: str, following: str, body: bytes | None
):
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        if request.path == "/old":
            write(writer, status, b"" if method == "HEAD" else b"moved", Location="/new")
        else:
            write(writer, 200, b"")

    async with running(handler) as service, opened(service) as egress:
        content = JsonBody({}) if method in ("POST", "PUT") else None
        headers = (("Content-Language", "en"), ("X-Mine", "1")) if content else ()
        request = OutgoingRequest(url(service, "/old"), method, headers, content=content)
        await egress.send(request, local(service))
    arrived = service.arrived[1]
    assert (arrived.method, arrived.path) == (following, "/new")
    if body is not None:
        assert arrived.body == body
        assert ("content-type" in arrived.headers) is bool(body)
        assert ("content-language" in arrived.headers) is bool(body)


@pytest.mark.parametrize("status", [300, 304, 305, 302])
async def test_what_is_no_redirect_is_a_response(status: int):
    headers = {} if status == 302 else {"Location": "/new"}
    async with running(answer(status, b"", **headers)) as service, opened(service) as egress:
        assert (await egress.send(OutgoingRequest(url(service)), local(service))).status == status


# Limits


async def test_a_body_beyond_the_limit_is_refused_by_its_length():
    async with running(answer(body=b"x" * 101)) as service, opened(service) as egress:
        allowed = local(service, response_bytes=100)
        with pytest.raises(EgressResponseError, match="more than 100 bytes"):
            await egress.send(OutgoingRequest(url(service)), allowed)
        exact = local(service, response_bytes=101)
        assert len((await egress.send(OutgoingRequest(url(service)), exact)).body) == 101


async def test_an_endless_body_is_stopped():
    async def endless(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    async with running(endless) as service, opened(service) as egress:
        with pytest.raises(EgressResponseError, match="more than 100000 bytes"):
            await egress.send(OutgoingRequest(url(service)), local(service, response_bytes=100_000))
        await asyncio.wait_for(service.ended.wait(), 10)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_decompression_bomb_is_stopped(encoding: str):
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    bomb = compress(b"\0" * 50_000_000)
    async with (
        running(answer(body=bomb, Content_Encoding=encoding)) as service,
        opened(service) as egress,
    ):
        with pytest.raises(EgressResponseError, match="more than 1000000 bytes"):
            await egress.send(
                OutgoingRequest(url(service)), local(service, response_bytes=1_000_000)
            )


def raw_deflate(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(content) + compressor.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"content" * 9, mtime=0)),
        ("x-gzip", gzip.compress(b"content" * 4, mtime=0) + gzip.compress(b"content" * 5, mtime=0)),
        ("deflate", zlib.compress(b"content" * 9)),
        ("deflate", raw_deflate(b"content" * 9)),
        ("identity", b"content" * 9),
    ],
)
async def test_a_compressed_body_is_decompressed(encoding: str, body: bytes):
    async with (
        running(answer(body=body, Content_Encoding=encoding)) as service,
        opened(service) as egress,
    ):
        received = await egress.send(OutgoingRequest(url(service)), local(service))
    assert received.body == b"content" * 9
    assert service.arrived[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"content" * 9, mtime=0)[:-4]),
        ("gzip", b"not compressed"),
        ("br", b"content"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"content", mtime=0), mtime=0)),
    ],
)
async def test_a_body_that_cannot_be_decompressed_is_refused(encoding: str, body: bytes):
    async with (
        running(answer(body=body, Content_Encoding=encoding)) as service,
        opened(service) as egress,
    ):
        with pytest.raises(EgressResponseError):
            await egress.send(OutgoingRequest(url(service)), local(service))


async def test_large_headers_are_refused():
    async with running(answer(X_Large="x" * 5000)) as service, opened(service) as egress:
        with pytest.raises(EgressResponseError, match="headers of the response"):
            await egress.send(OutgoingRequest(url(service)), local(service, header_bytes=4096))


async def test_endless_headers_are_stopped():
    async def endless(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
            await writer.drain()

    async with running(endless) as service, opened(service) as egress:
        with pytest.raises(EgressError):
            await egress.send(OutgoingRequest(url(service)), local(service, attempts=1))
        await asyncio.wait_for(service.ended.wait(), 10)


async def slow_body(request: Arrived, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nslow")
    await asyncio.Event().wait()


async def trickling(request: Arrived, writer: asyncio.StreamWriter) -> None:
    """Never be silent for as long as `read_seconds`, and never end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\nx\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("handler", "limits"),
    [
        (never, {"read_seconds": 0.1}),
        (never, {"total_seconds": 0.1}),
        (slow_body, {"read_seconds": 0.1}),
        (slow_body, {"total_seconds": 0.1}),
        (trickling, {"total_seconds": 0.3}),
    ],
)
async def test_a_slow_service_is_given_up(handler: Handler, limits: dict[str, float]):
    async with running(handler) as service, opened(service) as egress:
        with pytest.raises(EgressTimeoutError, match="did not answer"):
            await egress.send(OutgoingRequest(url(service)), local(service, **limits))


async def test_a_slow_name_server_is_given_up_and_delays_no_other_tenant():
    release = threading.Event()

    def resolve(host: str) -> Sequence[str]:
        if host == "slow.example":
            release.wait(30)
        return ["127.0.0.1"]

    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        slow = local(service, host="slow.example", connect_seconds=0.1)
        request = OutgoingRequest(url(service, host="slow.example"))
        sends = [egress.send(request, slow) for _ in range(6)]
        outcomes = await asyncio.gather(*sends, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {EgressTimeoutError}
        other = replace(local(service, host=NAME), tenant="globex")
        fast = OutgoingRequest(url(service, host=NAME))
        assert (await egress.send(fast, other)).status == 200
        release.set()
        again = local(service, host="slow.example")
        assert (await egress.send(request, again)).status == 200


async def test_a_body_that_is_compressed_in_very_many_pieces_is_refused():
    pieces = gzip.compress(b"") * 300
    handler = answer(200, pieces, Content_Encoding="gzip")
    async with running(handler) as service, opened(service) as egress:
        with pytest.raises(EgressResponseError, match="too many pieces"):
            await egress.send(OutgoingRequest(url(service)), local(service))


async def test_a_large_request_is_refused():
    async with running(answer()) as service, opened(service) as egress:
        request = OutgoingRequest(url(service), "POST", content=b"x" * 11)
        with pytest.raises(EgressRequestError, match="at most 10 bytes"):
            await egress.send(request, local(service, request_bytes=10))
        request = OutgoingRequest(url(service), query=(("q", "x" * 9000),))
        with pytest.raises(EgressRequestError, match="at most 8192 characters"):
            await egress.send(request, local(service))
    assert service.arrived == []


# Requests


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_every_method_arrives_as_it_was_sent(method: str):
    async with running(answer(body=b"")) as service, opened(service) as egress:
        content = b"raw" if method in ("POST", "PUT", "PATCH") else None
        request = OutgoingRequest(
            url(service, "/p?a=1"), method, (("X-One", "1"), ("x-one", "2")), content=content
        )
        assert (await egress.send(request, local(service))).status == 200
    arrived = service.arrived[0]
    assert (arrived.method, arrived.path, arrived.body) == (method, "/p?a=1", content or b"")
    assert arrived.headers["x-one"] == "1, 2"
    assert arrived.headers["user-agent"] == "mcphost"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("CONNECT", ()),
        ("TRACE", ()),
        ("get", ()),
        ("GET / HTTP/1.1\r\nX: y", ()),
        *(
            ("GET", ((name, "x"),))
            for name in (
                "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE",
                "Expect", "Proxy-Authorization", "Accept-Encoding", "X\r\nY", "", "X:Y", "X Y",
            )
        ),
        ("GET", (("X", "a\r\nB: c"),)),
        ("GET", (("X", "a\x00"),)),
        ("GET", (("X", "snow\N{SNOWMAN}"),)),
    ],
)  # fmt: skip
async def test_an_invalid_method_or_header_is_refused(
    method: str, headers: tuple[tuple[str, str], ...]
):
    async with running(answer()) as service, opened(service) as egress:
        with pytest.raises(EgressRequestError):
            await egress.send(OutgoingRequest(url(service), method, headers), local(service))
    assert service.connections == 0


async def test_a_response_is_read_with_its_headers():
    async with running(answer(404, b"none", X_Many="a")) as service, opened(service) as egress:
        received = await egress.send(OutgoingRequest(url(service)), local(service))
    assert (received.status, received.body) == (404, b"none")
    assert received.header("X-MANY") == "a"
    assert received.header("absent") is None
    assert received.url == url(service)


async def lines(*lines: bytes) -> ReceivedResponse:
    """Return the response of a service that sends these lines as headers."""
    content = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%b\r\n" % b"".join(
        line + b"\r\n" for line in lines
    )

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    async with running(handler) as service, opened(service) as egress:
        return await egress.send(OutgoingRequest(url(service)), local(service))


async def test_headers_of_one_name_are_joined_except_cookies():
    """RFC 9110, section 5.3: the values of Set-Cookie contain commas."""
    cookie = "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT"
    received = await lines(
        b"Link: <a>", b"Set-Cookie: " + cookie.encode(), b"link: <b>", b"SET-COOKIE: b=2"
    )
    assert received.header("Link") == "<a>, <b>"
    assert received.header("Set-Cookie") == f"{cookie}\nb=2"
    assert received.joined_headers == {
        "content-length": "0",
        "link": "<a>, <b>",
        "set-cookie": f"{cookie}\nb=2",
    }


async def test_of_a_header_with_one_value_the_last_counts():
    """RFC 9110, section 8.3."""
    received = await lines(b"Content-Type: text/plain", b"Content-Type: application/json")
    assert received.header("content-type") == "application/json"


async def test_a_response_with_very_many_headers_is_refused():
    with pytest.raises(EgressResponseError, match="more than 256 headers"):
        await lines(*[b"a:"] * 256)


@pytest.mark.parametrize(
    "content",
    [b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab",
     b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"],
)  # fmt: skip
async def test_a_malformed_response_is_an_error(content: bytes):
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()
        writer.close()

    async with running(handler) as service, opened(service) as egress:
        with pytest.raises(EgressError):
            await egress.send(OutgoingRequest(url(service)), local(service, attempts=1))


# Repetitions


def failing_first(times: int, status: int | None = None, **headers: str) -> Handler:
    """Return a handler that closes the connection, or answers `status`, before it succeeds."""
    left = [times]

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        left[0] -= 1
        if left[0] < 0:
            write(writer, 200, b"ok")
        elif status is None:
            writer.close()
        else:
            write(writer, status, b"", **headers)

    return handler


@pytest.mark.parametrize("status", [None, 502, 503, 504])
@pytest.mark.parametrize(
    "request_",
    [
        OutgoingRequest(""),
        OutgoingRequest("", "POST", (("idempotency-key", "k-1"),), repeatable=True),
    ],
)
async def test_a_repeatable_request_is_sent_again(status: int | None, request_: OutgoingRequest):
    async with running(failing_first(2, status)) as service, opened(service) as egress:
        received = await egress.send(replace(request_, url=url(service)), local(service))
    assert received.status == 200
    assert len(service.arrived) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
async def test_a_request_that_is_not_repeatable_is_sent_once(method: str):
    request = OutgoingRequest("", method, repeatable=False if method == "GET" else None)
    async with running(failing_first(1)) as service, opened(service) as egress:
        with pytest.raises(EgressConnectionError):
            await egress.send(replace(request, url=url(service)), local(service))
        assert len(service.arrived) == 1
    async with running(failing_first(1, 503)) as service, opened(service) as egress:
        received = await egress.send(replace(request, url=url(service)), local(service))
        assert (received.status, len(service.arrived)) == (503, 1)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_method_that_is_not_safe_is_repeated_only_with_an_idempotency_key(method: str):
    request = OutgoingRequest("", method, repeatable=True)
    async with running(failing_first(1, 503)) as service, opened(service) as egress:
        received = await egress.send(replace(request, url=url(service)), local(service))
        assert (received.status, len(service.arrived)) == (503, 1)


async def test_every_attempt_has_the_idempotency_key_also_at_another_origin():
    async with running(failing_first(1, 503)) as other:
        moved = answer(307, b"", Location=f"http://127.0.0.1:{other.port}/new")
        async with running(moved) as service, opened(service, other) as egress:
            request = OutgoingRequest(
                url(service), "POST", (("Idempotency-Key", "k-1"),), repeatable=True
            )
            received = await egress.send(request, local(service, other))
    assert received.status == 200
    arrived = [*service.arrived, *other.arrived]
    assert [each.headers["idempotency-key"] for each in arrived] == ["k-1"] * 4


async def test_attempts_are_limited():
    async with running(failing_first(9, 503)) as service, opened(service) as egress:
        received = await egress.send(OutgoingRequest(url(service)), local(service, attempts=2))
        assert (received.status, len(service.arrived)) == (503, 2)
    async with running(failing_first(9)) as service, opened(service) as egress:
        with pytest.raises(EgressConnectionError):
            await egress.send(OutgoingRequest(url(service)), local(service, attempts=2))
        assert len(service.arrived) == 2


async def test_a_response_is_returned_if_the_service_asks_to_wait_for_longer_than_there_is_time():
    handler = failing_first(1, 503, Retry_After="60")
    async with running(handler) as service, opened(service) as egress:
        received = await egress.send(OutgoingRequest(url(service)), local(service))
    assert (received.status, len(service.arrived)) == (503, 1)


async def test_a_port_that_nothing_listens_on_is_an_error():
    async with running(answer()) as service:
        pass
    async with opened(service) as egress:
        with pytest.raises(EgressConnectionError, match="cannot be connected to"):
            await egress.send(OutgoingRequest(url(service)), local(service, attempts=1))


# Connections


async def test_a_tenant_uses_its_connection_again_and_never_that_of_another():
    async with running(echo) as service, opened(service) as egress:
        request, acme = OutgoingRequest(url(service)), local(service)
        globex = replace(acme, tenant="globex")
        for allowed in (acme, globex, acme, globex):
            await egress.send(request, allowed)
    first, second, third, fourth = [arrived.connection for arrived in service.arrived]
    assert first == third
    assert second == fourth
    assert first != second


async def test_cookies_are_not_kept():
    async with running(answer(Set_Cookie="a=b")) as service, opened(service) as egress:
        for _ in range(2):
            await egress.send(OutgoingRequest(url(service)), local(service))
    assert all("cookie" not in arrived.headers for arrived in service.arrived)


async def test_requests_of_one_tenant_at_once_are_limited():
    running_now, most, enough, go = [0], [0], asyncio.Event(), asyncio.Event()

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        running_now[0] += 1
        most[0] = max(most[0], running_now[0])
        if running_now[0] == 2:
            enough.set()
        await go.wait()
        running_now[0] -= 1
        write(writer, 200, b"ok")

    async with running(handler) as service, opened(service, per_tenant=2) as egress:
        request, allowed = OutgoingRequest(url(service)), local(service)
        sends = [asyncio.ensure_future(egress.send(request, allowed)) for _ in range(5)]
        await asyncio.wait_for(enough.wait(), 10)
        with pytest.raises(EgressTimeoutError):
            await egress.send(request, local(service, total_seconds=0.05))
        assert len(service.arrived) == 2
        go.set()
        assert [received.status for received in await asyncio.gather(*sends)] == [200] * 5
    assert most[0] == 2


async def test_a_pool_that_was_not_used_for_a_while_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcphost.egress.client.IDLE_SECONDS", -1.0)
    async with (
        running(answer()) as first,
        running(answer()) as second,
        opened(first, second) as egress,
    ):
        await egress.send(OutgoingRequest(url(first)), local(first))
        assert not first.ended.is_set()
        await egress.send(OutgoingRequest(url(second)), replace(local(second), tenant="other"))
        await asyncio.wait_for(first.ended.wait(), 10)


async def test_closing_closes_every_connection():
    async with running(answer()) as service:
        async with opened(service) as egress:
            await egress.send(OutgoingRequest(url(service)), local(service))
        await asyncio.wait_for(service.ended.wait(), 10)


async def test_a_cancelled_request_leaves_nothing_open():
    arrived = asyncio.Event()

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with running(handler) as service, opened(service) as egress:
        send = asyncio.ensure_future(egress.send(OutgoingRequest(url(service)), local(service)))
        await asyncio.wait_for(arrived.wait(), 10)
        send.cancel()
        with pytest.raises(asyncio.CancelledError):
            await send
        await asyncio.wait_for(service.ended.wait(), 10)


async def test_the_library_logs_no_headers_even_for_debugging(caplog: pytest.LogCaptureFixture):
    async with running(answer(X_Echo="secret-value")) as service, opened(service) as egress:
        with caplog.at_level(logging.DEBUG):
            await egress.send(OutgoingRequest(url(service)), local(service))
    assert "secret-value" not in caplog.text


async def test_requests_are_counted_by_outcome():
    def counted() -> dict[str, float]:
        return {s.labels[0]: s.amount for s in counters.metrics.families["egress_requests"].read()}

    before = counted()
    async with running(answer(404, b"")) as service, opened(service) as egress:
        policy = local(service)
        request = OutgoingRequest(f"http://127.0.0.1:{service.port}/")
        await egress.send(request, policy)
        with pytest.raises(EgressError):
            await egress.send(replace(request, url="https://elsewhere.example/"), policy)
        with pytest.raises(EgressError):
            await egress.send(replace(request, method="TRACE"), policy)

    async def hang_up(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with running(hang_up) as service, opened(service) as egress:
        request = OutgoingRequest(f"http://127.0.0.1:{service.port}/", repeatable=False)
        with pytest.raises(EgressError):
            await egress.send(request, local(service))
    assert {name: count - before[name] for name, count in counted().items() if name != "other"} == {
        **dict.fromkeys(before, 0),
        "4xx": 1,
        "refused": 2,
        "unreachable": 1,
    }
