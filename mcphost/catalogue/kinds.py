"""Which kinds of tool there are: one line registers one."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.python.kind import python_kind

__all__ = [
    "KINDS",
    "KindError",
    "compile_config",
    "discover",
    "function_of",
    "functions",
    "name_of",
]

KINDS: Mapping[str, Kind] = {
    "python": python_kind,
}

# The field of a kind's configuration that names what staff have to grant.
GRANTED_BY_STAFF: Mapping[str, str] = {"python": "function"}


def discover() -> None:
    """Look for what the kinds offer where the settings say, at start. Again changes nothing."""
    python_kind.configure(settings.MCPHOST_TOOLS)


def compile_config(kind: str, config: Mapping[str, Any]) -> Compiled:
    """What a configuration stands for. Raises KindError with its problems by field."""
    if kind not in KINDS:
        raise KindError({"": [f"There is no kind of tool called {kind!r}."]})
    return KINDS[kind].compile(config)


def function_of(kind: str, config: Mapping[str, Any]) -> str:
    """The function that staff must have granted for this configuration; empty if none."""
    field = GRANTED_BY_STAFF.get(kind)
    return str(config.get(field, "")) if field else ""


def functions() -> tuple[tuple[str, str], ...]:
    """Reference and label of every function that the code offers, by reference."""
    return tuple(sorted(KINDS["python"].choices()))


def name_of(function: str) -> str:
    """What a function's author calls its tool. Raises KindError when there is no such function."""
    return compile_config("python", {"function": function}).name
