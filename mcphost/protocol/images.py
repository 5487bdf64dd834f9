"""Accepted image types: PNG, JPEG and WebP, recognized by their first bytes.

Spec: basic, `icons` ("validate icon content types against file signatures").
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping

_DATA_URI = re.compile(r"data:(?P<type>[^;,]*);base64,(?P<data>[A-Za-z0-9+/]+={0,2})")
_SIGNATURES: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda data: data.startswith(b"\xff\xd8\xff"),
    "image/webp": lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP",
}
TYPES = tuple(_SIGNATURES)


def image_type(data: bytes) -> str | None:
    """Return the MIME type of the content; None if it is not one of these images."""
    return next((name for name, fits in _SIGNATURES.items() if fits(data)), None)


def matches_mime_type(mime_type: str, data: bytes) -> bool:
    """Whether content fits its MIME type. Content of any other MIME type is not checked."""
    name = mime_type.partition(";")[0].strip().lower()
    return name not in _SIGNATURES or image_type(data) == name


def parse_data_uri(uri: str) -> tuple[str, bytes]:
    """Return MIME type and content of a Base64 data: URI. Raises ValueError with the reason."""
    match = _DATA_URI.fullmatch(uri)
    if match is None:
        raise ValueError("it is not a data: URI in Base64, such as data:image/png;base64,…")
    try:
        return match["type"], b64decode(match["data"], validate=True)
    except Error:
        raise ValueError("the data: URI is not valid Base64.") from None


def check_image_uri(uri: str) -> str | None:
    """Return the problem that keeps a data: URI from being an image of its declared type, or None."""
    try:
        name, data = parse_data_uri(uri)
    except ValueError as error:
        return str(error)
    if name not in TYPES:
        return f"the data: URI is of one of these types: {', '.join(TYPES)}."
    if not matches_mime_type(name, data):
        return f"the content does not match its MIME type ({name})."
    return None
