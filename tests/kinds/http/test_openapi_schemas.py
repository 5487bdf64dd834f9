"""Schemas of OpenAPI documents: values that the service accepts are valid, and no keyword makes an
operation unusable."""

from typing import Any

import orjson
import pytest

from mcphost.kinds.http.configs import MAX_FIELDS
from mcphost.kinds.http.openapi import Operation, operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.protocol.clients import OfferedTool, client_warnings
from mcphost.protocol.schemas import MAX_BYTES
from mcphost.runtime.schema import Validator

REF = "#/components/schemas/"


def imported(schema: Any, version: str = "3.1.0", **schemas: Any) -> Operation:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    document = {
        "openapi": version,
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/a": {"post": {"requestBody": body}}},
        "components": {"schemas": schemas},
    }
    (found,) = operations(document)
    return found


def accepts(value: Any, schema: Any, version: str = "3.1.0", **schemas: Any) -> bool:
    found = imported(schema, version, **schemas)
    assert found.config is not None, found.problem
    assert client_warnings(OfferedTool("a", found.config["input_schema"])) == []
    return not Validator(found.config["input_schema"]).problems({"body": value})


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": "1"},
        {"maximum": True},
        {"multipleOf": 0},
        {"maxLength": -1},
        {"minItems": 1.5},
        {"enum": None},
        {"enum": []},
        {"examples": {"one": {"value": 1}}},
        {"required": True},
        {"required": ["a", "a"]},
        {"type": "file"},
        {"type": ["text"]},
        {"type": []},
        {"properties": []},
        {"items": "x"},
        {"allOf": []},
        {"anyOf": {}},
        {"oneOf": None},
        {"additionalProperties": "false"},
        {"patternProperties": {"^(.)\\1$": False}, "additionalProperties": False},
        {"pattern": 5},
        {"format": None},
        {"description": 5},
        {"title": ["a"]},
        {"default": 2**63},
        {"uniqueItems": "yes"},
        {"readOnly": "no"},
        {"dependentRequired": {"a": "b"}},
        {"dependencies": {"a": ["b"]}},
        {"$recursiveAnchor": True},
        {"$vocabulary": {}},
        {"unevaluatedProperties": "x"},
    ],
)
@pytest.mark.parametrize("value", [{"aa": 1}, ["x"], "abc", 7, None])
def test_an_unusable_keyword_of_a_schema_is_left_out(schema: Any, value: Any) -> None:
    assert accepts(value, schema)
    nested = {"type": "object", "properties": {"p": {"anyOf": [schema]}}}
    assert accepts({"p": value}, nested)


INNER = {"type": "object", "properties": {"id": {"$ref": f"{REF}Id"}}}


@pytest.mark.parametrize("keyword", ["definitions", "$defs"])
def test_references_below_definitions_are_followed(keyword: str) -> None:
    order = {
        "properties": {"i": {"$ref": f"{REF}Order/{keyword}/inner"}},
        keyword: {"inner": INNER},
    }
    schemas = {"Order": order, "Id": {"type": "string"}}
    assert accepts({"i": {"id": "x"}}, {"$ref": f"{REF}Order"}, **schemas)
    assert not accepts({"i": {"id": 1}}, {"$ref": f"{REF}Order"}, **schemas)


@pytest.mark.parametrize(
    "keyword", ["unevaluatedProperties", "additionalProperties", "propertyNames", "contains"]
)
def test_references_below_every_keyword_are_followed(keyword: str) -> None:
    found = imported({keyword: {"$ref": f"{REF}Id"}}, Id={"type": "string"})
    assert found.config is not None, found.problem
    assert found.config["input_schema"]["$defs"] == {"Id": {"type": "string"}}


@pytest.mark.parametrize(
    ("anchor", "reference"),
    [
        ({"$recursiveAnchor": True}, {"$recursiveRef": "#"}),
        ({"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}),
        ({"$anchor": "node"}, {"$ref": "#node"}),
        ({"$id": "https://example.com/node"}, {"$ref": "https://example.com/node"}),
        ({}, {"$ref": f"{REF}F"}),
    ],
)
def test_anchors_and_ids_are_followed(anchor: Any, reference: Any) -> None:
    node = {**anchor, "type": "object", "properties": {"and": {"items": reference}}}
    for schema in ({"$ref": f"{REF}F"}, {"properties": {"and": {"items": {"$ref": f"{REF}F"}}}}):
        assert accepts({"and": [{"and": []}]}, schema, F=node)
        assert not accepts({"and": [{"and": [1]}]}, schema, F=node)


def test_an_unknown_anchor_is_reported() -> None:
    assert "'#thing' refers to nothing" in imported({"$ref": "#thing"}).problem


def test_keywords_beside_a_reference_apply_in_3_1_and_not_in_3_0() -> None:
    schema = {"$ref": f"{REF}Name", "maxLength": 2}
    assert not accepts("abc", schema, "3.1.0", Name={"type": "string"})
    assert accepts("abc", schema, "3.0.3", Name={"type": "string"})


CAT = {"required": ["kind"], "properties": {"kind": {"type": "string"}, "lives": {}}}


@pytest.mark.parametrize("more", [{}, {"discriminator": {"propertyName": "kind"}}])
def test_a_value_that_fits_several_branches_is_left_to_the_service(more: Any) -> None:
    schema = {"oneOf": [{"$ref": f"{REF}Cat"}, {"$ref": f"{REF}Dog"}], **more}
    assert accepts({"kind": "cat"}, schema, Cat=CAT, Dog=CAT)
    assert not accepts({}, schema, Cat=CAT, Dog=CAT)
    both = {"anyOf": [{"type": "object"}], **schema}
    assert not accepts({}, both, Cat=CAT, Dog=CAT)


THING = {
    "type": "object",
    "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
}
NEEDS = {"required": ["id", "name"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"$ref": f"{REF}Thing"}, NEEDS]},
        {"allOf": [NEEDS, {"$ref": f"{REF}Thing"}]},
        {"allOf": [{"$ref": f"{REF}Needs"}, {"$ref": f"{REF}Thing"}]},
        {**THING, "allOf": [{"$ref": f"{REF}Needs"}]},
        {**NEEDS, "allOf": [{"allOf": [{"$ref": f"{REF}Thing"}]}]},
        {"$ref": f"{REF}Both"},
        {**THING, **NEEDS},
    ],
)
def test_a_read_only_property_is_not_required_wherever_it_is_declared(schema: Any) -> None:
    schemas = {"Thing": THING, "Needs": NEEDS, "Both": {"allOf": [THING, {"$ref": f"{REF}Needs"}]}}
    assert accepts({"name": "x"}, schema, **schemas)
    assert not accepts({}, schema, **schemas)


