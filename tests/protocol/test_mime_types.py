"""Tests of the syntax of MIME types."""

import pytest

from mcphost.protocol.mime_types import MAX_LENGTH, check_mime_type


@pytest.mark.parametrize(
    "name",
    [
        "text/plain",
        "text/plain;charset=utf-8",
        'multipart/mixed; boundary="a b"',
        "application/vnd.api+json",
    ],
)
def test_valid_mime_types_are_accepted(name: str) -> None:
    assert check_mime_type(name) is None


@pytest.mark.parametrize(
    "name", ["", "png", "/png", "image/", "text/plain\n", "text/pl ain", "a/b;c", "tëxt/plain"]
)
def test_invalid_mime_types_are_refused(name: str) -> None:
    assert check_mime_type(name) == "a MIME type looks like text/plain"


def test_the_length_of_a_mime_type_is_limited() -> None:
    assert check_mime_type("a/" + "b" * (MAX_LENGTH - 2)) is None
    assert "at most" in str(check_mime_type("a/" + "b" * (MAX_LENGTH - 1)))
