"""The syntax of MIME types (RFC 6838, section 4.2; RFC 9110, section 8.3.1)."""

import re
from typing import Final

MAX_LENGTH: Final = 200

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*"
_VALUE: Final = r"(?:[A-Za-z0-9!#$%&'*+.^_`|~-]+|\"[ !#-\[\]-~]*\")"
_TYPE: Final = re.compile(rf"{_NAME}/{_NAME}(?: ?; ?{_NAME}={_VALUE})*")


def check_mime_type(name: str) -> str | None:
    """Return the problem that keeps a text from being a MIME type (parameters allowed), or None."""
    if len(name) > MAX_LENGTH:
        return f"a MIME type has at most {MAX_LENGTH} characters"
    if _TYPE.fullmatch(name) is None:
        return "a MIME type looks like text/plain"
    return None
