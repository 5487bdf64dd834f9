"""Values that a service derives from a secret do not reach the caller.

The author of a request chooses text that a service echoes beside a secret, and inspects the whole
response: the length of a compressed response would reveal whether both are alike.
"""

import asyncio
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from mcphost.egress.client import Egress, no_secrets
from mcphost.egress.errors import EgressError
from mcphost.egress.masking import MASKED
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.kinds.script.addresses import CallerTexts
from mcphost.kinds.script.requests import Requests
from tests.egress.conftest import Arrived, Handler, Service, answer, local, opened, running, url
from tests.egress.exchanges import exchange, hiding, saying

SECRETS = ["key-f0e1d2c3", "key-0123456789abcdef", "key-" + "9a" * 40, "key-" + "c" * 2000]
GUESSES = [f"key-{digit:x}" for digit in range(16)] + ["key-f0e1d2c", "key-f0e1d2c4"]


def packed(coding: str, content: bytes) -> bytes:
    match coding:
        case "gzip":
            return gzip.compress(content, mtime=0)
        case "deflate":
            return zlib.compress(content)
        case _:
            return content


class Echo:
    """Shows a secret beside the author's text, with all that services compute of a response."""

    def __init__(self, coding: str, *, chunked: bool, asked: bool) -> None:
        self._coding, self._chunked, self._asked = coding, chunked, asked
        self.secret = ""

    async def handle(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        text = parse_qs(urlsplit(request.path).query)["text"][0]
        content = f'{{"key": "{self.secret}", "text": "{text}"}}'.encode()
        accepts = self._coding in request.headers["accept-encoding"] or not self._asked
        coding = self._coding if accepts else "identity"
        body = packed(coding, content)
        digest = hashlib.sha256(body).hexdigest()
        head = [
            "HTTP/1.1 200 OK",
            f"Content-Encoding: {coding}",
            f'ETag: "{digest}"',
            f"Content-MD5: {digest[:22]}",
            f"Repr-Digest: sha-256=:{digest}:",
            f"X-Original-Content-Length: {len(content)}",
            f"X-Echo: {self.secret}",
        ]
        if self._chunked:
            sent = b"%x\r\n%b\r\n0\r\nContent-Digest: x\r\n\r\n" % (len(body), body)
            head.append("Transfer-Encoding: chunked")
        else:
            sent = body
            head.append(f"Content-Length: {len(body)}")
        writer.write("\r\n".join([*head, "", ""]).encode() + sent)

    async def observe(self, egress: Egress, service: Service, secret: str, guess: str) -> object:
        """Return all that a script sees, its own text aside."""

        class Http:
            async def send(self, request: OutgoingRequest, limits: object) -> ReceivedResponse:
                return await egress.send(request, local(service), no_secrets, hiding(secret))

        self.secret = secret
        request = ["GET", url(service), {"text": guess}, None, None, None]
        response = await Requests(SimpleNamespace(http=Http()), "nonce", CallerTexts("", [])).send(
            request, "key"
        )
        return {**response, "text": response["text"].replace(f'"{guess}"', '"…"')}


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "identity"])
async def test_responses_are_identical_for_every_secret_and_every_guess(coding, chunked, asked):
    echo = Echo(coding, chunked=chunked, asked=asked)
    observed = [(SECRETS[0], guess) for guess in GUESSES]
    observed += [(secret, GUESSES[0]) for secret in SECRETS[1:]]
    async with running(echo.handle) as service, opened(service) as egress:
        seen = [await echo.observe(egress, service, *each) for each in observed]
    expected = {
        "status": 200,
        "headers": {"x-echo": "[secret]"},
        "text": '{"key": "[secret]", "text": "…"}',
    }
    assert seen == [expected] * len(observed)


@pytest.mark.parametrize(("values", "coding"), [([], "gzip, deflate"), (["a-secret"], "identity")])
async def test_compression_is_requested_only_if_no_secret_is_masked(values, coding):
    sent = await exchange(answer(), hidden=hiding(*values))
    assert sent.arrived[0].headers["accept-encoding"] == coding


COMPUTED = """
    content-encoding content-md5 content-digest repr-digest digest etag content-range
    x-content-length x-uncompressed-content-length x-goog-stored-content-length x-goog-hash
    x-amz-checksum-crc32 x-amz-checksum-sha256 x-amz-content-sha256 x-amz-decoded-content-length
    x-ms-content-crc64 x-checksum-sha1 x-checksum signature signature-input x-hub-signature-256
    oc-etag x-etag x-file-size x-content-size x-body-md5 x-sha256 x-crc32c x_content_hash
""".split()  # noqa: SIM905
OTHERS = """
    content-type content-language date server last-modified cache-control vary link x-request-id
    x-total-count x-page-size server-timing retry-after accept-ranges x-ratelimit-remaining
    x-shared-by strict-transport-security x-hashtag
""".split()  # noqa: SIM905
VALUE = "identity"
"""A value that no header is invalid with."""


