"""The schema of a pydantic model, as flat as forms require (spec: client/elicitation).

What a form can express in another way is converted: enums are written out, optional fields are left
out of `required`, an exclusive bound of an integer becomes an inclusive one. Everything else stays
as it is, for `mcphost.protocol.forms` to refuse.
"""

from collections.abc import Mapping
from math import ceil, floor
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

_NULLABLE: Final = "nullable"
"""Marks a field that may be None, between the generator and `flat_schema`."""

Node = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without generated titles and class names, and without null."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return {**self.generate_inner(schema["schema"]), _NULLABLE: True}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        json = super().default_schema(schema)
        return {name: v for name, v in json.items() if name != "default" or v is not None}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        json = super().decimal_schema(schema)
        return next(
            (
                alternative
                for alternative in json.get("anyOf", ())
                if alternative["type"] == "number"
            ),
            json,
        )


def flat_schema(model: type[BaseModel]) -> tuple[Node, tuple[str, ...]]:
    """Return the `requestedSchema` of a model, and the fields that are None if they are missing.

    Raises pydantic's error for a model without a schema.
    """
    json = model.model_json_schema(schema_generator=_Generator)
    fields = {
        name: _written_out(field, json.get("$defs", {}))
        for name, field in json.get("properties", {}).items()
    }
    optional = {name for name, field in fields.items() if field.pop(_NULLABLE, False)}
    required = [name for name in json.get("required", ()) if name not in optional]
    empty = tuple(name for name in json.get("required", ()) if name in optional)
    schema = {"type": json.get("type"), "properties": fields}
    return ({**schema, "required": required} if required else schema), empty


def _written_out(field: Node, definitions: Mapping[str, Node]) -> Node:
    """Convert a field, or the items of one: no references, constants, sets and decimals."""
    for _ in definitions:
        if "$ref" in field:
            node = definitions.get(field["$ref"].removeprefix("#/$defs/"), {})
            if "enum" in node:  # the name and the docstring of an enum are for its author only
                node = _without(_without(node, "title"), "description")
            field = {**node, **_without(field, "$ref")}
    match field:
        case {"type": "string", "const": str(value)}:
            return {**_without(field, "const"), "enum": [value]}
        case {"anyOf": [*choices]} if all(
            choice.get("type") == "string" and ("const" in choice or "enum" in choice)
            for choice in choices
        ):
            return {"type": "string", **_without(field, "anyOf"), **_options(choices)}
        case {"type": "number", "default": str(default)}:
            return {**field, "default": float(default)}
        case {"type": "integer"}:
            return _bounded(field)
        case {"type": "array", "items": dict(items)}:
            items = _written_out(items, definitions)
            if "oneOf" in items:  # here it is `anyOf`, without a type
                items = {"anyOf": items["oneOf"], **_without(_without(items, "oneOf"), "type")}
            return {**_ordered(field), "items": items}
        case _:
            return dict(field)


def _options(choices: list[Node]) -> Node:
    """Merge choices into one list: with titles if any has one (`Annotated[Literal["a"],
    Field(title=…)]`)."""
    values = [(v, c.get("title", v)) for c in choices for v in c.get("enum", [c.get("const")])]
    if any("title" in choice for choice in choices):
        return {"oneOf": [{"const": value, "title": title} for value, title in values]}
    return {"enum": [value for value, _ in values]}


def _ordered(field: Node) -> Node:
    """Sort the default of a set, so that it is the same in every process."""
    if not field.get("uniqueItems"):
        return dict(field)
    default = {"default": sorted(field["default"], key=str)} if "default" in field else {}
    return {**_without(field, "uniqueItems"), **default}


def _bounded(field: Node) -> Node:
    """Make exclusive bounds of an integer inclusive: above 2 means at least 3."""
    bounds = dict(field)
    if "exclusiveMinimum" in bounds:
        bounds["minimum"] = floor(bounds.pop("exclusiveMinimum")) + 1
    if "exclusiveMaximum" in bounds:
        bounds["maximum"] = ceil(bounds.pop("exclusiveMaximum")) - 1
    return bounds


def _without(node: Node, name: str) -> Node:
    return {key: value for key, value in node.items() if key != name}
