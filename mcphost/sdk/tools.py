"""`@tool`: a function as a tool (spec: server/tools)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack, overload

from mcp_types import ToolAnnotations

from mcphost.sdk.marking import Function, check_limits, mark


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The options of `@tool` for a function. An empty name or description is taken from the function."""

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
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False

    def __post_init__(self) -> None:
        check_limits(self)


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`.

    `version` is the author's own, for changes that the schemas do not show. Schemas given here are
    used as they are: arguments then arrive as plain JSON, by name. `time_limit` is in seconds, per
    round. `requires` lists client capabilities. `threads` limits how many calls of a `def` tool run
    at once in one tenant. `answer_within` is how long its questions wait for answers, in seconds
    (default: half an hour). `claims`: whether a round that gets an answer may run only once, in one
    process (default: yes, unless the tool is read-only or idempotent). `unasked`: accept answers to
    questions that no request state contains, which only tests of clients need.
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
    answer_within: float
    claims: bool
    unasked: bool


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None, /, **options: Unpack[ToolOptions]
) -> Function | Callable[[Function], Function]:
    """Offer a function as a tool: `@tool`, or `@tool(title=…, …)` with the fields of ToolOptions.

    Raises TypeError for an option that does not exist, ValueError for an invalid one.
    """
    if function is not None and not callable(function):
        raise TypeError("@tool takes its options by name: @tool(title=…)")
    definition = ToolDefinition(**options)

    def offer(function: Function) -> Function:
        return mark(function, definition)

    return offer if function is None else offer(function)
