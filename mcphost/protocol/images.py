"""Images that are taken: PNG, JPEG and WebP, known by their first bytes.

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
    """The MIME type that the content has, None for what is none of these images."""
    return next((name for name, fits in _SIGNATURES.items() if fits(data)), None)


def is_what_it_says(mime_type: str, data: bytes) -> bool:
    """Whether content fits its MIME type; what is called none of these images is not looked at."""
    name = mime_type.partition(";")[0].strip().lower()
    return name not in _SIGNATURES or image_type(data) == name


def parse_data_uri(uri: str) -> tuple[str, bytes]:
    """MIME type and content of a data: URI in Base64. Raises ValueError saying what is wrong."""
    match = _DATA_URI.fullmatch(uri)
    if match is None:
        raise ValueError("it is not a data: URI in Base64, such as data:image/png;base64,…")
    try:
        return match["type"], b64decode(match["data"], validate=True)
    except Error:
        raise ValueError("the data: URI does not hold Base64.") from None


def check_image_uri(uri: str) -> str | None:
    """What keeps a data: URI from being an image whose content is what it says; None if nothing."""
    try:
        name, data = parse_data_uri(uri)
    except ValueError as error:
        return str(error)
    if name not in TYPES:
        return f"the data: URI is of one of these types: {', '.join(TYPES)}."
    if not is_what_it_says(name, data):
        return f"the content is not what it says it is ({name})."
    return None
