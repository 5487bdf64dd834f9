"""Pages of lists by keyset: a cursor says after which row of which list the next page begins."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from django.core import signing

from mcphost.api.problems import FieldFault, ProblemError, ProblemType

_SALT: Final = "mcphost.api.cursor"
Key = Sequence[str | int]
"""The values by which a list is sorted, of one row. They identify the row."""


def list_of(path: str, filters: dict[str, Any]) -> str:
    """Return a digest of what is listed: the path with its filters."""
    text = json.dumps([path, sorted(filters.items())], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cursor_after(listed: str, key: Key) -> str:
    """Return the cursor of the page after the row with this key."""
    return signing.dumps([listed, *key], salt=_SALT)


def key_of(cursor: str, listed: str) -> Key | None:
    """Return the key that a cursor of this list has; None without a cursor.

    Raises ProblemError for the cursor of another list, or of none.
    """
    if not cursor:
        return None
    try:
        of_list, *row = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError):
        of_list, row = "", []
    if of_list != listed:
        fault = FieldFault("cursor", "cursor", "Use `next` of a page with the same filters.")
        message = "The cursor does not belong to this list."
        raise ProblemError(ProblemType.PARAMETERS, message, [fault])
    key: Key = row
    return key
