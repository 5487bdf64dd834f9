"""Tests of the client over real connections: what it reaches, follows, repeats, reads and keeps."""

import asyncio
import gzip
import logging
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from mcphost.egress.client import Egress
from mcphost.egress.errors import (
    EgressAddressError,
    EgressConnectionError,
    EgressError,
    EgressRequestError,
    EgressResponseError,
    EgressTimeoutError,
)
from mcphost.egress.messages import METHODS, JsonBody, OutgoingRequest
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
from tests.egress.exchanges import exchange, saying

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
    [ "localhost", "10.0.0.1", "169.254.169.254",
     "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0"],
)  # fmt: skip
async def test_an_address_that_is_not_public_is_refused_even_if_the_tenant_allows_it(host: str):
    async with running(answer()) as service:
        egress = Egress()
        entry = f"http://{host}:{service.port}"
        with pytest.raises(EgressAddressError, match="has no address on the public internet"):
            await egress.send(OutgoingRequest(entry), policy(entry))
        await egress.aclose()
    assert service.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_only_the_configured_loopback_port_is_reached(host: str):
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


async def test_the_connection_uses_the_address_that_was_checked():
    """The second answer is never asked for: what was checked is what is connected to."""
    resolve, asked = resolving(["127.0.0.1"], ["10.0.0.1"])
    async with running(answer()) as service, opened(service, resolve=resolve) as egress:
        await egress.send(OutgoingRequest(url(service, host=NAME)), local(service, host=NAME))
    assert asked == [NAME]
    assert service.arrived[0].headers["host"] == f"{NAME}:{service.port}"


async def test_each_new_connection_checks_its_address_again():
    async def closing(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, b"ok", Connection="close")

    resolve, asked = resolving(["127.0.0.1"], ["169.254.169.254"])
    async with running(closing) as service, opened(service, resolve=resolve) as egress:
        request, allowed = OutgoingRequest(url(service, host=NAME)), local(service, host=NAME)
        await egress.send(request, allowed)
        with pytest.raises(EgressAddressError):
            await egress.send(request, allowed)
    assert asked == [NAME, NAME]


async def refusal_of(resolve: Callable[[str], Sequence[str]]) -> str:
    """Return the words by which a name is refused."""
    egress = Egress(resolve=resolve)
    with pytest.raises(EgressAddressError) as caught:
        await egress.send(OutgoingRequest(f"https://{NAME}/"), policy(NAME))
    await egress.aclose()
    return str(caught.value)


async def test_an_internal_name_and_an_unknown_one_give_the_same_message():
    resolvers = [
        resolving(["10.1.2.3"])[0],
        resolving(["8.8.8.8", "10.1.2.3"])[0],
        resolving([])[0],
        failing(OSError("no such name")),
        failing(UnicodeError("label too long")),
    ]
    (message,) = {await refusal_of(resolve) for resolve in resolvers}
    assert "10.1.2.3" not in message


async def test_proxy_settings_in_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch):
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


@pytest.mark.parametrize("days", [1, -1])
async def test_an_untrusted_or_expired_certificate_is_refused(authority: Authority, days: int):
    tls = {} if days > 0 else {"tls": authority.client()}
    async with (
        running(answer(), tls=authority.server("127.0.0.1", days=days)) as service,
        opened(service, **tls) as egress,
    ):
        entry = f"https://127.0.0.1:{service.port}"
        with pytest.raises(EgressConnectionError, match="certificate"):
            await egress.send(OutgoingRequest(entry), policy(entry))
    assert service.arrived == []


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


async def test_a_redirect_from_https_to_http_needs_an_allowed_host_entry(authority: Authority):
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


@pytest.mark.parametrize("redirects", [0, 3])
async def test_the_number_of_redirects_is_limited(redirects: int):
    sent = await exchange(answer(302, Location="/again"), redirects=redirects)
    words = (
        f"redirects more than {redirects} times"
        if redirects
        else "redirects, which is not followed"
    )
    sent.refused(EgressResponseError, words)
    assert len(sent.arrived) == redirects + 1


