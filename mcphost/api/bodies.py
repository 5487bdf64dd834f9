"""Bodies of requests: JSON that is read exactly, and merge patches (RFC 7396)."""

from collections.abc import Mapping
from typing import IO, Any, Final

import orjson
from rest_framework.parsers import BaseParser

from mcphost.api.problems import ProblemError, ProblemType
from mcphost.protocol.exact_numbers import MAX_SHOWN, changed_number
from mcphost.protocol.nesting import is_deeper

MERGE_PATCH: Final = "application/merge-patch+json"
MAX_LEVELS: Final = 72
"""More than what is stored may have (`protocol.storable`), with the levels around it."""


class ExactJsonParser(BaseParser):
    """JSON in UTF-8, whose numbers are not changed by reading them."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        text = stream.read()
        if not text.strip():
            return {}
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise ProblemError(
                ProblemType.MALFORMED, f"The body is not valid JSON: {error}"
            ) from None
        if is_deeper(parsed, MAX_LEVELS):
            raise ProblemError(ProblemType.MALFORMED, "The body is nested too deep.")
        if number := changed_number(text):
            message = (
                f"The number {number[:MAX_SHOWN]} has more than 64 bits, and would be changed."
            )
            raise ProblemError(ProblemType.MALFORMED, message)
        return parsed


class MergePatchParser(ExactJsonParser):
    """A merge patch, which is JSON, too."""

    media_type = MERGE_PATCH


def merged(target: Any, patch: Any) -> Any:
    """Return `target` with a merge patch applied: null removes a member, a list replaces a list."""
    if not isinstance(patch, dict):
        return patch
    members = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            members.pop(name, None)
        else:
            members[name] = merged(members.get(name), value)
    return members
