"""Previews: content written in the console as clients will receive it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.console.forms.prompts import blob_of
from mcphost.console.forms.uploads import Blob
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.text.placeholders import fill

MAX_TEXT = 20_000
"""Characters; a longer text is cut after them."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, a file or a link, and its role. Only an actual image is shown as an image."""

    role: str = ""
    text: str = ""
    cut: bool = False
    blob: Blob | None = None
    uri: str = ""


def pieces(
    primitive_type: PrimitiveType, config: Mapping[str, Any], values: Values
) -> Sequence[Piece]:
    """Return a prompt's messages or a resource's content, with values for the placeholders."""
    if primitive_type is PrimitiveType.PROMPT:
        return [
            _piece(message["content"], values, message.get("role", "user"))
            for message in config["messages"]
        ]
    if config.get("blob"):
        return [Piece(blob=Blob.of(config.get("mime_type", ""), config["blob"]))]
    return [
        _piece(
            {"text": config["text"]}, values if primitive_type is PrimitiveType.TEMPLATE else None
        )
    ]


def _piece(content: Mapping[str, Any], values: Values | None, role: str = "") -> Piece:
    inside = content.get("resource", content)
    text = str(inside.get("text", ""))
    text = text if values is None else fill(text, values)
    return Piece(
        role=role,
        text=text[:MAX_TEXT],
        cut=len(text) > MAX_TEXT,
        blob=blob_of(content),
        uri=str(inside.get("uri", "")),
    )
