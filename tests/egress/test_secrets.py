"""Tests of secrets: where they may go, and that no form of one comes back."""

import asyncio
import base64
import html
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import orjson
import pytest

from mcphost.egress.errors import EgressError, EgressRequestError, EgressSecretError
from mcphost.egress.masking import MASKED, Mask
from mcphost.egress.messages import FormBody, JsonBody, OutgoingRequest
from mcphost.egress.secret_values import Secret, SecretPlace, Template
from tests.egress.conftest import Arrived, answer, echo, local, opened, running, url
from tests.egress.exchanges import ANYWHERE, KEY, KEYED, exchange, hiding, revealing, saying

VALUE = 'p&q/r+s "t\\u=ü<w>~%41'


ASCII = "s3cr3t/value+with=signs"
REQUESTS: dict[str, tuple[dict[str, Any], Callable[[Arrived], bool]]] = {
    "header": ({"headers": (("X-Key", KEY),)}, lambda arrived: arrived.headers["x-key"] == ASCII),
    "part of a header": (
        {"headers": (("Authorization", Template(("Bearer ", KEY))),)},
        lambda arrived: arrived.headers["authorization"] == f"Bearer {ASCII}",
    ),
    "basic": (
        {"basic": ("user", KEY)},
        lambda arrived: (
            base64.b64decode(arrived.headers["authorization"].split()[1]).decode()
            == f"user:{ASCII}"
        ),
    ),
    "query": (
        {"query": (("key", KEY), ("n", "1"))},
        lambda arrived: arrived.path == f"/?key={quote(ASCII, safe='')}&n=1",
    ),
    "json": (
        {"method": "POST", "content": JsonBody({"a": [KEY, {"b": Template(("x", KEY))}], "c": 1})},
        lambda arrived: (
            json.loads(arrived.body) == {"a": [ASCII, {"b": f"x{ASCII}"}], "c": 1}
            and arrived.headers["content-type"] == "application/json"
        ),
    ),
    "form": (
        {"method": "POST", "content": FormBody((("key", KEY), ("n", "a b")))},
        lambda arrived: arrived.body == f"key={quote(ASCII, safe='')}&n=a+b".encode(),
    ),
}


async def test_a_user_and_a_password_after_basic_are_encoded_and_masked():
    """RFC 7617, section 2: what follows `Basic` is Base64, which has no colon."""
    for value in ("ada:pässword:1", "YWRhOnBhc3N3b3Jk"):
        request = OutgoingRequest("", headers=(("Authorization", Template(("Basic ", KEY))),))
        sent = await exchange(echo, request, value)
        encoded = value if ":" not in value else base64.b64encode(value.encode()).decode()
        assert sent.arrived[0].headers["authorization"] == f"Basic {encoded}"
        assert encoded not in sent.response.body.decode()


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_service_gets_the_value_and_its_echo_is_masked(name: str):
    fields, correct = REQUESTS[name]
    sent = await exchange(echo, OutgoingRequest("", **fields), ASCII)
    assert correct(sent.arrived[0])
    seen = repr(sent.response)
    assert "[secret]" in seen
    assert ASCII not in seen
    assert "s3cr3t" not in seen
    for offset in range(3):
        assert base64.b64encode(b"x" * offset + ASCII.encode()).decode()[4:-4] not in seen