@pytest.mark.parametrize(
    ("status", "method", "following", "body"),
    [
        (301, "POST", "GET", b""), (303, "POST", "GET", b""), (303, "HEAD", "HEAD", None), (302, "PUT", "PUT", b"{}"),
        (307, "POST", "POST", b"{}"), (308, "POST", "POST", b"{}"),
    ],
)  # fmt: skip
async def test_a_redirect_changes_the_method_as_http_says(status, method, following, body):
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        if request.path == "/old":
            write(writer, status, b"" if method == "HEAD" else b"moved", Location="/new")
        else:
            write(writer, 200, b"")

    content = JsonBody({}) if method in ("POST", "PUT") else None
    headers = (("Content-Language", "en"), ("X-Mine", "1")) if content else ()
    sent = await exchange(handler, OutgoingRequest("/old", method, headers, content=content))
    arrived = sent.arrived[1]
    assert (arrived.method, arrived.path) == (following, "/new")
    if body is not None:
        assert arrived.body == body
        assert ("content-type" in arrived.headers) is bool(body)
        assert ("content-language" in arrived.headers) is bool(body)


# Limits


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"400\r\n%b\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: %b\r\n"),
    ],
    ids=["body", "headers"],
)
async def test_an_endless_response_is_aborted(head: bytes, part: bytes):
    async def endless(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(part % (b"x" * 1024))
            await writer.drain()

    async with running(endless) as service, opened(service) as egress:
        with pytest.raises(EgressError):
            limits = local(service, response_bytes=100_000, attempts=1)
            await egress.send(OutgoingRequest(url(service)), limits)
        await asyncio.wait_for(service.ended.wait(), 10)


def raw_deflate(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(content) + compressor.flush()


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


BOMB = b"\0" * 50_000_000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", zipped(b"content" * 9)),
        ("x-gzip", zipped(b"content" * 4) + zipped(b"content" * 5)),
        ("deflate", zlib.compress(b"content" * 9)),
        ("deflate", raw_deflate(b"content" * 9)),
    ],
)
async def test_a_compressed_body_is_decompressed(encoding: str, body: bytes):
    sent = await exchange(answer(body=body, Content_Encoding=encoding))
    assert sent.response.body == b"content" * 9
    assert sent.arrived[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("gzip", zipped(b"content" * 9)[:-4], ""),
        ("br", b"content", ""),
        ("gzip", gzip.compress(BOMB), "more than 1000000 bytes"),
        ("deflate", zlib.compress(BOMB), "more than 1000000 bytes"),
        ("gzip", gzip.compress(b"") * 300, "too many pieces"),
        ("identity", b"x" * 1_000_001, "more than 1000000 bytes"),
    ],
    ids=["cut", "brotli", "gzip bomb", "deflate bomb", "pieces", "length"],
)
async def test_a_body_that_cannot_be_decompressed_is_refused(encoding, body, words):
    sent = await exchange(answer(body=body, Content_Encoding=encoding), response_bytes=1_000_000)
    sent.refused(EgressResponseError, words)


async def test_large_headers_are_refused():
    sent = await exchange(answer(X_Large="x" * 5000), header_bytes=4096)
    sent.refused(EgressResponseError, "headers of the response")


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
    ("handler", "limits", "words"),
    [
        (never, {"read_seconds": 0.1}, "in time"),
        (slow_body, {"read_seconds": 0.1}, "in time"),
        (trickling, {"total_seconds": 0.3}, "within 0.3 s"),
    ],
)
async def test_a_slow_service_times_out(handler: Handler, limits: dict[str, float], words: str):
    (await exchange(handler, **limits)).refused(EgressTimeoutError, f"did not answer {words}")


