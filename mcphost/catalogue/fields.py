"""The working copy of a primitive, as forms and commands pass it, and its published parts."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.catalogue.models import Primitive
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType

OVERRIDES = (
    "title",
    "description",
    "scopes",
    "time_limit_seconds",
    "answer_within_seconds",
    "icons",
)


@dataclass(frozen=True, slots=True)
class PrimitiveFields:
    """All that an operator may set. Empty texts and None leave the value to the code.

    `config` is the kind's own (for Python: `{"function": "module.name"}`), `scopes` are those a
    caller needs besides `mcp:list` and `mcp:call`, `icons` as on the wire (spec: basic, `icons`).
    `time_limit_seconds` is for one round, `answer_within_seconds` for the answer to a question.
    """

    name: str
    config: Mapping[str, Any]
    sort: PrimitiveType = PrimitiveType.TOOL
    kind: str = "python"
    title: str = ""
    description: str = ""
    scopes: Sequence[str] = ()
    time_limit_seconds: float | None = None
    answer_within_seconds: float | None = None
    icons: Sequence[Mapping[str, Any]] = ()


NAMES = tuple(field.name for field in dataclasses.fields(PrimitiveFields))


def working_copy(row: Primitive) -> PrimitiveFields:
    """Return the fields of a row."""
    values = {name: getattr(row, name) for name in NAMES}
    return PrimitiveFields(**{**values, "sort": PrimitiveType(row.sort)})


def changed(before: PrimitiveFields, after: PrimitiveFields) -> list[str]:
    """Return the names of the fields that differ, in their order."""
    return [name for name in NAMES if getattr(before, name) != getattr(after, name)]


def snapshot(fields: PrimitiveFields) -> dict[str, Any]:
    """Return the operator's part of a publication, which decides what is served."""
    return {
        "kind": fields.kind,
        "config": dict(fields.config),
        **{name: getattr(fields, name) for name in OVERRIDES},
    }


def code(compiled: Compiled) -> dict[str, Any]:
    """Return the code's part of a publication, for the history.

    Requests are served from the code as it is today, because that is what will run.
    """
    return {
        "title": compiled.title,
        "description": compiled.description,
        "input_schema": compiled.input_schema,
        "output_schema": compiled.output_schema,
        "annotations": dict(compiled.annotations),
        "author_version": compiled.author_version,
    }
