"""What clients get of what is written in the console, shown to people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.console.prompt_rows import blob_of
from mcphost.console.uploads import Blob
from mcphost.kinds.sorts import Sort
from mcphost.kinds.text.placeholders import fill

MOST_TEXT = 20_000
"""Characters; longer texts are shown from their beginning."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, a file or a link, and who says it. Only what is an image is shown as one."""

    role: str = ""
    text: str = ""
    cut: bool = False
    blob: Blob | None = None
    uri: str = ""


def pieces(sort: Sort, config: Mapping[str, Any], values: Values) -> Sequence[Piece]:
    """A prompt's messages, or the content of a resource, with values for its placeholders."""
    if sort is Sort.PROMPT:
        return [
            _piece(each["content"], values, each.get("role", "user")) for each in config["messages"]
        ]
    if config.get("blob"):
        return [Piece(blob=Blob.of(config.get("mime_type", ""), config["blob"]))]
    return [_piece({"text": config["text"]}, values if sort is Sort.TEMPLATE else None)]


def _piece(content: Mapping[str, Any], values: Values | None, role: str = "") -> Piece:
    inside = content.get("resource", content)
    text = str(inside.get("text", ""))
    text = text if values is None else fill(text, values)
    return Piece(
        role=role,
        text=text[:MOST_TEXT],
        cut=len(text) > MOST_TEXT,
        blob=blob_of(content),
        uri=str(inside.get("uri", "")),
    )
