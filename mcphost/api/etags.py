"""Strong ETags, and the conditions of requests (RFC 9110 sections 8.8.3 and 13)."""

import hashlib
import re
from typing import Final

from mcphost.api.problems import ProblemError, ProblemType

_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"')
_TAGS: Final = re.compile(rf"[ \t,]*+(?:{_TAG.pattern}[ \t]*+(?:,[ \t,]*+|\Z))*+")
"""A list of ETags. It never goes back, so that a long header is read in linear time."""
ANY: Final = "*"
_CHANGED: Final = "It has changed since you read it. Read it again, and repeat the change on that."


def etag_of(body: bytes) -> str:
    """Return the ETag of a representation: equal bytes have equal ETags."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def required_tags(if_match: str | None) -> frozenset[str]:
    """Return the ETags of If-Match, `*` for any. Raises ProblemError if there are none."""
    if if_match is None:
        raise ProblemError(
            ProblemType.NO_PRECONDITION,
            "Send If-Match with the ETag that you read, or with * to change the object whatever it is.",
        )
    if if_match.strip() == ANY:
        return frozenset({ANY})
    return _tags(if_match)


def check_tags(tags: frozenset[str], etag: str) -> None:
    """Refuse a change of an object that has another ETag. Weak ones never match."""
    if ANY not in tags and etag not in tags:
        raise changed_meanwhile()


def changed_meanwhile() -> ProblemError:
    return ProblemError(ProblemType.PRECONDITION, _CHANGED)


def is_unchanged(if_none_match: str | None, etag: str) -> bool:
    """Whether the client has this representation already."""
    if if_none_match is None:
        return False
    known_tags = {tag.removeprefix("W/") for tag in _tags(if_none_match)}
    return if_none_match.strip() == ANY or etag in known_tags


def _tags(header: str) -> frozenset[str]:
    """Return the ETags of a list; none of a header that is no list."""
    return frozenset(_TAG.findall(header) if _TAGS.fullmatch(header) else ())
