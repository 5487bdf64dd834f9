"""The wording for each primitive type on our pages, and the names of its URLs."""

from collections.abc import Mapping
from dataclasses import dataclass

from mcphost.kinds.primitive_types import PrimitiveType


@dataclass(frozen=True, slots=True)
class Words:
    """The wording for one primitive type. URL names follow from `primitive_type`, see `urls`."""

    primitive_type: PrimitiveType
    singular: str
    plural: str
    icon: str
    good_for: str
    name_hint: str
    text_label: str = ""
    text_about: str = ""

    @property
    def listing(self) -> str:
        return f"admin:{self.primitive_type.value}s"

    @property
    def detail(self) -> str:
        return f"admin:{self.primitive_type.value}"

    @property
    def add(self) -> str:
        return f"admin:{self.primitive_type.value}_add"

    @property
    def edit(self) -> str:
        return f"admin:{self.primitive_type.value}_edit"

    @property
    def move(self) -> str:
        return f"admin:{self.primitive_type.value}_move"

    @property
    def delete(self) -> str:
        return f"admin:{self.primitive_type.value}_delete"

    @property
    def bulk(self) -> str:
        return f"admin:{self.primitive_type.value}s_bulk"

    @property
    def version(self) -> str:
        return f"admin:{self.primitive_type.value}_version"

    @property
    def roll_back(self) -> str:
        return f"admin:{self.primitive_type.value}_roll_back"

    @property
    def announce(self) -> str:
        return f"admin:{self.primitive_type.value}_announce"

    @property
    def verb(self) -> str:
        """What clients do with it."""
        return {PrimitiveType.TOOL: "call", PrimitiveType.PROMPT: "get"}.get(
            self.primitive_type, "read"
        )

    @property
    def title(self) -> str:
        return self.plural[0].upper() + self.plural[1:]

    @property
    def has_uri(self) -> bool:
        return self.primitive_type in (PrimitiveType.RESOURCE, PrimitiveType.TEMPLATE)


_NAME = (
    "The name that clients use: 1 to 64 letters, digits, underscores, hyphens and dots. "
    "It cannot be changed once published."
)
_LABEL = (
    "The name in lists and calls: 1 to 64 letters, digits, underscores, hyphens and dots. "
    "It cannot be changed once published."
)

WORDS: Mapping[PrimitiveType, Words] = {
    PrimitiveType.TOOL: Words(
        PrimitiveType.TOOL,
        "tool",
        "tools",
        "build",
        "A tool is an HTTP request, a script or a Python function that clients call by a name of your choice.",
        _NAME,
    ),
    PrimitiveType.PROMPT: Words(
        PrimitiveType.PROMPT,
        "prompt",
        "prompts",
        "chat",
        "A prompt is a prepared conversation: messages with arguments that users fill in.",
        _NAME,
        "Written here",
        "Messages with {placeholders}",
    ),
    PrimitiveType.RESOURCE: Words(
        PrimitiveType.RESOURCE,
        "resource",
        "resources",
        "description",
        "A resource is a text or a file that clients read by its URI.",
        _LABEL,
        "Written here",
        "A text or a file",
    ),
    PrimitiveType.TEMPLATE: Words(
        PrimitiveType.TEMPLATE,
        "template",
        "templates",
        "data_object",
        "A template serves every URI of a pattern, such as docs://{page}.",
        _LABEL,
        "Written here",
        "A text with {variables}",
    ),
}
