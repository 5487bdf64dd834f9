"""Bodies of requests: JSON that is read strictly (no duplicate names, no integers that would be rounded),
and merge patches (RFC 7396)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from email.message import Message
from typing import IO, Any, Final

import orjson
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from mcphost.api.problems import ProblemError, ProblemType
from mcphost.protocol.exact_numbers import MAX_SHOWN, changed_number
from mcphost.protocol.nesting import is_deeper

MERGE_PATCH: Final = "application/merge-patch+json"
MAX_LEVELS: Final = 72
"""What can be stored has at most 64 levels (`protocol.storable.MAX_DEPTH`); the rest is for the body around
it."""


class StrictJsonParser(BaseParser):
    """JSON in UTF-8. Refuses duplicate names, deep nesting, and integers that would be rounded."""

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
            raise ProblemError(ProblemType.MALFORMED, "The body is nested too deeply.")
        if number := changed_number(text):
            message = (
                f"The number {number[:MAX_SHOWN]} has more than 64 bits, and would be changed."
            )
            raise ProblemError(ProblemType.MALFORMED, message)
        json.loads(text, object_pairs_hook=_check_unique_names)
        return parsed


class MergePatchParser(StrictJsonParser):
    """A merge patch, which is JSON, too."""

    media_type = MERGE_PATCH


class StrictNegotiation(DefaultContentNegotiation):
    """Chooses a parser by the exact media type of a body: ranges and other encodings are refused."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser; None for a media type that the method does not take. Raises ProblemError."""
        if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise ProblemError(ProblemType.MEDIA_TYPE, "Send the body without a Content-Encoding.")
        header = Message()
        header["Content-Type"] = request.content_type or "none/none"
        charset = str(header.get_param("charset", "utf-8")).lower()
        if charset != "utf-8":
            raise ProblemError(ProblemType.MEDIA_TYPE, "JSON is sent in UTF-8.")
        media_type = header.get_content_type()
        if media_type == MERGE_PATCH and request.method != "PATCH":
            return None
        return next((parser for parser in parsers if parser.media_type == media_type), None)


def _check_unique_names(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object in which a name occurs twice: parsers disagree about which value counts."""
    names = Counter(name for name, _ in pairs)
    if len(names) < len(pairs):
        twice = next(name for name, count in names.items() if count > 1)
        message = f"The name {json.dumps(twice[:MAX_SHOWN])} occurs twice in one object."
        raise ProblemError(ProblemType.MALFORMED, message)


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