FORMS = {
    "raw": VALUE.encode(),
    "latin-1": VALUE.encode("latin-1"),
    "percent": quote(VALUE, safe="").encode(),
    "percent, twice": quote(quote(VALUE, safe=""), safe="").encode(),
    "form": quote_plus(VALUE).encode(),
    "percent, every byte": "".join(f"%{byte:02X}" for byte in VALUE.encode()).encode(),
    "JSON, not ASCII": orjson.dumps(VALUE)[1:-1],
    "JSON, slashes escaped": json.dumps(VALUE)[1:-1].replace("/", "\\/").encode(),
    "JSON in JSON": json.dumps(json.dumps(VALUE))[3:-3].encode(),
    "JSON, every character": "".join(f"\\u{ord(c):04x}" for c in VALUE).encode(),
    "HTML": html.escape(VALUE).encode(),
    "HTML, numbers": "".join(
        c if c.isascii() and c.isalnum() else f"&#{ord(c)};" for c in VALUE
    ).encode(),
    "Base64, URL": base64.urlsafe_b64encode(VALUE.encode()).rstrip(b"="),
    "hex": VALUE.encode().hex().encode(),
    "UTF-16": VALUE.encode("utf-16-le"),
    "UTF-32": VALUE.encode("utf-32-le"),
    "UTF-32, big": VALUE.encode("utf-32-be"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", [b"", b"abc"])
def test_every_form_of_a_value_is_masked(form: str, around: bytes):
    content = around + FORMS[form] + around
    assert Mask([VALUE]).bytes(content) == around + MASKED + around


def test_a_value_that_contains_another_is_masked_whole():
    for inner in ("secret-value", "value-longer", "et-value-l"):
        assert Mask([inner, "secret-value-longer"]).bytes(b"secret-value-longer") == MASKED


async def test_a_value_that_is_split_over_chunks_and_writes_is_masked():
    async def chunked(request: Arrived, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in b"<" + ASCII.encode() + b">":
            writer.write(b"1\r\n%c\r\n" % byte)
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    assert (await exchange(chunked, KEYED, ASCII)).response.body == b"<" + MASKED + b">"


async def headers_of(line: str, secret: str) -> tuple[tuple[str, str], ...]:
    """Return the headers of the response of a service that has the secret and sends a line."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{line}\r\n\r\n"
    return (await exchange(saying(head.encode()), KEYED, secret)).response.headers


@pytest.mark.parametrize("name", ["Tops3cret-Value", "TOPS3CRET-VALUE"])
async def test_a_secret_in_the_name_of_a_header_is_masked(name: str):
    masked = name.lower().replace("tops3cret-value", "[secret]")
    assert await headers_of(f"{name}: 1", "Tops3cret-Value") == ((masked, "1"),)


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        (SecretPlace.HEADER, {"headers": (("X-Key", KEY),)}),
        (SecretPlace.HEADER, {"basic": ("user", KEY)}),
        (SecretPlace.QUERY, {"query": (("key", KEY),)}),
        (SecretPlace.BODY, {"method": "POST", "content": JsonBody([KEY])}),
    ],
)
async def test_a_secret_is_sent_only_in_its_allowed_places(
    place: SecretPlace, fields: dict[str, Any]
):
    request = OutgoingRequest("", **fields)
    sent = await exchange(answer(), request, ASCII, ANYWHERE - {place})
    sent.refused(EgressSecretError, f"may not be in the {place.value}")
    assert sent.arrived == []
    assert (await exchange(answer(), request, ASCII, frozenset({place}))).response.status == 200


async def test_a_secret_is_sent_only_to_its_allowed_hosts():
    async with running(answer()) as own, running(answer()) as other, opened(own, other) as egress:
        request = OutgoingRequest(url(other), headers=(("X-Key", KEY),))
        with pytest.raises(EgressSecretError, match="may not go to") as caught:
            await egress.send(request, local(own, other), revealing(own, VALUE))
    assert VALUE not in str(caught.value)
    assert other.arrived == []


async def test_a_secret_is_decrypted_once_and_never_for_a_disallowed_host():
    asked: list[str] = []

    async def reveal(name: str) -> Secret | None:
        asked.append(name)
        return await revealing(service, ASCII)(name)

    async with running(answer()) as service, opened(service) as egress:
        request = OutgoingRequest(url(service), headers=(("A", KEY), ("B", KEY)), basic=("u", KEY))
        with pytest.raises(EgressError):
            await egress.send(request, local(), reveal)
        assert asked == []
        await egress.send(request, local(service), reveal)
    assert asked == ["key"]


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"headers": (("X-Key", KEY),)}, "line one\r\nX-Injected: 1"),
        ({"headers": (("X-Key", KEY),)}, "snowman \N{SNOWMAN}"),
        ({"basic": (KEY, "password")}, "user:with-colon"),
        ({"query": (("a\ud800", KEY),)}, "a-secret-value"),
        ({"method": "POST", "content": FormBody((("a", KEY), ("b", "\ud800")))}, "a-secret-value"),
    ],
)
async def test_an_error_about_a_value_does_not_quote_it(fields: dict[str, Any], value: str):
    sent = await exchange(answer(), OutgoingRequest("", **fields), value)
    words = sent.refused(EgressRequestError)
    assert not [part for part in value.split() if part in words]
    assert sent.arrived == []


def test_converting_a_secret_or_its_handle_to_text_never_shows_the_value():
    assert "the-value" not in repr(Secret("the-value", (), frozenset()))
    with pytest.raises(TypeError):
        str(KEY)
    with pytest.raises(TypeError):
        f"Bearer {KEY}"


def test_a_secret_that_cannot_be_masked_or_sent_is_refused():
    with pytest.raises(ValueError, match="at least 8 characters"):
        Secret("1234567", (), frozenset())
    with pytest.raises(ValueError, match="must be Unicode text"):
        Secret("12345678\ud800", (), frozenset())


REDIRECTED = [
    {"headers": (("X-Key", KEY), ("Accept", "text/plain"))},
    {"headers": (("Authorization", Template(("Bearer ", KEY))),)},
    {"headers": (("Authorization", "Bearer plain"), ("Cookie", "a=b"), ("X-Api-Key", "plain"))},
    {"basic": ("user", KEY)},
    {"query": (("key", KEY),)},
]


@pytest.mark.parametrize("fields", REDIRECTED)
async def test_a_redirect_to_another_origin_carries_no_credential(fields: dict[str, Any]):
    async with (
        running(echo) as other,
        running(answer(307, Location=url(other, "/new"))) as service,
        opened(service, other) as egress,
    ):
        request = OutgoingRequest(url(service), **fields)
        received = await egress.send(request, local(service, other), revealing(service, ASCII))
    assert received.url == url(other, "/new")
    assert set(other.arrived[0].headers) <= {"host", "user-agent", "accept", "accept-encoding"}
    assert ASCII not in repr(other.arrived)
    assert "plain" not in repr(other.arrived).replace("text/plain", "")


async def test_a_body_with_a_secret_does_not_follow_a_redirect_to_another_origin():
    async with (
        running(answer()) as other,
        running(answer(307, Location=url(other))) as service,
        opened(service, other) as egress,
    ):
        request = OutgoingRequest(url(service), "POST", content=FormBody((("key", KEY),)))
        with pytest.raises(EgressError, match="redirects a body with a secret"):
            await egress.send(request, local(service, other), revealing(service, VALUE))
    assert other.arrived == []


async def test_a_redirect_with_an_echoed_secret_in_its_url_is_refused():
    async with running(answer()) as other:
        location = url(other, f"/?stolen={quote(ASCII, safe='')}")
        async with (
            running(answer(302, Location=location)) as service,
            opened(service, other) as egress,
        ):
            request = OutgoingRequest(url(service), headers=(("X-Key", KEY),))
            with pytest.raises(EgressError, match="redirects with a secret") as caught:
                await egress.send(request, local(service, other), revealing(service, ASCII))
    assert other.arrived == []
    assert "s3cr3t" not in str(caught.value)


async def test_an_error_that_names_an_echoed_host_is_masked():
    moved = answer(302, b"", Location="http://lower-case-value.example/")
    words = (await exchange(moved, KEYED, "lower-case-value")).refused(EgressError)
    assert "lower-case-value" not in words


async def test_a_secret_that_an_earlier_request_sent_to_the_service_is_masked():
    """It echoes what an earlier request of the call had, maybe of another process, or of another name."""
    asked: list[int] = []

    async def values_to_mask() -> list[str]:
        asked.append(len(asked))
        return [VALUE] if len(asked) == 3 else []  # it is stored only while the service responds

    content = f"<{VALUE}>".encode()
    redirect = answer(302, b"", Location="/later", X_Echo="none")
    handlers = {"/": redirect, "/later": answer(200, content, X_Echo=quote(VALUE, safe=""))}

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        await handlers[request.path](request, writer)

    received = (await exchange(handler, hidden=values_to_mask)).response
    assert (received.body, received.header("X-Echo")) == (b"<[secret]>", "[secret]")
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("\\" * 20 + "a-secret", b"secret" + b"\\" * 2**20),
        ("-a" * 2000 + "b", b"-a" * 2**19),
        ("&" * 20 + "a-secret", b"secret" + b"&amp;" * 2**17 + b"&#" + b"0" * 2**20),
    ],
)  # fmt: skip
def test_no_value_makes_masking_slow(value: str, content: bytes):
    """A pattern that tries out all escapes would run for hours, or longer than the universe."""
    assert Mask([value]).bytes(content) == content


@pytest.mark.parametrize(
    ("content", "masked"),
    [
        (rb'{"a": "x\"quoted\"/value\""}', rb'{"a": "x[secret]\""}'),
        (rb'{"a": "\u0022quoted%5C%22%2Fvalue"}', rb'{"a": "[secret]"}'),
        (b"%2522quoted%2522%252Fvalue", b"[secret]"),
        (b"%22%71uoted&quot;/value", b"[secret]"),
    ],
)
def test_masking_ends_at_the_last_escape_of_the_value(content: bytes, masked: bytes):
    assert Mask(['"quoted"/value']).bytes(content) == masked


async def test_byte_ranges_of_a_service_that_may_echo_a_secret_are_refused():
    """A service that echoes a header would send the secret in pieces, which no mask recognises."""
    secret = (("X-Key", KEY),)
    for headers, hidden in ((secret, hiding()), ((), hiding(ASCII))):
        for value in ("bytes=0-3", "Bytes=4-", Template(("items=0-1, ", "bytes=0-3"))):
            request = OutgoingRequest("", headers=(*headers, ("Range", value)))
            sent = await exchange(echo, request, ASCII, hidden=hidden)
            sent.refused(EgressSecretError, "range of bytes")
            assert sent.arrived == []
    items = OutgoingRequest("", headers=(*secret, ("Range", "items=0-24")))
    assert (await exchange(echo, items, ASCII, hidden=hiding(ASCII))).response.status == 200
    plain = OutgoingRequest("", headers=(("Range", "bytes=0-3"),))
    assert (await exchange(echo, plain)).response.status == 200