async def test_a_slow_name_server_times_out_and_does_not_delay_other_tenants():
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
        assert all("did not answer in time" in str(outcome) for outcome in outcomes)
        other = replace(local(service, host=NAME), tenant="globex")
        fast = OutgoingRequest(url(service, host=NAME))
        assert (await egress.send(fast, other)).status == 200
        release.set()
        assert (await egress.send(request, local(service, host="slow.example"))).status == 200


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (OutgoingRequest("", "POST", content=b"x" * 11), "at most 10 bytes"),
        (OutgoingRequest("", query=(("q", "x" * 9000),)), "at most 8192 characters"),
    ],
)
async def test_a_large_request_is_refused(request_: OutgoingRequest, words: str):
    sent = await exchange(answer(), request_, request_bytes=10)
    sent.refused(EgressRequestError, words)
    assert sent.arrived == []


# Requests


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_requests_of_every_method_arrive_unchanged(method: str):
    content = b"raw" if method in ("POST", "PUT", "PATCH") else None
    headers = (("X-One", "1"), ("x-one", "2"))
    sent = await exchange(
        answer(body=b""), OutgoingRequest("/p?a=1", method, headers, content=content)
    )
    assert sent.response.status == 200
    (arrived,) = sent.arrived
    assert (arrived.method, arrived.path, arrived.body) == (method, "/p?a=1", content or b"")
    assert (arrived.headers["x-one"], arrived.headers["user-agent"]) == ("1, 2", "mcphost")


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("CONNECT", ()),
        ("TRACE", ()),
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
async def test_an_invalid_method_or_header_is_refused(method, headers):
    sent = await exchange(answer(), OutgoingRequest("", method, headers))
    sent.refused(EgressRequestError)
    assert sent.service.connections == 0


@pytest.mark.parametrize(
    "content",
    [b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
     b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab",
     b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"],
)  # fmt: skip
async def test_a_malformed_response_is_an_error(content: bytes):
    (await exchange(saying(content, closes=True), attempts=1)).refused(EgressError)


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


KEYS = (("idempotency-key", "k-1"),)
UNSAFE = ["POST", "PUT", "PATCH", "DELETE"]
REPEATED = [OutgoingRequest(""), OutgoingRequest("", "POST", KEYS, repeatable=True)]
SENT_ONCE = [
    OutgoingRequest("", repeatable=False),
    *(OutgoingRequest("", method) for method in UNSAFE),
    *(OutgoingRequest("", method, repeatable=True) for method in UNSAFE),
    OutgoingRequest("", "POST", KEYS),
]


@pytest.mark.parametrize(
    "status",
    [
        None,
        503,
    ],
)
@pytest.mark.parametrize("request_", REPEATED)
async def test_a_repeatable_request_is_retried(status: int | None, request_: OutgoingRequest):
    sent = await exchange(failing_first(2, status), request_)
    assert (sent.response.status, len(sent.arrived)) == (200, 3)


@pytest.mark.parametrize("request_", SENT_ONCE)
async def test_a_request_that_is_not_repeatable_is_sent_once(request_: OutgoingRequest):
    sent = await exchange(failing_first(1), request_)
    sent.refused(EgressConnectionError)
    assert len(sent.arrived) == 1
    sent = await exchange(failing_first(1, 503), request_)
    assert (sent.response.status, len(sent.arrived)) == (503, 1)


async def test_every_attempt_has_the_same_idempotency_key_even_at_another_origin():
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


async def test_the_number_of_attempts_is_limited():
    sent = await exchange(failing_first(9, 503), attempts=2)
    assert (sent.response.status, len(sent.arrived)) == (503, 2)
    sent = await exchange(failing_first(9), attempts=2)
    sent.refused(EgressConnectionError)
    assert len(sent.arrived) == 2


# Connections


async def test_connections_are_reused_within_a_tenant_and_never_across_tenants():
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


async def test_concurrent_requests_of_a_tenant_are_limited():
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


async def test_a_cancelled_request_closes_its_connection():
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


async def test_the_http_library_logs_no_headers_even_at_debug_level(
    caplog: pytest.LogCaptureFixture,
):
    with caplog.at_level(logging.DEBUG):
        await exchange(answer(X_Echo="secret-value"))
    assert "secret-value" not in caplog.text
