"""The result of each response of a service, and the responses that are refused."""

from base64 import b64encode
from typing import Any

import pytest

from mcphost.kinds.functions.returns import Returns
from mcphost.kinds.http.configs import ResponseConfig
from mcphost.kinds.http.replies import (
    MAX_LINKS,
    MAX_SHOWN,
    MAX_VALUES,
    BadReplyError,
    Response,
    error_of,
    media_type_of,
    result_of,
)

PNG = b"\x89PNG\r\n\x1a\n..."
URL = "https://x.example/a"


def response(body: bytes, content_type: str = "application/json", status: int = 200) -> Response:
    return Response(status, *media_type_of(content_type), body, URL)


def made(value: Any) -> Any:
    return Returns().encode(value, 1_000_000).result


def result(body: bytes, content_type: str, content: str = "auto") -> Any:
    config = ResponseConfig.model_validate({"content": content})
    return made(result_of(response(body, content_type), config))


def selected(value: Any, content: str) -> Any:
    config = ResponseConfig.model_validate({"content": content, "select": "x"})
    return made(result_of(response(b"{}"), config, value))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", ("application/octet-stream", "utf-8")),
        ("Text/HTML; Charset=ISO-8859-1", ("text/html", "iso-8859-1")),
        ("nonsense", ("text/plain", "utf-8")),
        ("text/plain; charset*=utf-8''%ff", ("text/plain", "utf-8")),
    ],
)
def test_the_media_type_is_parsed_from_the_content_type_header(
    header: str, expected: tuple[str, str]
):
    assert media_type_of(header) == expected


@pytest.mark.parametrize("content_type", ["application/json", "application/problem+json; a=b"])
def test_a_json_response_becomes_structured_content(content_type: str):
    assert result(b'{"a": [1, null]}', content_type) == {
        "content": [{"type": "text", "text": '{"a":[1,null]}'}],
        "structuredContent": {"a": [1, None]},
    }


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"plain", "text/plain", "plain"),
        (b"<a/>", "image/svg+xml", "<a/>"),
        ("ü".encode("latin-1"), "text/plain; charset=latin-1", "ü"),
        ("ü".encode(), "text/plain; charset=nonsense", "ü"),
        (b"\\ud800", "text/plain; charset=unicode-escape", "\\ud800"),
        (b"+2AA-", "text/plain; charset=utf-7", "+2AA-"),
        (b'{"a":1}\n{"a":2}\n', "application/x-ndjson", '{"a":1}\n{"a":2}\n'),
        (b"a: 1", "application/yaml", "a: 1"),
        (b"f()", "application/javascript", "f()"),
        (b'{"a":1}', "", '{"a":1}'),
        (b"\xef\xbb\xbfa", "application/octet-stream", "a"),
        ("ü".encode("latin-1"), "application/sql; charset=latin-1", "ü"),
        (b"", "application/json", "The service answered with status 200"),
    ],
)
def test_a_text_response_becomes_text(body: bytes, content_type: str, text: str):
    assert result(body, content_type) == {"content": [{"type": "text", "text": text}]}


DATA = b64encode(PNG).decode()
PDF = {"uri": URL, "mimeType": "application/pdf", "blob": DATA}


def test_binary_data_is_embedded_as_a_resource():
    for body in (b"\xff\xfe", b"a\0b", b"\x01"):
        (content,) = result(body, "application/octet-stream")["content"]
        assert content["resource"]["blob"] == b64encode(body).decode()


def test_json_may_begin_with_a_byte_order_mark():
    assert result(b'\xef\xbb\xbf{"a":1}', "application/json")["structuredContent"] == {"a": 1}


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("image/png", {"type": "image", "data": DATA, "mimeType": "image/png"}),
        ("audio/wav", {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
        ("application/pdf", {"type": "resource", "resource": PDF}),
    ],
)
def test_images_audio_and_other_binary_data_become_content_of_their_type(content_type, expected):
    assert result(PNG, content_type)["content"] == [expected]


@pytest.mark.parametrize("content", ["json", "resource_link"])
@pytest.mark.parametrize("body", [b"", b"{", b"NaN", b"\xff", b"[" * 5000])
def test_an_invalid_json_response_is_refused(content: str, body: bytes):
    with pytest.raises(BadReplyError, match="not the JSON that it should be"):
        result(body, "text/plain", content)


