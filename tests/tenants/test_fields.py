"""Tests of the fields of a tenant, and of the messages for bad values."""

import base64
from dataclasses import replace

import pytest

from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import (
    ICON_BYTES,
    INSTRUCTIONS_LIMIT,
    ORIGINS_LIMIT,
    TITLE_LIMIT,
    TenantFields,
    check_fields,
    check_slug,
    icon_problems,
    normal_origin,
)

GOOD = TenantFields(title="Acme")
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff\xe0" + b"pixels"
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 "


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _problems(**values: object) -> dict[str, list[str]]:
    with pytest.raises(InvalidError) as refused:
        check_fields(replace(GOOD, **values))  # type: ignore[arg-type]
    return refused.value.problems


@pytest.mark.parametrize(
    "slug", ["", "-a", "a-", "A", "a_b", "a.b", "a b", "a" * 41, "ä", "a\n", "a/b", "a\x00"]
)
def test_a_bad_slug_is_reported_under_its_field(slug: str) -> None:
    with pytest.raises(InvalidError) as refused:
        check_slug(slug)
    assert set(refused.value.problems) == {"slug"}


@pytest.mark.parametrize(
    ("given_text", "kept"),
    [
        ("https://example.com", "https://example.com"),
        ("HTTPS://Example.COM:443", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:443", "http://example.com:443"),
        (" http://localhost:6274 ", "http://localhost:6274"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://[::1]", "http://[::1]"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("vscode-webview://abc123", "vscode-webview://abc123"),
    ],
)
def test_an_origin_is_stored_as_browsers_send_it(given_text: str, kept: str) -> None:
    assert normal_origin(given_text) == kept


NO_ORIGINS = """
    * null example.com //example.com https:// https://example.com/ https://example.com/path
    https://example.com?x https://example.com#x https://user@example.com
    https://example.com:port https://example.com:99999 https://example.com:
    https://*.example.com https://bücher.example https://[::1 https://[zz] 1http://example.com
"""


@pytest.mark.parametrize(
    "text",
    [
        *NO_ORIGINS.split(),
        "",
        "https://exa mple.com",
    ],
)
def test_text_that_is_not_exactly_an_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|has"):
        normal_origin(text)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_any_port_of_localhost_can_be_allowed(host: str) -> None:
    assert normal_origin(f"HTTP://{host}:*") == f"http://{host}:*"
    for elsewhere in ("example.com", f"{host}.example.com", "*"):
        with pytest.raises(ValueError, match="bad host or port"):
            normal_origin(f"http://{elsewhere}:*")


def test_origins_are_stored_without_duplicates_in_order_and_every_bad_one_is_reported() -> None:
    fields = replace(
        GOOD, allowed_origins=("https://b.example", "https://a.example:443", "https://B.example")
    )
    assert check_fields(fields).allowed_origins == ("https://b.example", "https://a.example")
    problems = _problems(allowed_origins=("https://ok.example", "bad", "worse"))
    assert len(problems["allowed_origins"]) == 2
    assert "'bad'" in problems["allowed_origins"][0]
    many = [f"https://{number}.example" for number in range(ORIGINS_LIMIT + 1)]
    assert set(_problems(allowed_origins=tuple(many))) == {"allowed_origins"}
    assert len(check_fields(replace(GOOD, allowed_origins=tuple(many[1:]))).allowed_origins) == (
        ORIGINS_LIMIT
    )


@pytest.mark.parametrize(
    ("icon", "words"),
    [
        *(
            (_uri(kind, b"<svg onload=alert(1)>"), "does not match its MIME type")
            for kind in ("png", "jpeg", "webp")
        ),
        (_uri("png", PNG.ljust(ICON_BYTES + 1, b"\0")), "larger"),
        (_uri("png", PNG.ljust(ICON_BYTES * 2, b"\0")), "larger"),
        ("https://example.com/icon.png", "data URI"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "data URI"),
        ("data:text/html;base64,PHN2Zz4=", "data URI"),
        ("data:image/png,abc", "data URI"),
        ("data:image/png;base64,", "data URI"),
        (_uri("png", PNG) + "\n", "data URI"),
        ("data:image/png;base64,abcde", "Base64"),
    ],
    ids=range(12),
)
def test_an_invalid_icon_is_refused(icon: str, words: str) -> None:
    assert words in icon_problems(icon)[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("title", text) for text in ("", "   ", "x" * (TITLE_LIMIT + 1), "two\nlines", "nul\0")),
        ("instructions", "x" * (INSTRUCTIONS_LIMIT + 1)),
        *(("instructions", text) for text in ("nul\0", "\x1b[31m", "a\rb")),
        *(("calls_per_minute", limit) for limit in (0, -1, 2**31)),
        *(("concurrent_calls", limit) for limit in (0, -1, 2**31)),
    ],
)
def test_a_bad_value_is_reported_under_its_field(field: str, value: object) -> None:
    assert set(_problems(**{field: value})) == {field}
