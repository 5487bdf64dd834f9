"""Tests of the headers that a tool's input schema may ask for."""

import pytest

from mcphost.protocol.schemas import ParamHeader, param_headers
from tests.protocol.registered import having, of, problem, problems


def mirrored(name="Region", **keywords) -> dict:
    return {"type": "string", "x-mcp-header": name, **keywords}


def test_the_param_headers_of_a_schema_are_collected_with_their_paths():
    schema = having(
        region=mirrored(),
        count=mirrored("Count", type="integer"),
        nested=having(flag=mirrored("X-Flag.1", type="boolean")),
    )
    assert problems(schema) == ()
    assert param_headers(schema) == (
        ParamHeader(("region",), "Region", "string"),
        ParamHeader(("count",), "Count", "integer"),
        ParamHeader(("nested", "flag"), "X-Flag.1", "boolean"),
    )


@pytest.mark.requirement("headers.annotation-legal")
@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "a\r\nb",
        "é",
        "a\n",
        5,
        None,
    ],
)
def test_a_header_name_is_a_token(name):
    found = problem(having(a=mirrored(name)))
    assert found.path == "/properties/a/x-mcp-header"
    assert "header name" in found.message


@pytest.mark.requirement("headers.annotation-legal")
def test_header_names_are_unique_regardless_of_case():
    found = problem(having(a=mirrored("Region"), b=mirrored("rEGION")))
    assert found.path == "/properties/b/x-mcp-header"
    assert "is used twice" in found.message


@pytest.mark.requirement("headers.annotation-legal")
@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", ["string", "null"], ["string"], ["a"]]
)
def test_only_primitive_types_are_mirrored(kind):
    assert problems(having(a={"type": kind, "x-mcp-header": "A"}))


@pytest.mark.requirement("headers.annotation-legal")
@pytest.mark.parametrize(
    "schema",
    [
        of(**{"x-mcp-header": "A"}),
        of(items=mirrored()),
        of(additionalProperties=mirrored()),
        having(a={"type": "array", "items": mirrored()}),
        of(allOf=[having(a=mirrored())]),
        of(**{"not": having(a=mirrored())}),
        of(**{"else": having(a=mirrored())}),
        of(dependentSchemas={"b": having(a=mirrored())}),
        of(**{"$defs": {"a": mirrored()}}, properties={"a": {"$ref": "#/$defs/a"}}),
    ],
)
def test_only_arguments_reached_through_properties_alone_are_mirrored(schema):
    found = problem(schema)
    assert found.path.endswith("/x-mcp-header")
    assert "`properties` alone" in found.message


@pytest.mark.requirement("headers.annotation-secret")
@pytest.mark.parametrize(
    "schema",
    [
        having(api_key=mirrored()),
        having(value=mirrored(title="Your password")),
        having(value=mirrored(format="password")),
        having(value=mirrored(writeOnly=True)),
    ],
)
def test_an_argument_with_a_secret_name_is_not_mirrored(schema):
    assert "secret" in problem(schema).message


@pytest.mark.parametrize("name", ["max_tokens", "tokenizer", "pinned"])
def test_an_argument_with_a_harmless_name_is_mirrored(name):
    assert problems(having(**{name: mirrored()})) == ()
