"""Functions that this process lacks and other live processes have: during a rolling upgrade, or
where a tool file fails to import.

Each process declares its functions with its heartbeat. So all list the same, whatever they can run.
"""

import logging
from collections.abc import Mapping
from typing import Any

from mcphost.catalogue import kinds
from mcphost.feed.nodes import heartbeat
from mcphost.kinds import declarations
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import python_kind

log = logging.getLogger(__name__)


def declared() -> Mapping[str, str]:
    """Return what this process's functions declare, as JSON, by reference.

    What is not JSON is left out: this process cannot serve it either.
    """
    declared = {}
    for name, function in python_kind.functions().items():
        try:
            declared[name] = declarations.write(function)
        except (ValueError, TypeError, RecursionError):
            log.exception("a function cannot be declared", extra={"function": name})
    return declared


def is_missing(function: str) -> bool:
    """Whether this process lacks a function. Empty is none."""
    return bool(function) and function not in python_kind.functions()


def compiled(
    kind: str, config: Mapping[str, Any], primitive_type: PrimitiveType
) -> Compiled | None:
    """Return a configuration's function as another process declares it; None if no other has it, or
    if this process has it."""
    function = kinds.function_of(kind, config)
    if not is_missing(function):
        return None
    written = heartbeat.elsewhere(function)
    if written is None:
        return None
    try:
        declared_elsewhere = declarations.read(written)
    except declarations.UNREADABLE:
        log.exception("what another process declares of a function cannot be read: %s", function)
        return None
    return declared_elsewhere if declared_elsewhere.primitive_type is primitive_type else None
