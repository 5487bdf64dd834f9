"""What each sort of thing that a tenant offers is called on our pages, and where its pages are."""

from collections.abc import Mapping
from dataclasses import dataclass

from mcphost.kinds.sorts import Sort


@dataclass(frozen=True, slots=True)
class Words:
    """One sort in words. Names of addresses follow from `sort`, see `urls`."""

    sort: Sort
    one: str
    many: str
    icon: str
    about: str
    good_for: str
    name_hint: str
    text_label: str = ""
    text_about: str = ""

    @property
    def listing(self) -> str:
        return f"admin:{self.sort.value}s"

    @property
    def detail(self) -> str:
        return f"admin:{self.sort.value}"

    @property
    def add(self) -> str:
        return f"admin:{self.sort.value}_add"

    @property
    def edit(self) -> str:
        return f"admin:{self.sort.value}_edit"

    @property
    def move(self) -> str:
        return f"admin:{self.sort.value}_move"

    @property
    def announce(self) -> str:
        return f"admin:{self.sort.value}_announce"

    @property
    def verb(self) -> str:
        """What clients do with it."""
        return {Sort.TOOL: "call", Sort.PROMPT: "get"}.get(self.sort, "read")

    @property
    def title(self) -> str:
        return self.many[0].upper() + self.many[1:]

    @property
    def has_uri(self) -> bool:
        return self.sort in (Sort.RESOURCE, Sort.TEMPLATE)

    @property
    def has_text(self) -> bool:
        """Whether it can be written in the console, without a function."""
        return self.sort is not Sort.TOOL


_NAME = "What clients call it: 1 to 64 letters, digits, _ - and dots. Fixed once published."
_LABEL = (
    "What lists and records call it: 1 to 64 letters, digits, _ - and dots. Fixed once published."
)

WORDS: Mapping[Sort, Words] = {
    Sort.TOOL: Words(
        Sort.TOOL,
        "tool",
        "tools",
        "build",
        "what models may call",
        "A tool lets clients call a function under a name of your choice.",
        _NAME,
    ),
    Sort.PROMPT: Words(
        Sort.PROMPT,
        "prompt",
        "prompts",
        "chat",
        "what people start a conversation with",
        "A prompt is a conversation ready to begin: messages with blanks that people fill in.",
        _NAME,
        "Written here",
        "Messages with {placeholders}",
    ),
    Sort.RESOURCE: Words(
        Sort.RESOURCE,
        "resource",
        "resources",
        "description",
        "what clients may read",
        "A resource is a text or a file that clients read under a URI of its own.",
        _LABEL,
        "Written here",
        "A text or a file",
    ),
    Sort.TEMPLATE: Words(
        Sort.TEMPLATE,
        "template",
        "templates",
        "data_object",
        "resources by the dozen, from one URI with variables",
        "A template answers every URI of a form, such as docs://{page}.",
        _LABEL,
        "Written here",
        "A text with {variables}",
    ),
}
