"""`@prompt`: a function as a prompt (spec: server/prompts)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack, overload

from mcphost.sdk.marking import Completers, Function, check_limits, check_names, mark


@dataclass(frozen=True, slots=True)
class PromptDefinition:
    """The options of `@prompt` for a function. An empty name or description is taken from the function."""

    name: str = ""
    title: str = ""
    description: str = ""
    version: str = ""
    time_limit: float | None = None
    requires: Sequence[str] = ()
    threads: int | None = None
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False
    completers: Completers = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_limits(self)


class PromptOptions(TypedDict, total=False):
    """The options of `@prompt`; each as for `@tool`."""

    name: str
    title: str
    description: str
    version: str
    time_limit: float
    requires: Sequence[str]
    threads: int
    answer_within: float
    claims: bool
    unasked: bool


@overload
def prompt(function: Function, /) -> Function: ...
@overload
def prompt(**options: Unpack[PromptOptions]) -> Callable[[Function], Function]: ...
def prompt(
    function: Function | None = None, /, **options: Unpack[PromptOptions]
) -> Function | Callable[[Function], Function]:
    """Offer a function as a prompt: `@prompt`, or `@prompt(title=…)` with the fields of
    PromptOptions.

    Its parameters are the prompt's arguments. Clients send strings, which are converted by the
    parameters' annotations. Raises TypeError for an option that does not exist, ValueError for an
    invalid one.
    """
    if function is not None and not callable(function):
        raise TypeError("@prompt takes its options by name: @prompt(title=…)")
    check_names("prompt", PromptDefinition, options)
    definition: Any = PromptDefinition(**options)

    def offer(function: Function) -> Function:
        return mark(function, definition)

    return offer if function is None else offer(function)
