"""What functions return: the protocol's own content, and results and messages said in full."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from mcp_types import AudioContent as Audio
from mcp_types import BlobResourceContents as BlobResource
from mcp_types import EmbeddedResource, ResourceLink
from mcp_types import ImageContent as Image
from mcp_types import TextContent as Text
from mcp_types import TextResourceContents as TextResource

__all__ = [
    "NOTHING",
    "Audio",
    "BlobResource",
    "Content",
    "EmbeddedResource",
    "Image",
    "Message",
    "ResourceLink",
    "Result",
    "Text",
    "TextResource",
]

Content = Text | Image | Audio | ResourceLink | EmbeddedResource

NOTHING: Final = object()
"""Says that a result has no structured content; None would be the JSON value null."""


@dataclass(frozen=True, slots=True)
class Result:
    """A result said in full: content as it is, and structured content of any JSON value."""

    content: Sequence[Content] = ()
    structured: Any = NOTHING
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt: a text or other content, of the user unless it says otherwise."""

    content: str | Content
    role: Literal["user", "assistant"] = "user"
