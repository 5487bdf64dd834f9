"""What a tool author imports, and all of it.

A tool is a function with type hints. Its schemas come from them, its description from the first
paragraph of its docstring:

    from mcphost.sdk import Context, tool

    @tool(title="Count words")
    async def count_words(ctx: Context, text: str) -> int:
        '''Count the words of a text.'''
        ctx.progress(1, 1)
        return len(text.split())

The function stays callable as it was. What it returns is sent like this:

- `str`: one text. `None`: no content. A content object (`Text`, `Image`, …), or a list of them: as
  they are. `Result`: exactly what it says. None of these has an output schema.
- anything else that pydantic can write as JSON (a model, a dataclass, a list, a dict, a number, and
  before Python 3.12 the TypedDict of typing_extensions): structured content, held against the output schema that the return type gives, and
  the same JSON as a text for older clients.

Raise ToolError to tell the caller what went wrong; any other exception is logged, and the caller
learns only that the tool failed. A function that blocks is declared with a plain `def` and runs in
a thread of its own; `Context` means the same there.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, overload
from uuid import UUID

from mcp_types import Annotations as Annotations
from mcp_types import AudioContent as Audio
from mcp_types import BlobResourceContents as BlobResource
from mcp_types import EmbeddedResource as EmbeddedResource
from mcp_types import ImageContent as Image
from mcp_types import ResourceLink as ResourceLink
from mcp_types import TextContent as Text
from mcp_types import TextResourceContents as TextResource
from mcp_types import ToolAnnotations as ToolAnnotations

from mcphost.runtime.call import Call
from mcphost.runtime.line import CallEnded, Line
from mcphost.runtime.ports import Announcer, NotAnnounced

__all__ = [
    "Annotations",
    "Audio",
    "BlobResource",
    "CallEnded",
    "CapabilityMissing",
    "Content",
    "Context",
    "EmbeddedResource",
    "Image",
    "ResourceLink",
    "Result",
    "Text",
    "TextResource",
    "ToolAnnotations",
    "ToolDefinition",
    "ToolError",
    "current",
    "tool",
]

Function = TypeVar("Function", bound=Callable[..., Any])
Content = Text | Image | Audio | ResourceLink | EmbeddedResource

LISTS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}
ATTRIBUTE: Final = "__mcphost_tool__"
NOTHING: Final = object()
"""Says that a result has no structured content; None would be the JSON value null."""


class ToolError(Exception):
    """Something the caller should read and can learn from: sent as a result with `isError`."""


class CapabilityMissing(Exception):  # noqa: N818 - a refusal that says what happened
    """The client did not declare a capability. `required` has the shape of `ClientCapabilities`."""

    def __init__(self, capability: str) -> None:
        self.capability = capability
        super().__init__(f"This tool needs a client with the capability {capability!r}.")

    @property
    def required(self) -> dict[str, Any]:
        shape: dict[str, Any] = {}
        for step in reversed(self.capability.split(".")):
            shape = {step: shape}
        return shape


@dataclass(frozen=True, slots=True)
class Result:
    """A result said in full: content as it is, and structured content of any JSON value."""

    content: Sequence[Content] = ()
    structured: Any = NOTHING
    is_error: bool = False


class Context:
    """One call, as its tool sees it. Ask for it by a parameter of this type, or by `current()`.

    Nothing here waits, so nothing needs `await`. It may be used from any thread until the call
    has ended; from then on everything raises CallEnded.
    """

    __slots__ = ("_announcer", "_call", "_line")

    def __init__(self, call: Call, line: Line, announcer: Announcer) -> None:
        self._call = call
        self._line = line
        self._announcer = announcer

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the caller how far the work is, if it asked to be told.

        Progress only rises: a value that is not above the last one is dropped.
        """
        self._line.progress(progress, total, message)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the caller, if it asked for that level.

        `level` is one of debug, info, notice, warning, error, critical, alert, emergency; `data`
        is anything JSON can hold.
        """
        self._line.log(level, data, logger)

    def debug(self, data: Any, logger: str | None = None) -> None:
        self._line.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> None:
        self._line.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> None:
        self._line.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> None:
        self._line.log("error", data, logger)

    def announce(self, uri: str) -> None:
        """Tell whoever listens that what can be read at `uri` is not what it was.

        `uri` is that of one of the tenant's resources, or fits one of its templates. Call it once
        what is read there is new. The same URI announced many times in a tenth of a second is told
        once. Raises ToolError for a URI of no resource, and for too many at once.
        """
        self._announce(self._announcer.updated, uri)

    def announce_list(self, name: Literal["tools", "prompts", "resources"]) -> None:
        """Tell whoever listens to a list to ask for it anew.

        What is registered and published in the admin is told by itself. This is for a list that
        means something else than before although it reads the same. Raises ValueError for another
        name, and ToolError for too many announcements at once.
        """
        if name not in LISTS:
            raise ValueError(f"{name!r} is not a list: use one of {', '.join(LISTS)}")
        self._announce(self._announcer.list_changed, LISTS[name])

    def _announce(self, tell: Callable[[str], None], what: str) -> None:
        self._open()
        try:
            tell(what)
        except NotAnnounced as refusal:
            raise ToolError(str(refusal)) from None

    def require(self, capability: str) -> None:
        """Say what the tool cannot do without: "sampling", "elicitation.url".

        Raises CapabilityMissing if the client does not have it; uncaught, it tells the client.
        """
        if not self._open().client.can(capability):
            raise CapabilityMissing(capability)

    @property
    def tenant(self) -> UUID:
        """The tenant the call was made to."""
        return self._open().tenant

    @property
    def principal(self) -> str:
        """Who calls, in words for people; empty for anonymous callers."""
        return self._open().principal.label

    @property
    def client(self) -> str:
        """What the client calls itself. Never identity: anyone may say anything."""
        return self._open().client.name

    @property
    def call_id(self) -> UUID:
        """Names the call, the same through all of its rounds."""
        return self._open().id

    @property
    def round(self) -> int:
        """Which round of the call this is, from 1."""
        return self._open().round

    def _open(self) -> Call:
        self._line.check()
        return self._call


RUNNING: ContextVar[Context] = ContextVar("mcphost_context")
"""The context of the tool that runs here. Kinds set it for each round."""


def current() -> Context:
    """The context of the call that this code runs for.

    Known in the tool, in tasks it starts and in threads entered by `asyncio.to_thread`. Raises
    RuntimeError elsewhere.
    """
    try:
        return RUNNING.get()
    except LookupError:
        raise RuntimeError("no tool is running here") from None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What `@tool` was told of a function. Empty texts leave it to the function."""

    name: str = ""
    title: str = ""
    description: str = ""
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    version: str = ""
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    time_limit: float | None = None
    requires: Sequence[str] = ()
    threads: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.requires, str):
            raise TypeError(f'requires is a list of capabilities: ["{self.requires}"]')
        for name in ("time_limit", "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0")


class ToolOptions(TypedDict, total=False):
    """What `@tool` takes.

    `version` is the author's own, for changes that the schemas do not show. Schemas given here are
    taken as they are: arguments then arrive as plain JSON, by name. `time_limit` is in seconds;
    `requires` names client capabilities; `threads` caps how many calls of a `def` tool run at once
    in one tenant.
    """

    name: str
    title: str
    description: str
    annotations: ToolAnnotations
    version: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    time_limit: float
    requires: Sequence[str]
    threads: int


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None, /, **options: Unpack[ToolOptions]
) -> Function | Callable[[Function], Function]:
    """Offer a function as a tool: `@tool`, or `@tool(title=…, …)` with the fields of ToolOptions.

    Raises TypeError for an option that does not exist, ValueError for one that makes no sense.
    """
    if function is not None and not callable(function):
        raise TypeError("@tool takes its options by name: @tool(title=…)")
    definition = ToolDefinition(**options)

    def offer(function: Function) -> Function:
        setattr(function, ATTRIBUTE, definition)
        return function

    return offer if function is None else offer(function)