@pytest.mark.parametrize("number", [b"12345678901234567890123", b"-9223372036854775809"])
def test_a_response_with_an_integer_of_more_than_64_bits_is_text_or_refused(number: bytes):
    body = b'{"id": ' + number + b"}"
    for content in ("auto", "text"):
        assert result(body, "application/json", content) == {
            "content": [{"type": "text", "text": body.decode()}]
        }
    for content in ("json", "resource_link"):
        with pytest.raises(BadReplyError, match="integer of more than 64 bits"):
            result(body, "application/json", content)
    exact = b'{"id": 18446744073709551615}'
    assert result(exact, "application/json")["structuredContent"] == {"id": 2**64 - 1}


def test_a_number_that_is_no_float_is_refused_with_the_reason():
    with pytest.raises(BadReplyError, match="number is infinity"):
        result(b"[1e400]", "application/json")


def test_a_response_configured_as_an_image_must_be_an_image():
    assert result(PNG, "image/png", "image")["content"][0]["mimeType"] == "image/png"
    with pytest.raises(BadReplyError, match="not the image"):
        result(PNG, "text/html", "image")


@pytest.mark.parametrize(
    ("start", "mime_type"),
    [
        (b"\x89PNG", "image/png"),
        (b"RIFF....WEBP", "image/webp"),
    ],
)
def test_an_image_may_be_selected_in_base64(start: bytes, mime_type: str):
    data = b64encode(start).decode()
    assert selected(data, "image")["content"] == [
        {"type": "image", "data": data, "mimeType": mime_type}
    ]


@pytest.mark.parametrize(
    "value",
    [None, 5, "", "?", "ü", b64encode(b"<html>").decode(), b64encode(b"RIFF....WAVE").decode()],
)
def test_a_selected_value_that_is_not_an_image_is_refused(value: Any):
    with pytest.raises(BadReplyError, match="not an image in Base64"):
        selected(value, "image")


@pytest.mark.parametrize(
    "value", [None, 5, "no address", {}, {"uri": 5}, {"uri": "docs:a", "title": 5}, [["docs:a"]]]
)
def test_a_selected_value_that_is_not_a_link_is_refused(value: Any):
    with pytest.raises(BadReplyError, match="address, or an object with uri and name"):
        selected(value, "resource_link")


@pytest.mark.parametrize(
    ("errors", "status", "expected"),
    [
        (["4xx", "5xx"], 404, True),
        (["4xx", "5xx"], 302, False),
        (["404"], 404, True),
        ([], 500, False),
    ],
)
def test_the_author_configures_which_statuses_are_errors(
    errors: list[str], status: int, expected: bool
):
    assert ResponseConfig.model_validate({"errors": errors}).is_error(status) is expected


def test_an_error_contains_the_beginning_of_the_services_response():
    said = made(error_of(response(b" no such order \n", "text/plain", 404)))
    assert said["isError"] is True
    assert said["content"][0]["text"] == "The service answered with status 404:\nno such order"
    long = made(error_of(response(b"x" * 5000, "text/plain", 500)))["content"][0]["text"]
    assert long.endswith("x…") and long.count("x") == MAX_SHOWN
    binary = made(error_of(response(PNG, "image/png", 500)))
    assert binary["content"][0]["text"] == "The service answered with status 500"


def test_the_number_of_values_in_a_response_is_limited():
    assert len(response(b"[" + b"0," * (MAX_VALUES - 3) + b"0]").json) == MAX_VALUES - 2
    with pytest.raises(BadReplyError, match=f"more than {MAX_VALUES} values"):
        _ = response(b"[" + b"0," * MAX_VALUES + b"0]").json


def test_the_number_of_links_in_a_result_is_limited():
    assert len(selected(["docs:a"] * MAX_LINKS, "resource_link")["content"]) == MAX_LINKS
    with pytest.raises(BadReplyError, match=f"more than {MAX_LINKS} links"):
        selected(["docs:a"] * (MAX_LINKS + 1), "resource_link")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("header", ["application/json", "application/json; charset=iso-8859-1"])
def test_json_is_read_in_the_encoding_that_its_mark_or_its_header_names(
    encoding: str, header: str
) -> None:
    body = '{"a":"\u00e9"}'.encode(encoding)
    if encoding == "utf-8" and "charset" in header:
        body = body.decode().encode("latin-1")
    assert result(body, header)["structuredContent"] == {"a": "\u00e9"}
    plain = header.replace("json", "javascript")
    assert result(body, plain)["content"][0]["text"] == '{"a":"\u00e9"}'
