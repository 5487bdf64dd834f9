"""Content blocks of a text prompt: in wire format, and checked strictly.

Spec: server/prompts, "PromptMessage". The protocol's own types accept unknown fields. These do not,
and they select the block by its `type`, so that a problem is reported at the field that causes it.
"""

from base64 import b64decode
from typing import Annotated, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from mcphost.kinds.kind import Strict
from mcphost.kinds.text.fields import (
    Binary,
    Line,
    MimeType,
    Paragraph,
    Text,
    Uri,
    check_content,
)


class Wire(Strict):
    """Field names as on the wire."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Annotations(Wire):
    """The audience, priority and last change of content."""

    audience: list[Literal["user", "assistant"]] | None = None
    priority: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    last_modified: Line | None = None


class Block(Wire):
    """The fields that all blocks have."""

    annotations: Annotations | None = None

    @property
    def texts(self) -> dict[str, str]:
        """The texts whose placeholders are filled, by their path."""
        return {}


class TextBlock(Block):
    """A text block."""

    type: Literal["text"]
    text: Text

    @property
    def texts(self) -> dict[str, str]:
        return {"text": self.text}


class Media(Block):
    """Binary content of a family of types. The MIME type comes first, because the data is checked
    against it."""

    mime_type: MimeType
    data: Binary

    @field_validator("data")
    @classmethod
    def _fits(cls, data: str, info: ValidationInfo) -> str:
        check_content(info.data.get("mime_type"), b64decode(data))
        return data


class ImageBlock(Media):
    """An image block."""

    type: Literal["image"]
    mime_type: Annotated[MimeType, Field(pattern="^image/")]


class AudioBlock(Media):
    """An audio block."""

    type: Literal["audio"]
    mime_type: Annotated[MimeType, Field(pattern="^audio/")]


class Contents(Wire):
    """The contents of a resource that is embedded in a message."""

    uri: Uri
    mime_type: MimeType | None = None
    text: Text | None = None
    blob: Binary | None = None

    @field_validator("blob")
    @classmethod
    def _fits(cls, blob: str | None, info: ValidationInfo) -> str | None:
        check_content(info.data.get("mime_type"), b64decode(blob or ""))
        return blob

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.blob is None):
            raise ValueError("Give either a text or binary content.")
        return self


class ResourceBlock(Block):
    """A resource with its contents."""

    type: Literal["resource"]
    resource: Contents

    @property
    def texts(self) -> dict[str, str]:
        return {} if self.resource.text is None else {"resource.text": self.resource.text}


class LinkBlock(Block):
    """A link to a resource."""

    type: Literal["resource_link"]
    uri: Uri
    name: Annotated[Line, Field(min_length=1)]
    title: Line | None = None
    description: Paragraph | None = None
    mime_type: MimeType | None = None
    size: Annotated[int, Field(ge=0, lt=2**53)] | None = None


Content = Annotated[
    TextBlock | ImageBlock | AudioBlock | ResourceBlock | LinkBlock, Field(discriminator="type")
]
