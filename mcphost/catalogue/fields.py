"""The working copy of a primitive, as forms and commands pass it, and its published parts."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.catalogue.models import Primitive
from mcphost.catalogue.ordering import in_order, property_order
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
    `target_seconds` is how long people should need for an answer: it marks late requests in the
    console, and is not part of what is published, so that it holds at once.
    """

    name: str
    config: Mapping[str, Any]
    primitive_type: PrimitiveType = PrimitiveType.TOOL
    kind: str = "python"
    title: str = ""
    description: str = ""
    scopes: Sequence[str] = ()
    time_limit_seconds: float | None = None
    answer_within_seconds: float | None = None
    icons: Sequence[Mapping[str, Any]] = ()
    target_seconds: float | None = None


FIELD_NAMES = tuple(field.name for field in dataclasses.fields(PrimitiveFields))


def working_copy(row: Primitive) -> PrimitiveFields:
    """Return the fields of a row."""
    values = {name: getattr(row, name) for name in FIELD_NAMES}
    config = in_order(row.config, row.config_order)
    return PrimitiveFields(
        **{**values, "config": config, "primitive_type": PrimitiveType(row.primitive_type)}
    )


def fingerprint(fields: PrimitiveFields) -> str:
    """Return SHA-256 in hex of a working copy, by which an edit says what it is based on."""
    values = [(name, getattr(fields, name)) for name in FIELD_NAMES]
    values.append(("order", property_order(fields.config)))
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), default=list)
    return hashlib.sha256(text.encode()).hexdigest()


def changed(before: PrimitiveFields, after: PrimitiveFields) -> list[str]:
    """Return the names of the fields that differ, in their order."""
    return [
        name
        for name in FIELD_NAMES
        if getattr(before, name) != getattr(after, name)
        or (name == "config" and property_order(before.config) != property_order(after.config))
    ]


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
