"""What a catalogue row says of a prompt, resource or template that is data."""

from base64 import b64decode
from binascii import Error
from typing import Annotated, Any, Literal, Self

from mcp_types import ContentBlock
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from mcphost.kinds.text.placeholders import names_in
from mcphost.protocol.images import is_what_it_says
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.uris import check_uri

MAX_ARGUMENTS = 32
MAX_MESSAGES = 64
MAX_CHOICES = 1000
MAX_BYTES = 1024 * 1024
"""Of one text, or of binary content before it is encoded."""

_BLOCK: TypeAdapter[Any] = TypeAdapter(ContentBlock)


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


def _mime_type(name: str) -> str:
    kind, slash, rest = name.partition("/")
    if not (kind and slash and rest) or not name.isascii() or not name.isprintable():
        raise ValueError("A MIME type looks like text/plain.")
    return name


def _uri(uri: str) -> str:
    if problem := check_uri(uri):
        raise ValueError(f"{problem[:1].upper()}{problem[1:]}.")
    return uri


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, Field(max_length=200), AfterValidator(_text)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Binary = Annotated[str, AfterValidator(_binary)]
MimeType = Annotated[str, Field(max_length=200), AfterValidator(_mime_type)]
Values = Annotated[list[Line], Field(max_length=MAX_CHOICES)]


class Strict(BaseModel):
    """A configuration, in which nothing is there that nobody reads."""

    model_config = ConfigDict(extra="forbid")


class Argument(Strict):
    """An argument of a prompt. `choices` are suggested to whoever fills it in, not demanded."""

    name: Name
    title: Line = ""
    description: Annotated[Text, Field(max_length=2000)] = ""
    required: bool = True
    choices: Values = []


def _content(block: Any) -> Any:
    """A block of content as on the wire, whose data is Base64 and what its MIME type says."""
    known = _BLOCK.validate_python(block)
    written = known.model_dump(mode="json", by_alias=True, exclude_none=True)
    for text in _texts(written):
        _text(text)
    held = written.get("resource", written)
    encoded = held.get("data", held.get("blob"))
    if encoded is not None:
        data = b64decode(_binary(encoded))
        if not is_what_it_says(held.get("mimeType", ""), data):
            raise ValueError(f"The content is not what it says it is ({held['mimeType']}).")
    return written


def _texts(block: dict[str, Any]) -> list[str]:
    """The texts of a block in which placeholders are filled in."""
    held = block.get("resource", block)
    return [held["text"]] if "text" in held else []


Content = Annotated[dict[str, Any], AfterValidator(_content)]


class Message(Strict):
    """A message of a prompt. `content` is one block, as on the wire (spec: server/prompts)."""

    role: Literal["user", "assistant"] = "user"
    content: Content

    @property
    def placeholders(self) -> list[str]:
        return [name for text in _texts(self.content) for name in names_in(text)]


class PromptConfig(Strict):
    """A prompt: its arguments, and the messages that they are put into."""

    arguments: list[Argument] = Field(default=[], max_length=MAX_ARGUMENTS)
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES)


class ResourceConfig(Strict):
    """A resource: text, or binary content in Base64."""

    uri: Annotated[str, AfterValidator(_uri)]
    mime_type: MimeType = "text/plain"
    text: Text | None = None
    blob: Binary | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.blob is None):
            raise ValueError("Give either a text or binary content.")
        if self.blob is not None and not is_what_it_says(self.mime_type, b64decode(self.blob)):
            raise ValueError(f"The content is not what it says it is ({self.mime_type}).")
        return self


def _template(text: str) -> str:
    UriTemplate(text)
    return text


class TemplateConfig(Strict):
    """A resource template: a text with the variables of its URI in it."""

    uri: Annotated[str, AfterValidator(_template)]
    mime_type: MimeType = "text/plain"
    text: Text
    choices: dict[Name, Values] = {}
