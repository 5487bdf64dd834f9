"""`@tool`: a function as a tool, with its annotations, icons and task support (spec: server/tools)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, Unpack, overload

from mcp_types import ToolAnnotations

from mcphost.runtime.program import TaskSupport
from mcphost.sdk.marking import Function, check_limits, check_names, mark

Tasks = TaskSupport | Literal["never", "slow", "always", "required"]
"""A value of the option `tasks`."""


MAX_RETRIES: Final = 20


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The options of `@tool` for a function. An empty name or description is taken from the function."""

    name: str = ""
    title: str = ""
    description: str = ""
    annotations: ToolAnnotations | Mapping[str, Any] = field(default_factory=ToolAnnotations)
    version: str = ""
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    time_limit: float | None = None
    requires: Sequence[str] = ()
    threads: int | None = None
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False
    tasks: Tasks = TaskSupport.NEVER
    retries: int = 0

    def __post_init__(self) -> None:
        check_limits(self)
        if self.tasks not in tuple(TaskSupport):
            raise ValueError(f"tasks is one of {', '.join(TaskSupport)}: not {self.tasks!r}")
        if self.retries not in range(MAX_RETRIES + 1):
            raise ValueError(f"retries is from 0 to {MAX_RETRIES}: not {self.retries!r}")
        if self.retries and self.task_support is TaskSupport.NEVER:
            raise ValueError("only rounds of tasks are retried: set tasks, too")

    @property
    def task_support(self) -> TaskSupport:
        return TaskSupport(self.tasks)


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`.

    `annotations` may be a dict: `{"readOnlyHint": True}`. `version` is the author's own, for changes that the schemas do not show. Schemas given here are
    used as they are: arguments then arrive as plain JSON, by name. `time_limit` is in seconds, per
    round. `requires` lists client capabilities. `threads` limits how many calls of a `def` tool run
    at once in one tenant. `answer_within` is how long its questions wait for answers, in seconds
    (default: half an hour). `claims`: whether a round that gets an answer may run only once, in one
    process (default: yes, unless the tool is read-only or idempotent). `unasked`: accept answers to
    questions that no request state contains, which only tests of clients need. `tasks` says when a
    call becomes a task, if its client can follow tasks: "never" (default), "slow" (when it takes
    long, or at `ctx.become_task`), "always", or "required" (always, and other clients are refused).
    `retries` says that a round of a task may run again after an unexpected exception, and how often.
    """

    name: str
    title: str
    description: str
    annotations: ToolAnnotations | Mapping[str, Any]
    version: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    time_limit: float
    requires: Sequence[str]
    threads: int
    answer_within: float
    claims: bool
    unasked: bool
    tasks: Tasks
    retries: int


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
    check_names("tool", ToolDefinition, options)
    definition = ToolDefinition(**options)

    def offer(function: Function) -> Function:
        return mark(function, definition)

    return offer if function is None else offer(function)
