"""What clients get, shown to people: a prompt's messages, a resource's content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.console.prompt_rows import blob_of
from mcphost.console.uploads import Blob

MOST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, a file or a link, and where it belongs. Only what is an image is shown as one."""

    role: str = ""
    text: str = ""
    cut: bool = False
    blob: Blob | None = None
    uri: str = ""


def of_messages(messages: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """The messages of a prompt."""
    return [_piece(each["content"], each["role"]) for each in messages]


def of_contents(contents: Sequence[Mapping[str, Any]]) -> list[Piece]:
    """The contents of a resource."""
    return [_piece(each) for each in contents]


def _piece(content: Mapping[str, Any], role: str = "") -> Piece:
    inside = content.get("resource", content)
    text = str(inside.get("text", ""))
    return Piece(
        role=role,
        text=text[:MOST_TEXT],
        cut=len(text) > MOST_TEXT,
        blob=blob_of(content),
        uri=str(inside.get("uri", "")),
    )
