"""Tests of the fields of a tenant, and of the messages for bad values."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    limit_problems,
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


@pytest.mark.parametrize("slug", ["a", "0", "acme", "a-1", "a--b", "a" * 40])
def test_a_good_slug_is_kept(slug: str) -> None:
    assert check_slug(slug) == slug


@pytest.mark.parametrize(
    "slug", ["", "-a", "a-", "A", "a_b", "a.b", "a b", "a" * 41, "ä", "a\n", "a/b", "a\x00"]
)
def test_a_bad_slug_is_refused_beside_its_field(slug: str) -> None:
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
def test_an_origin_is_kept_as_browsers_send_it(given_text: str, kept: str) -> None:
    assert normal_origin(given_text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "null",
        "example.com",
        "//example.com",
        "https://",
        "https://example.com/",
        "https://example.com/path",
        "https://example.com?x",
        "https://example.com#x",
        "https://user@example.com",
        "https://example.com:port",
        "https://example.com:99999",
        "https://example.com:",
        "https://*.example.com",
        "https://exa mple.com",
        "https://bücher.example",
        "https://[::1",
        "https://[zz]",
        "1http://example.com",
    ],
)
def test_what_is_more_or_less_than_an_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|has"):
        normal_origin(text)


@given(st.text(st.characters(max_codepoint=0x250), max_size=40).map(lambda rest: f"https://{rest}"))
def test_any_text_is_an_origin_or_a_refusal_and_what_is_kept_is_kept_again(text: str) -> None:
    try:
        kept = normal_origin(text)
    except ValueError:
        return
    assert normal_origin(kept) == kept


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_any_port_of_this_machine_can_be_allowed(host: str) -> None:
    assert normal_origin(f"HTTP://{host}:*") == f"http://{host}:*"
    for elsewhere in ("example.com", f"{host}.example.com", "*"):
        with pytest.raises(ValueError, match="bad host or port"):
            normal_origin(f"http://{elsewhere}:*")


def test_origins_are_kept_once_each_in_their_order() -> None:
    fields = replace(
        GOOD, allowed_origins=("https://b.example", "https://a.example:443", "https://B.example")
    )
    assert check_fields(fields).allowed_origins == ("https://b.example", "https://a.example")


def test_every_bad_origin_is_named() -> None:
    problems = _problems(allowed_origins=("https://ok.example", "bad", "worse"))
    assert len(problems["allowed_origins"]) == 2
    assert "'bad'" in problems["allowed_origins"][0]


def test_too_many_origins_are_refused() -> None:
    origins = tuple(f"https://{number}.example" for number in range(ORIGINS_LIMIT + 1))
    assert set(_problems(allowed_origins=origins)) == {"allowed_origins"}


@pytest.mark.parametrize(("kind", "data"), [("png", PNG), ("jpeg", JPEG), ("webp", WEBP)])
def test_an_icon_of_each_kind_is_taken(kind: str, data: bytes) -> None:
    assert icon_problems(_uri(kind, data)) == []


def test_no_icon_is_fine() -> None:
    assert icon_problems("") == []


def test_an_icon_may_be_as_large_as_the_limit_and_no_byte_larger() -> None:
    assert icon_problems(_uri("png", PNG.ljust(ICON_BYTES, b"\0"))) == []
    assert "larger" in icon_problems(_uri("png", PNG.ljust(ICON_BYTES + 1, b"\0")))[0]
    assert "larger" in icon_problems(_uri("png", PNG.ljust(ICON_BYTES * 2, b"\0")))[0]


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_an_icon_whose_content_is_something_else_is_refused(kind: str) -> None:
    assert "does not match its MIME type" in icon_problems(_uri(kind, b"<svg onload=alert(1)>"))[0]


@pytest.mark.parametrize(
    "icon",
    [
        "https://example.com/icon.png",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:text/html;base64,PHN2Zz4=",
        "data:image/png,abc",
        "data:image/png;base64,",
        _uri("png", PNG) + "\n",
    ],
)
def test_an_icon_that_is_no_data_uri_of_an_image_is_refused(icon: str) -> None:
    assert "data URI" in icon_problems(icon)[0]


def test_an_icon_with_broken_base64_is_refused() -> None:
    assert "Base64" in icon_problems("data:image/png;base64,abcde")[0]


@pytest.mark.parametrize("title", ["", "   ", "x" * (TITLE_LIMIT + 1), "two\nlines", "nul\x00"])
def test_a_bad_title_is_refused(title: str) -> None:
    assert set(_problems(title=title)) == {"title"}


def test_a_title_is_trimmed() -> None:
    assert check_fields(replace(GOOD, title="  Acme  ")).title == "Acme"


def test_instructions_may_have_lines_and_tabs() -> None:
    text = "Ask first.\r\n\tThen act.\n"
    assert check_fields(replace(GOOD, instructions=text)).instructions == text


@pytest.mark.parametrize("text", ["x" * (INSTRUCTIONS_LIMIT + 1), "nul\x00", "\x1b[31m", "a\rb"])
def test_bad_instructions_are_refused(text: str) -> None:
    assert set(_problems(instructions=text)) == {"instructions"}


@pytest.mark.parametrize("limit", [None, 1, 2**31 - 1])
def test_a_limit_is_a_positive_number_or_none(limit: int | None) -> None:
    assert limit_problems(limit) == []


@pytest.mark.parametrize("limit", [0, -1, 2**31])
@pytest.mark.parametrize("name", ["calls_per_minute", "concurrent_calls"])
def test_any_other_limit_is_refused_beside_its_field(name: str, limit: int) -> None:
    assert set(_problems(**{name: limit})) == {name}


def test_all_problems_are_said_at_once() -> None:
    problems = _problems(title="", icon="x", calls_per_minute=0)
    assert set(problems) == {"title", "icon", "calls_per_minute"}


def test_the_error_reads_as_one_line() -> None:
    error = InvalidError({"slug": ["Taken."], "title": ["Empty.", "Sad."]})
    assert str(error) == "slug: Taken.; title: Empty. Sad."
