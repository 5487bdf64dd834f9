"""Content blocks of a text prompt in wire format, and the types of their fields: checked strictly.

Spec: server/prompts, "PromptMessage". The protocol's own types accept unknown fields. These do not,
and they select the block by its `type`, so that a problem is reported at the field that causes it.
"""

from base64 import b64decode
from binascii import Error
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from mcphost.kinds.kind import Strict
from mcphost.protocol.images import matches_mime_type
from mcphost.protocol.mime_types import check_mime_type
from mcphost.protocol.uris import check_uri

MAX_CHOICES = 1000
MAX_BYTES = 1024 * 1024
"""Of one text, or of binary content before it is encoded."""


def _text(text: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise ValueError(f"The text has more than {MAX_BYTES} bytes.")
    bad = next((c for c in text if c == "\0" or "\ud800" <= c <= "\udfff"), "")
    if bad:
        raise ValueError(f"The character U+{ord(bad):04X} is not allowed here.")
    return text


def _binary(encoded: str) -> str:
    try:
        data = b64decode(encoded, validate=True)
    except (Error, ValueError):
        raise ValueError("This is not Base64.") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"The content has more than {MAX_BYTES} bytes.")
    return encoded


def _fine(problem: str | None, value: str) -> str:
    """Return the value if there is no problem. Raises ValueError with the problem."""
    if problem:
        raise ValueError(f"{problem[:1].upper()}{problem[1:]}.")
    return value


def _mime_type(name: str) -> str:
    return _fine(check_mime_type(name), name)


def _uri(uri: str) -> str:
    return _fine(check_uri(uri), uri)


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, Field(max_length=200), AfterValidator(_text)]
Paragraph = Annotated[str, Field(max_length=2000), AfterValidator(_text)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Binary = Annotated[str, AfterValidator(_binary)]
MimeType = Annotated[str, AfterValidator(_mime_type)]
Uri = Annotated[str, AfterValidator(_uri)]
Values = Annotated[list[Line], Field(max_length=MAX_CHOICES)]


def check_content(mime_type: str | None, data: bytes) -> None:
    """Raises ValueError for an image that does not match its MIME type."""
    if mime_type and not matches_mime_type(mime_type, data):
        raise ValueError(f"The content does not match its MIME type ({mime_type}).")


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