async def received(handler: Handler, *values: str, method: str = "GET") -> ReceivedResponse:
    request = OutgoingRequest("", method)
    return (await exchange(handler, request, hidden=hiding(*values), attempts=1)).response


def sending(method: str, status: int, body: bytes) -> Handler:
    """Return a handler that sends all headers, and a body where one may be."""
    lines = [f"{name}: {VALUE}" for name in [*COMPUTED, *OTHERS]]
    if status != 204:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([f"HTTP/1.1 {status} Any", *lines, "", ""]).encode()
    has_body = method != "HEAD" and status not in (204, 304)
    return saying(head + body if has_body else head)


@pytest.mark.parametrize(
    ("method", "status", "body"),
    [
        ("GET", 200, b"a-secret"),
        ("GET", 304, b"not shown, a-secret"),
        ("HEAD", 200, b"not shown, a-secret"),
        ("PUT", 200, b"stored"),
        ("PUT", 204, b""),
    ],
)
async def test_headers_computed_from_masked_or_missing_content_are_removed(method, status, body):
    response = await received(sending(method, status, body), "a-secret", method=method)
    assert [name for name, _ in response.headers] == OTHERS


async def test_headers_computed_from_an_unmasked_response_are_kept():
    for values in ([], ["a-secret"]):
        response = await received(sending("GET", 200, b"nothing"), *values)
        assert [name for name, _ in response.headers] == [*COMPUTED, *OTHERS, "content-length"]
    response = await received(sending("HEAD", 200, b"no tenant has secrets"), method="HEAD")
    assert response.header("content-length") == "21"


def by_length(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def by_chunks(body: bytes) -> bytes:
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked


def by_gzip(body: bytes) -> bytes:
    body = gzip.compress(body)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head + body


async def outcome(content: bytes, secret: str, method: str = "GET", **limits: float) -> object:
    request = OutgoingRequest("", method)
    handler, hidden = saying(content, closes=True), hiding(secret)
    sent = (await exchange(handler, request, hidden=hidden, attempts=1, **limits)).outcome
    if isinstance(sent, EgressError):
        return type(sent), re.sub("127.0.0.1:[0-9]+", "host", str(sent))
    return sent.status, sent.headers, sent.body


@pytest.mark.parametrize("framed", [by_length, by_chunks, by_gzip])
@pytest.mark.parametrize("beside", [-1, 0, 1])
async def test_a_limit_on_the_body_does_not_reveal_the_length_of_a_secret(framed, beside):
    text = b"x" * 500
    limit = len(text + MASKED) + beside
    outcomes = [
        await outcome(framed(text + secret.encode()), secret, response_bytes=limit)
        for secret in SECRETS
    ]
    assert all(each == outcomes[0] for each in outcomes)
    is_error = isinstance(outcomes[0], tuple) and outcomes[0][0] != 200
    assert is_error is (beside < 0)
    if is_error:
        assert str(limit) in str(outcomes[0])


@pytest.mark.parametrize("others", [0, 1000, 45_000, 60_000])
async def test_a_limit_on_headers_does_not_reveal_the_length_of_a_secret(others: int):
    """Also where what is read of a head, before anything is masked, is limited."""

    def content(secret: str) -> bytes:
        lines = b"X-Other: %b\r\n" % (b"x" * 700) * (others // 700)
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%bX-Echo: %b\r\n\r\n" % (
            lines,
            secret.encode(),
        )

    outcomes = [await outcome(content(secret), secret, header_bytes=1000) for secret in SECRETS]
    assert all(each == outcomes[0] for each in outcomes)


def head(status: str, *lines: str) -> Callable[[str], bytes]:
    """Return a response with the secret in place of `{}`."""
    text = "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""])
    return lambda secret: text.replace("{}", secret).encode()


GZIP = ("Content-Encoding: gzip", "Content-Length: 4")
ERRORS: Mapping[str, Callable[[str], bytes]] = {
    "an unknown coding": head("200 OK", "Content-Length: 0", "Content-Encoding: {}"),
    "a redirect": head("302 Found", "Content-Length: 0", "Location: http://{}/"),
    "a status line": head("2{} OK"),
    "a length": head("200 OK", "Content-Length: {}"),
    "a chunk": head("200 OK", "Transfer-Encoding: chunked", "", "{}"),
    "a body that is not gzip": head("200 OK", *GZIP, "", "{}"),
}


@pytest.mark.parametrize("place", ERRORS)
async def test_error_messages_reveal_nothing_of_a_secret(place: str):
    outcomes = [await outcome(ERRORS[place](secret), secret) for secret in SECRETS[:2]]
    assert outcomes[0] == outcomes[1]
    assert "key-" not in repr(outcomes[0]).replace("key-value", "")