@pytest.mark.parametrize("kind", ["array", ["array", "null"]])
def test_an_array_without_items_gets_items(kind: Any) -> None:
    found = imported({"properties": {"a": {"type": kind}}, "type": "object"})
    assert found.config is not None
    inner = found.config["input_schema"]["properties"]["body"]["properties"]["a"]
    assert inner == {"type": kind, "items": {}} or inner["items"] == {}


def test_enum_values_of_a_string_are_strings_even_if_yaml_reads_other_types() -> None:
    schema = {"type": "string", "enum": [True, "off", 1, 1.5]}
    for value in ("true", "off", "1", "1.5"):
        assert accepts(value, schema)
    assert not accepts("on", schema)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"type": "string", "const": 1}, ["1"]),
        ({"type": ["string", "null"], "enum": [1, None, False]}, ["1", None, "false"]),
        ({"type": "integer", "enum": ["1", "-20"]}, [1, -20]),
        ({"type": "number", "const": "1.5"}, [1.5]),
        ({"type": "boolean", "enum": ["true", "false"]}, [True, False]),
        ({"type": ["integer", "string"], "enum": ["1", 2]}, ["1", 2]),
    ],
)
def test_choices_of_another_type_than_the_schema_says_become_values_of_it(
    schema: Any, values: list[Any]
) -> None:
    assert all(accepts(value, schema) for value in values)
    assert not accepts("other", schema)


def test_a_required_name_that_is_no_text_leaves_the_others_required() -> None:
    schema = {"type": "object", "required": ["a", True, 1]}
    assert accepts({"a": 1}, schema)
    assert not accepts({}, schema)


def test_a_schema_that_is_too_large_loses_its_deepest_descriptions_first() -> None:
    deep: Any = {"type": "string", "description": "d" * 40_000}
    for _ in range(6):
        deep = {"type": "object", "properties": {"p": deep}, "examples": ["e" * 8_000]}
    found = imported({"description": "kept", **deep})
    assert found.config is not None, found.problem
    assert len(orjson.dumps(found.config["input_schema"])) <= MAX_BYTES
    assert found.config["input_schema"]["properties"]["body"]["description"] == "kept"
    assert "descriptions and examples deep inside are left out" in found.notes[0]
    small = imported({"description": "d" * 1_000})
    assert small.config is not None
    assert small.notes == ()


def test_optional_parameters_beyond_the_limit_are_left_out_and_named() -> None:
    parameters = [
        {"name": f"p{number}", "in": "query", "required": number % 2 == 0, "schema": {}}
        for number in range(MAX_FIELDS + 2)
    ]
    document = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/a": {"get": {"parameters": parameters}}},
    }
    (found,) = operations(document)
    assert found.config is not None, found.problem
    assert len(found.config["input_schema"]["properties"]) == MAX_FIELDS
    assert found.notes == (
        f"Left out, for there are too many: p{MAX_FIELDS - 1}, p{MAX_FIELDS + 1}.",
    )
    for parameter in parameters:
        parameter["required"] = True
    (refused,) = operations(document)
    assert f"more than {MAX_FIELDS} parameters" in refused.problem


def test_supported_versions_are_read_and_others_are_named_in_the_error() -> None:
    def document(version: str) -> bytes:
        return orjson.dumps({"openapi": version, "paths": {}} if version else {"paths": {}})

    for version in ("3.0.4", "3.1.1", "3.2.0"):
        assert read(document(version))
    for version in ("4.0.0", "3.10.0", "3.3", "2.0"):
        with pytest.raises(OpenApiError, match=rf"version {version} is not supported"):
            read(document(version))
    with pytest.raises(OpenApiError, match="`openapi` is missing"):
        read(document(""))


YAML = """\
openapi: 3.1.0
servers: [{url: 'https://api.example.com'}]
paths:
  /lamp:
    post:
      operationId: on
      parameters:
        - {name: y, in: query, schema: {type: string, enum: [on, off, yes, No, 010, 0b1, 1_000]}}
        - {name: at, in: query, schema: {enum: [12:30, 2001-01-01, 09, 010, 0o17, 1e3, ~, ! 1]}}
"""


def test_yaml_words_and_numbers_follow_version_1_2() -> None:
    (found,) = operations(read(YAML.encode()))
    assert found.name == "on"
    assert found.config is not None
    properties = found.config["input_schema"]["properties"]
    assert properties["y"]["enum"] == ["on", "off", "yes", "No", "010", "0b1", "1_000"]
    assert properties["at"]["enum"] == ["12:30", "2001-01-01", 9, 10, 15, 1000.0, None, "1"]
