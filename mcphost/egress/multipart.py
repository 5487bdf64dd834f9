"""Bodies of fields and files: `multipart/form-data` (RFC 7578)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mcphost.egress.errors import EgressRequestError
from mcphost.egress.secret_values import Text

_TCHARS: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA_TYPE: Final = re.compile(
    rf'{_TCHARS}/{_TCHARS}(?:; ?{_TCHARS}=(?:{_TCHARS}|"[ !#-\[\]-~]*"))*'
)
_UNSAFE: Final = re.compile(r'["\x00-\x1f\x7f]')
MAX_NAME: Final = 500


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file. `name` is the field's, `file_name` what the service calls the file."""

    name: str
    content: bytes
    file_name: str
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class MultipartBody:
    """Fields and files, in this order. `media_types` are those of fields by name; the others have none."""

    fields: tuple[tuple[str, Text], ...] = ()
    files: tuple[FilePart, ...] = ()
    media_types: Mapping[str, str] = field(default_factory=dict)


def encode(
    fields: Sequence[tuple[str, str]],
    files: Sequence[FilePart],
    media_types: Mapping[str, str] | None = None,
) -> tuple[bytes, str]:
    """Return the body and its media type. Raises EgressRequestError for invalid names or types."""
    types = media_types or {}
    parts = [
        _part(f"name={_quoted(name)}", _content_type(name, types.get(name)), value.encode())
        for name, value in fields
    ]
    for file in files:
        names = f"name={_quoted(file.name)}; filename={_quoted(file.file_name)}"
        parts.append(_part(names, _content_type(file.name, file.media_type), file.content))
    boundary = _boundary(parts)
    between = b"--" + boundary + b"\r\n"
    body = b"".join(between + part for part in parts) + b"--" + boundary + b"--\r\n"
    return body, f"multipart/form-data; boundary={boundary.decode()}"


def _content_type(name: str, media_type: str | None) -> str:
    if media_type is None:
        return ""
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise EgressRequestError(f"The content type of {name[:100]!r} is invalid.")
    return f"Content-Type: {media_type}\r\n"


def _part(names: str, more: str, content: bytes) -> bytes:
    return f"Content-Disposition: form-data; {names}\r\n{more}\r\n".encode() + content + b"\r\n"


def _quoted(name: str) -> str:
    """Quote a name as browsers do: what could end the text or the line is percent-encoded."""
    if len(name) > MAX_NAME:
        raise EgressRequestError(f"A name in the form has more than {MAX_NAME} characters.")
    return '"' + _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name) + '"'


def _boundary(parts: Sequence[bytes]) -> bytes:
    """Return a boundary that no part contains: the same for the same parts, so that a repeated
    request has the same bytes."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    while True:
        boundary = b"mcphost-" + digest.hexdigest()[:48].encode()  # RFC 2046: at most 70
        if not any(boundary in part for part in parts):
            return boundary
        digest.update(b"again")
