"""Schemas that tools may register, and their problems."""

from typing import Any

from mcphost.protocol.schemas import SchemaProblem, check_schema

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

CONFORMANCE = {
    "$schema": DRAFT_2020,
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def of(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def having(**properties: Any) -> dict[str, Any]:
    return of(properties=properties)


def problems(schema: Any) -> tuple[SchemaProblem, ...]:
    return check_schema(schema, role="input")


def problem(schema: Any) -> SchemaProblem:
    found = problems(schema)
    assert len(found) == 1, found
    return found[0]
