"""Which kinds there are: one line registers one."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.python.kind import python_kind
from mcphost.kinds.sorts import Sort
from mcphost.kinds.text.kind import text_kind

__all__ = [
    "KINDS",
    "KindError",
    "compile_config",
    "compiled_function",
    "discover",
    "function_of",
    "functions",
    "sort_of",
]

KINDS: Mapping[str, Kind] = {
    "python": python_kind,
    "text": text_kind,
}

# The field of a kind's configuration that names what staff have to grant.
GRANTED_BY_STAFF: Mapping[str, str] = {"python": "function"}


def discover() -> None:
    """Look for what the kinds offer where the settings say, at start. Again changes nothing."""
    python_kind.configure(settings.MCPHOST_TOOLS)


def compile_config(kind: str, config: Mapping[str, Any], sort: Sort | None = None) -> Compiled:
    """What a configuration stands for. Raises KindError with its problems by field.

    So it does when it stands for another sort than the one that is wanted.
    """
    if kind not in KINDS:
        raise KindError({"": [f"There is no kind called {kind!r}."]})
    if sort is not None and sort not in KINDS[kind].sorts:
        raise KindError({"": [f"A {sort.value} cannot be of the kind {kind!r}."]})
    compiled = KINDS[kind].compile(config, sort or Sort.TOOL)
    if sort not in (None, compiled.sort):
        field = GRANTED_BY_STAFF.get(kind, "")
        raise KindError({field: [f"This is a {compiled.sort.value}, not a {sort}."]})
    return compiled


def function_of(kind: str, config: Mapping[str, Any]) -> str:
    """The function that staff must have granted for this configuration; empty if none."""
    field = GRANTED_BY_STAFF.get(kind)
    return str(config.get(field, "")) if field else ""


def functions() -> tuple[tuple[str, str], ...]:
    """Reference and label of every function that the code offers, by reference."""
    return tuple(sorted(KINDS["python"].choices()))


def compiled_function(function: str) -> Compiled:
    """What a function's author says of it. Raises KindError when there is no such function."""
    return compile_config("python", {"function": function})


def sort_of(function: str) -> Sort:
    """What a function is; a tool if the code does not have it any more."""
    try:
        return compiled_function(function).sort
    except KindError:
        return Sort.TOOL
