"""Tests of bodies of fields and files."""

import pytest

from mcphost.egress.errors import EgressRequestError
from mcphost.egress.multipart import FilePart, encode


def test_multipart_encoding_is_deterministic_with_a_boundary_in_no_part() -> None:
    parts = [("a", "1")], [FilePart("f", b"--mcphost-\r\n", "x.bin")]
    body, media_type = encode(*parts)
    assert encode(*parts) == (body, media_type)
    boundary = media_type.partition("boundary=")[2].encode()
    assert len(boundary) <= 70  # RFC 2046, section 5.1.1
    assert body.count(boundary) == 3
    assert body.endswith(b"--" + boundary + b"--\r\n")


@pytest.mark.parametrize("name", ['"', "\r\n", "\0", 'x"; filename="y'])
def test_a_name_cannot_break_out_of_its_quotes_or_its_line(name: str) -> None:
    body, _ = encode([(name, "1")], [FilePart(name, b"2", name, "text/plain")])
    field, file = (part.split(b"\r\n\r\n")[0] for part in body.split(b"\r\n--")[:2])
    assert field.split(b"\r\n")[1].count(b'"') == 2
    assert file.split(b"\r\n")[1].count(b'"') == 4
    assert len(file.split(b"\r\n")) == 3
    assert not set(b"\0\x7f") & set(field + file)


@pytest.mark.parametrize(
    "media_type",
    [
        "",
        "a/b\r\nX: 1",
        "a/b;",
        'a/b; c="\r\n"',
        "ü/b",
    ],
)
def test_an_invalid_content_type_is_refused(media_type: str) -> None:
    with pytest.raises(EgressRequestError, match="content type of 'f' is invalid"):
        encode([], [FilePart("f", b"", "f", media_type)])
