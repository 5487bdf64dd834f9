"""Tests of resource URIs and their normal form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.uris import MAX_LENGTH, check_uri, normalize, percent_encoded

LEGAL = "abcXYZ019-._~:/?#[]@!$&'()*+,;=%"


@pytest.mark.parametrize(
    "uri",
    [
        "docs:handbook",
        "test://static-text",
        "file:///C:/notes.txt",
        "users://Ada@home:1/Notes?of=May&to=all#end",
        "https://user:pw@example.com:8443/a%2Fb?x=%C3%A9",
        "https://[2001:db8::1]:80/a",
        "mailto:ada@example.com",
        "a:..b",
        "x" * 9 + ":" + "y" * (MAX_LENGTH - 10),
    ],
)
def test_a_normalized_uri_is_accepted_unchanged(uri: str) -> None:
    assert check_uri(uri) is None
    assert normalize(uri) == uri


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("DOCS:Handbook", "docs:Handbook"),
        ("docs:%68i%2f%c3%a9", "docs:hi%2F%C3%A9"),
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://Me@EX%c3%9c.com:443?q", "https://Me@ex%C3%9C.com:443/?q"),
    ],
)
def test_a_uri_that_is_not_normalized_is_normalized(uri: str, normal: str) -> None:
    assert normalize(uri) == normal
    assert check_uri(uri) == f"the URI is not normalized; use {normal}"


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("", "does not begin with a scheme"),
        ("/docs/a", "does not begin with a scheme"),
        ("docs:", "nothing after its scheme"),
        ("docs:a b", "' ', which must be percent-encoded"),
        ("docs:a\n", r"'\n', which must be percent-encoded"),
        ("docs:\ud800", r"'\ud800', which must be percent-encoded"),
        ("docs:a%2", "two hexadecimal digits"),
        ("docs:a[1]", "brackets"),
        ("docs:a#b#c", "second #"),
        ("file:///a/../b", "for a segment"),
        ("docs:./a", "for a segment"),
        ("https:///a", "not a host"),
        ("docs://a:b:c/", "not a host"),
        ("x" * 9 + ":" + "y" * (MAX_LENGTH - 9), f"more than {MAX_LENGTH} characters"),
    ],
)
def test_an_invalid_resource_uri_is_refused_with_the_reason(uri: str, problem: str) -> None:
    assert problem in (check_uri(uri) or "")
    with pytest.raises(ValueError):
        normalize(uri)


@given(st.text(max_size=40) | st.text(LEGAL, max_size=40) | st.from_regex(r"\Adocs:[!-~]{1,30}\Z"))
def test_normalizing_a_uri_twice_changes_nothing(text: str) -> None:
    try:
        normal = normalize(text)
    except ValueError as error:
        assert check_uri(text) == str(error)
        return
    assert normalize(normal) == normal
    assert check_uri(normal) is None


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("demo://weather/São Paulo", "demo://weather/S%C3%A3o%20Paulo"),
        ("demo://weather/100%", "demo://weather/100%25"),
        ("demo://weather/S%C3%A3o", "demo://weather/S%C3%A3o"),
        ('demo://a/{b}|<c>\\^`"d\n', "demo://a/%7Bb%7D%7C%3Cc%3E%5C%5E%60%22d%0A"),
        ("docs:a[1]#b#c", "docs:a%5B1%5D#b%23c"),
        ("https://[::1]:80/a[1]?b=[2]", "https://[::1]:80/a%5B1%5D?b=%5B2%5D"),
        ("demo://a/\ud83d", "demo://a/%EF%BF%BD"),
        ("no scheme", "no%20scheme"),
    ],
)
def test_text_typed_into_a_template_is_percent_encoded(text: str, encoded: str) -> None:
    assert percent_encoded(text) == encoded
    assert percent_encoded(encoded) == encoded
    if ":" in text:
        assert check_uri(encoded) is None


def test_a_text_with_nul_is_not_encoded_and_is_no_uri() -> None:
    assert percent_encoded("demo://a/b\0c") == "demo://a/b\0c"
    assert check_uri("demo://a/b\0c") is not None


def test_a_text_too_long_for_a_uri_is_not_encoded() -> None:
    assert percent_encoded("docs:" + " " * MAX_LENGTH) == "docs:" + " " * MAX_LENGTH
