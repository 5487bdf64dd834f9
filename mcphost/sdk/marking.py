"""The common part of all decorators: they store a definition on the function."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import FunctionType
from typing import Any, Final, Protocol, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

ATTRIBUTE: Final = "__mcphost_offer__"
_collected: ContextVar[list[FunctionType] | None] = ContextVar("collected", default=None)


class Definition(Protocol):
    """The options of every definition that determine how its function runs."""

    @property
    def requires(self) -> Sequence[str]: ...
    @property
    def time_limit(self) -> float | None: ...
    @property
    def threads(self) -> int | None: ...
    @property
    def answer_within(self) -> float | None: ...


def check_limits(definition: Definition) -> None:
    """Raises TypeError or ValueError for invalid limits. Types are checked when a file is loaded."""
    if isinstance(definition.requires, str):
        raise TypeError(f'requires is a list of capabilities: ["{definition.requires}"]')
    for name in ("time_limit", "threads", "answer_within"):
        value = getattr(definition, name)
        # A value of a wrong type is a problem of this function alone, found when it is inspected.
        if isinstance(value, int | float) and not value > 0:
            raise ValueError(f"{name} must be above 0")


def check_names(decorator: str, definition: type, options: Mapping[str, object]) -> None:
    """Raises TypeError for an option that does not exist."""
    names = getattr(definition, "__dataclass_fields__", {})
    for name in options:
        if name not in names:
            raise TypeError(f"@{decorator} has no option {name!r}: it has {', '.join(names)}")


def mark(function: Function, definition: object) -> Function:
    """Store the definition on the function, and return it. It stays callable as before.

    Raises TypeError for what is no function: it would not be offered, and nothing would say so.
    """
    if not isinstance(function, FunctionType):
        kind = type(function).__name__
        raise TypeError(
            f"a {kind} cannot be offered, only a function that `def` defines: write one that calls it"
        )
    setattr(function, ATTRIBUTE, definition)
    functions = _collected.get()
    if functions is not None:
        functions.append(function)
    return function


def collect_marked(functions: list[FunctionType], work: Callable[[], object]) -> None:
    """Do the work, and add the functions that it marks to the list, wherever they are defined."""
    # No context manager: contextlib reads attributes of what the work raises, which may raise again.
    token = _collected.set(functions)
    try:
        work()
    finally:
        _collected.reset(token)


Completers = dict[str, Callable[..., Any]]
"""The completer functions, by argument."""


def complete(of: Callable[..., Any], argument: str) -> Callable[[Function], Function]:
    """Suggest values for an argument of a prompt, or a variable of a template.

    The function gets the text typed so far and, if it has parameters of their names, the arguments
    that were filled in before. It returns strings, the best first. Arguments annotated with
    Literal, bool or an Enum need no completer. Raises TypeError for a function that is neither a
    prompt nor a template.
    """
    completers: Completers | None = getattr(getattr(of, ATTRIBUTE, None), "completers", None)
    if completers is None:
        raise TypeError("@complete is for functions that are marked @prompt or @resource")

    def offer(function: Function) -> Function:
        completers[argument] = function
        return function

    return offer
