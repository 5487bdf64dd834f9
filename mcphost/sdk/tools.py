"""`@tool`: a function as a tool (spec: server/tools)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack, overload

from mcp_types import ToolAnnotations

from mcphost.sdk.marking import Function, check_limits, mark


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
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False

    def __post_init__(self) -> None:
        check_limits(self)


class ToolOptions(TypedDict, total=False):
    """What `@tool` takes.

    `version` is the author's own, for changes that the schemas do not show. Schemas given here are
    taken as they are: arguments then arrive as plain JSON, by name. `time_limit` is in seconds;
    `requires` names client capabilities; `threads` caps how many calls of a `def` tool run at once
    in one tenant. `answer_within` is how long its questions wait for their answers, in seconds (half
    an hour). `claims` says whether a round that takes in an answer may run in one process only, and
    once (what is neither read-only nor idempotent: yes). `unasked` takes answers to questions that no
    state says were asked, which only tests of clients need.
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

    Raises TypeError for an option that does not exist, ValueError for one that makes no sense.
    """
    if function is not None and not callable(function):
        raise TypeError("@tool takes its options by name: @tool(title=…)")
    definition = ToolDefinition(**options)

    def offer(function: Function) -> Function:
        return mark(function, definition)

    return offer if function is None else offer(function)
