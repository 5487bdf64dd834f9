"""Values that functions return: the protocol's content types, explicit results and messages."""

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
"""A result without structured content; None would be the JSON value null."""


@dataclass(frozen=True, slots=True)
class Result:
    """An explicit result: content as it is, and structured content of any JSON value."""

    content: Sequence[Content] = ()
    structured: Any = NOTHING
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt: a string or other content, by default with the role `user`."""

    content: str | Content
    role: Literal["user", "assistant"] = "user"
