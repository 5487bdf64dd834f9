"""The type of an image is recognized by its content, never by its declared type."""

from base64 import b64encode

import pytest

from mcphost.protocol.images import (
    TYPES,
    check_image_uri,
    image_type,
    matches_mime_type,
)

IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n rest",
    "image/jpeg": b"\xff\xd8\xff\xe0 rest",
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 ",
}


def uri(name: str, data: bytes) -> str:
    return f"data:{name};base64,{b64encode(data).decode()}"


def test_image_types_are_recognised_by_their_first_bytes() -> None:
    assert tuple(IMAGES) == TYPES
    assert {name: image_type(data) for name, data in IMAGES.items()} == {n: n for n in TYPES}
    for other in (b"", b"GIF89a", b"<svg xmlns=", b"RIFF\0\0\0\0WAVE", b"\x89PNG"):
        assert image_type(other) is None


@pytest.mark.parametrize("says", TYPES)
@pytest.mark.parametrize("holds", TYPES)
def test_an_image_of_another_type_than_declared_does_not_match(says: str, holds: str) -> None:
    assert matches_mime_type(says, IMAGES[holds]) == (says == holds)
    assert matches_mime_type(f" {says.upper()} ; q=1", IMAGES[holds]) == (says == holds)
    problem = check_image_uri(uri(says, IMAGES[holds]))
    assert problem == (
        None if says == holds else f"the content does not match its MIME type ({says})."
    )


def test_content_of_non_image_types_is_not_checked() -> None:
    assert matches_mime_type("application/pdf", b"anything")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://example.com/a.png", "not a data: URI in Base64"),
        ("data:image/png;base64,", "not a data: URI in Base64"),
        ("data:image/png;base64,AAA", "is not valid Base64"),
        ("data:image/svg+xml;base64,PHN2Zy8+", "one of these types"),
    ],
)
def test_problems_of_a_data_uri_are_reported(text: str, said: str) -> None:
    assert said in str(check_image_uri(text))
