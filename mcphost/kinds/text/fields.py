"""The field types of text configurations. Each check raises ValueError with the reason."""

from base64 import b64decode
from binascii import Error
from typing import Annotated

from pydantic import AfterValidator, Field

from mcphost.protocol.images import matches_mime_type
from mcphost.protocol.mime_types import check_mime_type
from mcphost.protocol.uris import check_uri

MAX_CHOICES = 1000
MAX_BYTES = 1024 * 1024
"""Of one text, or of binary content before it is encoded."""


def _text(text: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ValueError(f"The text has more than {MAX_BYTES} bytes.")
    bad = next((c for c in text if c == "\0" or "\ud800" <= c <= "\udfff"), "")
    if bad:
        raise ValueError(f"The character U+{ord(bad):04X} is not allowed here.")
    return text


def _binary(encoded: str) -> str:
    try:
        data = b64decode(encoded, validate=True)
    except (Error, ValueError):
        raise ValueError("This is not Base64.") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"The content has more than {MAX_BYTES} bytes.")
    return encoded


def _fine(problem: str | None, value: str) -> str:
    """Return the value if there is no problem. Raises ValueError with the problem."""
    if problem:
        raise ValueError(f"{problem[:1].upper()}{problem[1:]}.")
    return value


def _mime_type(name: str) -> str:
    return _fine(check_mime_type(name), name)


def _uri(uri: str) -> str:
    return _fine(check_uri(uri), uri)


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, Field(max_length=200), AfterValidator(_text)]
Paragraph = Annotated[str, Field(max_length=2000), AfterValidator(_text)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Binary = Annotated[str, AfterValidator(_binary)]
MimeType = Annotated[str, AfterValidator(_mime_type)]
Uri = Annotated[str, AfterValidator(_uri)]
Values = Annotated[list[Line], Field(max_length=MAX_CHOICES)]


def check_content(mime_type: str | None, data: bytes) -> None:
    """Raises ValueError for an image that does not match its MIME type."""
    if mime_type and not matches_mime_type(mime_type, data):
        raise ValueError(f"The content does not match its MIME type ({mime_type}).")
