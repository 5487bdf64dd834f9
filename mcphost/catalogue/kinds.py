"""The registered kinds: one line registers a kind."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import python_kind
from mcphost.kinds.text.kind import text_kind

__all__ = [
    "KINDS",
    "KindError",
    "compile_config",
    "compiled_function",
    "discover",
    "function_of",
    "functions",
    "primitive_type_of",
]

KINDS: Mapping[str, Kind] = {
    "python": python_kind,
    "text": text_kind,
}

# The field of a kind's configuration that names what staff have to grant.
GRANTED_BY_STAFF: Mapping[str, str] = {"python": "function"}


def discover() -> None:
    """Load the functions from the folder in the settings, at start. Repeating changes nothing."""
    python_kind.configure(settings.MCPHOST_TOOLS)


def compile_config(
    kind: str, config: Mapping[str, Any], primitive_type: PrimitiveType | None = None
) -> Compiled:
    """Compile a configuration.

    Raises KindError with its problems by field, also if its primitive type is another.
    """
    if kind not in KINDS:
        raise KindError({"": [f"There is no kind called {kind!r}."]})
    if primitive_type is not None and primitive_type not in KINDS[kind].primitive_types:
        raise KindError({"": [f"A {primitive_type.value} cannot be of the kind {kind!r}."]})
    compiled = KINDS[kind].compile(config, primitive_type or PrimitiveType.TOOL)
    if primitive_type not in (None, compiled.primitive_type):
        field = GRANTED_BY_STAFF.get(kind, "")
        raise KindError(
            {field: [f"This is a {compiled.primitive_type.value}, not a {primitive_type}."]}
        )
    return compiled


def function_of(kind: str, config: Mapping[str, Any]) -> str:
    """Return the function that staff must have granted for this configuration; empty if none."""
    field = GRANTED_BY_STAFF.get(kind)
    return str(config.get(field, "")) if field else ""


def functions() -> tuple[tuple[str, str], ...]:
    """Return reference and label of every function that the code offers, sorted by reference."""
    return tuple(sorted(KINDS["python"].choices()))


def compiled_function(function: str) -> Compiled:
    """Return what a function's author declares. Raises KindError if there is no such function."""
    return compile_config("python", {"function": function})


def primitive_type_of(function: str) -> PrimitiveType:
    """Return a function's primitive type; a tool if the code no longer has the function."""
    try:
        return compiled_function(function).primitive_type
    except KindError:
        return PrimitiveType.TOOL
