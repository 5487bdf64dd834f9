"""JSON Schemas as we want them from pydantic: plain, local, and without invented titles."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from mcphost.protocol.schemas import check_schema
from mcphost.runtime.schema import Validator


class SignatureError(Exception):
    """A function cannot be a tool as it is written; the message is for its author."""


class Plain(GenerateJsonSchema):
    """Pydantic's generator without a title per field, and without its pattern for decimals.

    That pattern looks ahead, which no linear-time engine can do; pydantic itself still reads the
    number.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        json = super().decimal_schema(schema)
        for choice in (json, *json.get("anyOf", ())):
            choice.pop("pattern", None)
        return json


def schema_of(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> dict[str, Any]:
    """The schema of what `adapter` reads ("validation") or writes ("serialization")."""
    return adapter.json_schema(mode=mode, schema_generator=Plain)


def input_validator(schema: Mapping[str, Any]) -> Validator:
    """Raises SignatureError if `schema` cannot be a tool's `inputSchema`."""
    problems = check_schema(schema, role="input")
    return _validator("input", schema, problems)


def output_validator(schema: Mapping[str, Any]) -> Validator:
    """Raises SignatureError if `schema` cannot be a tool's `outputSchema`."""
    problems = check_schema(schema, role="output")
    return _validator("output", schema, problems)


def _validator(which: str, schema: Mapping[str, Any], problems: tuple[Any, ...]) -> Validator:
    if problems:
        listed = "; ".join(f"{p.path or 'the root'}: {p.message}" for p in problems)
        raise SignatureError(f"the {which} schema is not legal: {listed}")
    return Validator(schema)
