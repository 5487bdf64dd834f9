"""The working copy of what a tenant offers, as forms and commands hand it over, and what is published of it."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.catalogue.models import Primitive
from mcphost.kinds.kind import Compiled
from mcphost.kinds.sorts import Sort

OVERRIDES = ("title", "description", "scopes", "time_limit_seconds", "icons")


@dataclass(frozen=True, slots=True)
class PrimitiveFields:
    """All that an operator may set. Empty texts and None leave it to the code.

    `config` is the kind's own (for Python: `{"function": "module.name"}`), `scopes` are those a
    caller needs beside `mcp:list` and `mcp:call`, `icons` as on the wire (spec: basic, `icons`).
    """

    name: str
    config: Mapping[str, Any]
    sort: Sort = Sort.TOOL
    kind: str = "python"
    title: str = ""
    description: str = ""
    scopes: Sequence[str] = ()
    time_limit_seconds: float | None = None
    icons: Sequence[Mapping[str, Any]] = ()


NAMES = tuple(field.name for field in dataclasses.fields(PrimitiveFields))


def working_copy(row: Primitive) -> PrimitiveFields:
    """The fields of a row."""
    values = {name: getattr(row, name) for name in NAMES}
    return PrimitiveFields(**{**values, "sort": Sort(row.sort)})


def changed(before: PrimitiveFields, after: PrimitiveFields) -> list[str]:
    """The names of the fields that differ, in their order."""
    return [name for name in NAMES if getattr(before, name) != getattr(after, name)]


def snapshot(fields: PrimitiveFields) -> dict[str, Any]:
    """The operators' part of a publication, which decides what is served."""
    return {
        "kind": fields.kind,
        "config": dict(fields.config),
        **{name: getattr(fields, name) for name in OVERRIDES},
    }


def code(compiled: Compiled) -> dict[str, Any]:
    """The code's part of a publication, for the history.

    What is served of it is what the code says today, because that is what will run.
    """
    return {
        "title": compiled.title,
        "description": compiled.description,
        "input_schema": compiled.input_schema,
        "output_schema": compiled.output_schema,
        "annotations": dict(compiled.annotations),
        "author_version": compiled.author_version,
    }
