"""The registered kinds, a line each, and those that inspect a configuration when it is saved."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from mcphost.kinds.http.kind import HttpKind
from mcphost.kinds.kind import Compiled, Kind, KindError, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import python_kind
from mcphost.kinds.script.kind import script_kind
from mcphost.kinds.text.kind import text_kind

__all__ = [
    "KINDS",
    "KindError",
    "compile_config",
    "compiled_function",
    "discover",
    "function_of",
    "functions",
    "inspect_config",
    "log_problems",
    "primitive_type_of",
    "secrets_of",
    "sendings_of",
]

log = logging.getLogger(__name__)

http_kind = HttpKind(script_kind.sandbox.search)

KINDS: Mapping[str, Kind] = {
    "http": http_kind,
    "python": python_kind,
    "script": script_kind,
    "text": text_kind,
}

# What takes too long for `compile`, and for a transaction, or would refuse what is published already:
# only when a configuration is saved.
INSPECTED: Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, list[str]]]] = {
    "http": http_kind.inspect,
    "script": script_kind.inspect,
}

# The field of a kind's configuration that names what staff have to grant.
GRANTED_BY_STAFF: Mapping[str, str] = {"python": "function"}


def discover() -> None:
    """Load the functions from the folders in the settings, at start. Repeating changes nothing."""
    suite = (settings.MCPHOST_CONFORMANCE_TOOLS,) if settings.MCPHOST_CONFORMANCE else ()
    python_kind.configure(settings.MCPHOST_TOOLS, *suite)


def log_problems() -> None:
    """Log what each kind finds wrong with its environment, once, when a process starts."""
    for kind in KINDS.values():
        for problem in kind.check():
            log.error("not served: %s", problem, extra={"kind": kind.name})


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


def inspect_config(
    kind: str, config: Mapping[str, Any], tenant_id: UUID
) -> Mapping[str, list[str]]:
    """Return the problems of a tenant's configuration by field, for kinds that look closer when it is
    saved: those of `compile_config`, which finds them too, may be among them.

    Raises InspectionBusyError. Blocks for up to half a minute, so it raises RuntimeError in a transaction: on SQLite, no other
    connection could write meanwhile.
    """
    inspect_kind = INSPECTED.get(kind)
    if inspect_kind is None:
        return {}
    _refuse_transaction()
    return inspect_kind(config, str(tenant_id))


def _refuse_transaction() -> None:
    """Raise RuntimeError in a transaction; as for Django's durable blocks, that of a test case
    does not count."""
    blocks = transaction.get_connection().atomic_blocks
    if blocks and not blocks[-1]._from_testcase:
        raise RuntimeError("A configuration cannot be inspected in a transaction.")


def function_of(kind: str, config: Mapping[str, Any]) -> str:
    """Return the function that staff must have granted for this configuration; empty if none."""
    field = GRANTED_BY_STAFF.get(kind)
    return str(config.get(field, "")) if field else ""


def secrets_of(kind: str, config: Mapping[str, Any]) -> Collection[str]:
    """Return the names of the tenant's secrets that a configuration uses."""
    return KINDS[kind].secrets_of(config) if kind in KINDS else ()


def sendings_of(kind: str, config: Mapping[str, Any]) -> Sequence[Sending]:
    """Return what a configuration sends to other services, as far as it is known before a call."""
    return KINDS[kind].sendings_of(config) if kind in KINDS else ()


def functions() -> tuple[tuple[str, str], ...]:
    """Return reference and label of every function that the code offers, sorted by reference."""
    return tuple(KINDS["python"].choices())


def compiled_function(function: str) -> Compiled:
    """Return what a function's author declares. Raises KindError if there is no such function."""
    return compile_config("python", {"function": function})


def primitive_type_of(function: str) -> PrimitiveType:
    """Return a function's primitive type; a tool if the code no longer has the function."""
    try:
        return compiled_function(function).primitive_type
    except KindError:
        return PrimitiveType.TOOL
