"""Tests of the arguments of an HTTP tool as rows of a form: the schema is read into rows and written again."""

from typing import Any

import pytest

from mcphost.console.forms.argument_rows import (
    NoRowsError,
    accepts_more,
    argument_rows,
    is_same,
    rows_of,
)

OF_EACH_TYPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where.\nOr near there.", "examples": ["Bern"]},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "days": {"type": "integer", "enum": [1, 3], "default": 3, "examples": [1]},
        "share": {"type": "number", "default": 0.5},
        "exact": {"type": "boolean", "default": False, "examples": [True]},
        "since": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "points": {"type": "array", "items": {"type": "number"}, "default": [1, 2.5]},
        "photo": {"type": "string", "contentEncoding": "base64"},
        "more": {"type": "object", "examples": [{"a": [1]}]},
        "odd name.": {"type": "string"},
    },
    "required": ["share", "city"],
    "additionalProperties": False,
}


def of_one(property_: Any, **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": property_}, "required": [], **root}


def rewritten(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a browser's form writes with the rows of a schema."""
    sent = {
        f"arguments-{number}-{field}": value
        for number, row in enumerate(rows_of(schema))
        for field, value in row.items()
        if value is not False
    }
    rows = argument_rows((sent, {}), ())
    assert rows.is_valid()
    return rows.schema(accepts_more=accepts_more(schema))


@pytest.mark.parametrize(
    "schema",
    [
        OF_EACH_TYPE,
        {**OF_EACH_TYPE, "required": []},
        of_one({"type": "string"}),
        {"type": "object"},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    ],
)
def test_a_schema_that_is_read_and_written_again_is_equal(schema: dict[str, Any]) -> None:
    written = rewritten(schema)
    assert is_same(written, schema)
    assert list(written["properties"]) == list(schema.get("properties", {}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (of_one({"type": "string"}, anyOf=[{}]), '"anyOf"'),
        (of_one({"type": "string"}, additionalProperties=True), "additionalProperties"),
        ({"type": "array"}, "object"),
        ({"type": "object", "required": ["a"]}, "does not describe"),
        (of_one(True), "'a' has no type"),
        (of_one({"type": "string", "pattern": "x"}), "'a' has \"pattern\""),
        (of_one({"type": ["string", "null"]}), "type that fields cannot show"),
        (of_one({"type": "string", "format": "email"}), "values that fields cannot show"),
        (of_one({"type": "integer", "default": "3"}), "values that fields cannot show"),
        (of_one({"type": "boolean", "default": 1}), "values that fields cannot show"),
        (of_one({"type": "string", "enum": [" a"]}), "values that fields cannot show"),
        (of_one({"type": "string", "examples": ["a", "b"]}), "values that fields cannot show"),
        ({"type": "object", "properties": {'"': {"type": "string"}}}, "fields cannot show"),
        ({"type": "object", "properties": {"": {"type": "string"}}}, "fields cannot show"),
    ],
)
def test_a_schema_that_rows_would_change_has_none_and_the_reason_names_the_place(
    schema: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NoRowsError, match=reason):
        rows_of(schema)


def test_each_wrong_value_is_marked_at_its_field() -> None:
    wrong = [
        {"name": "a", "type": "integer", "choices": "1\nx", "default": "y", "example": "1.5"},
        {"name": "b", "type": "boolean", "choices": "true", "default": "yes"},
        {"name": "c", "type": "texts", "default": "a", "example": "{}"},
        {"name": "a"},
        {"name": "{a}"},
        {"description": "Of what?"},
    ]
    sent = {
        f"arguments-{number}-{field}": value
        for number, row in enumerate(wrong)
        for field, value in row.items()
    }
    rows = argument_rows((sent, {}), ())
    assert not rows.is_valid()
    assert [set(row.errors) for row in rows.filled] == [
        {"choices", "default", "example"},
        {"choices", "default"},
        {"default", "example"},
        {"name"},
        {"name"},
        {"name"},
    ]
