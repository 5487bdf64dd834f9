"""The configurations, stored in catalogue rows, of prompts, resources and templates of kind `text`."""

from base64 import b64decode
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from mcphost.kinds.kind import Strict
from mcphost.kinds.text.content import (
    Binary,
    Content,
    Line,
    MimeType,
    Name,
    Paragraph,
    Text,
    Uri,
    Values,
    check_content,
)
from mcphost.protocol.uri_templates import UriTemplate

MAX_ARGUMENTS = 32
MAX_MESSAGES = 64


class Argument(Strict):
    """An argument of a prompt. `choices` are suggestions for its value, not restrictions."""

    name: Name
    title: Line = ""
    description: Paragraph = ""
    required: bool = True
    choices: Values = []


class MessageConfig(Strict):
    """A message of a prompt. `content` is one block, as on the wire (spec: server/prompts)."""

    role: Literal["user", "assistant"] = "user"
    content: Content

    @property
    def wire(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class PromptConfig(Strict):
    """A prompt: its arguments, and the messages with their placeholders."""

    arguments: list[Argument] = Field(default=[], max_length=MAX_ARGUMENTS)
    messages: list[MessageConfig] = Field(min_length=1, max_length=MAX_MESSAGES)


class ResourceConfig(Strict):
    """A resource: text, or binary content in Base64. The content is checked against the MIME type."""

    uri: Uri
    mime_type: MimeType = "text/plain"
    text: Text | None = None
    blob: Binary | None = None

    @field_validator("text", "blob")
    @classmethod
    def _fits(cls, content: str | None, info: ValidationInfo) -> str | None:
        if content is not None:
            data = b64decode(content) if info.field_name == "blob" else content.encode()
            check_content(info.data.get("mime_type"), data)
        return content

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.blob is None):
            raise ValueError("Give either a text or binary content.")
        return self


def _template(text: str) -> str:
    try:
        UriTemplate(text)
    except ValueError as error:
        problem = str(error)
        raise ValueError(f"{problem[:1].upper()}{problem[1:]}.") from None
    return text


class TemplateConfig(Strict):
    """A resource template: a text with placeholders for the variables of its URI."""

    uri: Annotated[str, AfterValidator(_template)]
    mime_type: MimeType = "text/plain"
    text: Text
    choices: dict[Name, Values] = {}
