"""Tests of the schemas that a tool may register."""

import socket
from datetime import UTC, datetime

import jsonschema_rs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcphost.protocol.schemas import SchemaProblem, check_schema, is_recursive, param_headers
from tests.protocol.registered import CONFORMANCE, DRAFT_2020, having, of, problem, problems

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# --- valid schemas ---


@pytest.mark.requirement("schema.dialect-2020-12")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": False},
        CONFORMANCE,
        of(**{"$schema": DRAFT_2020 + "#"}),
        of(
            **{"$schema": DRAFT_7},
            definitions={"a": {}},
            properties={"a": {"$ref": "#/definitions/a"}},
        ),
        of(
            **{"$id": "https://example.com/tool"},
            properties={"a": {"$ref": "#/properties/b"}, "b": {}},
        ),
        having(tree={"$ref": "#"}),
        having(ä={"type": "string"}, b={"$ref": "#/properties/%C3%A4"}),
        having(**{"$ref": {"type": "string"}, "$id": {"type": "string"}, "x-mcp-header": {}}),
        having(a=True, b=False),
        of(examples=[{"$schema": "x"}]),
    ],
)
def test_a_legal_schema_has_no_problems(schema):
    assert problems(schema) == ()


@pytest.mark.parametrize("schema", [{"type": "array", "items": {}}, {"type": "string"}, {}])
def test_an_output_schema_may_allow_any_json(schema):
    assert check_schema(schema, role="output") == ()


@pytest.mark.requirement("tools.input-schema")
@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": ["object", "null"]}])
def test_an_input_schema_must_be_of_type_object(schema):
    assert problem(schema).path == "/type"


# --- not a schema ---


@pytest.mark.parametrize("schema", [None, [], 5])
def test_a_schema_must_be_an_object(schema):
    assert problem(schema) == SchemaProblem("", "The schema must be a JSON object")


CYCLE: dict = {"type": "object"}
CYCLE["not"] = CYCLE


@pytest.mark.parametrize(
    "schema",
    [
        {1: 2},
        of(default=object()),
        of(default=datetime(2026, 1, 1, tzinfo=UTC)),
        of(maximum=2**64),
        of(title="\ud800"),
        CYCLE,
    ],
    ids=["key", "object", "date", "integer", "surrogate", "cycle"],
)
def test_a_schema_must_be_valid_json(schema):
    found = problem(schema)
    assert found.path == ""
    assert found.message.startswith("The schema is not JSON: ")


@pytest.mark.requirement("schema.other-dialects")
@pytest.mark.parametrize(
    "dialect",
    [
        "http://json-schema.org/draft-04/schema#",
        "https://example.com/mine",
        5,
    ],
)
def test_an_unsupported_dialect_is_refused_with_the_supported_ones(dialect):
    found = problem(of(**{"$schema": dialect}))
    assert found.path == "/$schema"
    assert DRAFT_2020 in found.message
    assert DRAFT_7.rstrip("#") in found.message


@pytest.mark.requirement("schema.valid")
@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (having(a={"type": "text"}), "/properties/a/type"),
        (having(**{"a/b": {"minLength": -1}}), "/properties/a~1b/minLength"),
        (of(**{"$schema": DRAFT_7}, definitions={"a": {"type": 3}}), "/definitions/a/type"),
        (of(**{"$anchor": "1"}), "/$anchor"),
        (having(a={"pattern": "(?=a)b"}), "/properties/a/pattern"),
        (having(a={"pattern": "(?:a{1000}){1000}"}), "/properties/a/pattern"),
        (of(**{"$id": "http://[bad"}), ""),
    ],
)
def test_a_schema_that_is_invalid_for_its_dialect_is_refused_with_the_path(schema, path):
    assert problem(schema).path == path


# --- bounds ---


def test_a_long_problem_message_is_truncated():
    assert len(problem(having(a={"minLength": "x" * 5000})).message) < 310


def chained(depth: int) -> dict:
    schema: dict = {"type": "object"}
    for _ in range(depth - 1):
        schema = having(a=schema)
    return schema


@pytest.mark.requirement("schema.bounded")
def test_subschemas_are_nested_at_most_32_deep():
    assert problems(chained(32)) == ()
    assert "deeper than 32" in problem(chained(33)).message


def test_values_are_nested_at_most_80_deep():
    default: list = []
    for _ in range(78):
        default = [default]
    assert problems(of(default=default)) == ()
    assert "deeper than 80" in problem(of(default=[default])).message


@pytest.mark.requirement("schema.bounded")
def test_a_schema_has_at_most_64_kib():
    assert problems(of(description="x" * 65_000)) == ()
    assert "bytes" in problem(of(description="x" * 65_536)).message


@pytest.mark.requirement("schema.bounded")
def test_a_schema_has_at_most_2000_subschemas():
    many = [True] * 1999
    assert problems(of(anyOf=many)) == ()
    assert "2001 subschemas" in problem(of(anyOf=[*many, True])).message


def test_a_schema_has_at_most_500_references():
    many = [{"$ref": "#/$defs/a"}] * 500
    assert problems(of(**{"$defs": {"a": {}}}, anyOf=many)) == ()
    assert "501 references" in problem(of(**{"$defs": {"a": {}}}, anyOf=[*many, *many[:1]])).message


def doubled(times: int) -> dict:
    """Return a schema whose references, written out, are two to the power of `times`."""
    defs = {f"a{step}": {"allOf": [{"$ref": f"#/$defs/a{step + 1}"}] * 2} for step in range(times)}
    return of(**{"$defs": {**defs, f"a{times}": {}}, "$ref": "#/$defs/a0"})


def test_references_that_expand_exponentially_are_refused():
    assert problems(doubled(8)) == ()
    assert "written out" in problem(doubled(60)).message


# --- references ---


@pytest.mark.requirement("schema.no-network-reference")
@pytest.mark.parametrize(
    "reference",
    [
        "https://example.com/a",
        "file:///etc/passwd",
        "//example.com",
        "",
    ],
)
@pytest.mark.parametrize(
    "keyword",
    [
        "$ref",
    ],
)
def test_a_reference_out_of_the_schema_is_refused(keyword, reference):
    found = problem(having(a={keyword: reference}))
    assert found.path == f"/properties/a/{keyword}"
    assert "nothing is fetched" in found.message


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/none",
        "#nowhere",
        "#/type",
        "#/x-own/a",
        "#/allOf/1",
    ],
)
def test_a_reference_that_leads_to_no_schema_is_refused(reference):
    schema = of(properties={"a": {"$ref": reference}}, allOf=[{}], **{"x-own": {"a": {}}})
    assert "does not refer to a schema" in problem(schema).message


@pytest.mark.parametrize("keyword", ["$id", "$schema"])
def test_a_nested_schema_cannot_be_a_separate_document(keyword):
    found = problem(having(a={keyword: DRAFT_2020}))
    assert found == SchemaProblem(
        f"/properties/a/{keyword}", f"{keyword} may stand at the root only"
    )


def test_an_anchor_name_is_unique():
    schema = of(**{"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}})
    assert problem(schema).path == "/$defs/b/$dynamicAnchor"


@pytest.mark.parametrize(
    "schema",
    [
        of(**{"$ref": "#"}),
        of(**{"not": {"anyOf": [{"$ref": "#"}]}}),
        of(**{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        of(dependentSchemas={"a": {"$ref": "#"}}),
    ],
)
def test_a_schema_that_refers_to_itself_for_the_same_value_is_refused(schema):
    assert "infinite recursion" in problem(schema).message


@pytest.mark.parametrize(
    ("schema", "recursive"),
    [
        ({"type": "object"}, False),
        (doubled(8), False),
        (having(tree={"$ref": "#"}), True),
        (of(**{"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}), True),
        (of(**{"$defs": {"a": {"items": {"$dynamicRef": "#n"}, "$dynamicAnchor": "n"}}}), True),
    ],
)
def test_a_schema_that_refers_back_to_itself_is_recursive(schema, recursive):
    assert problems(schema) == ()
    assert is_recursive(schema) is recursive


@pytest.mark.requirement("schema.no-network-reference")
def test_checking_a_schema_opens_no_network_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}/a"
        for keyword in ("$schema", "$ref", "$dynamicRef", "$id"):
            problems(of(**{keyword: uri}))
            problems(having(a={keyword: uri}))
        problems(of(**{"$id": uri, "$ref": "b"}))
        with pytest.raises(BlockingIOError):
            server.accept()


# --- arbitrary values ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS = [
    *("type", "properties", "items", "prefixItems", "allOf", "anyOf", "not", "if", "then", "$ref"),
    *("$defs", "definitions", "dependencies", "$anchor", "$dynamicRef", "$dynamicAnchor", "$id"),
    *("$schema", "x-mcp-header", "enum", "pattern", "required", "patternProperties", "const"),
]
VALUES = st.sampled_from(
    ["object", "string", "#", "#/$defs/a", "#a", "a", "(", DRAFT_7, DRAFT_2020]
)
SCHEMAS = st.recursive(
    st.booleans() | st.just({}) | JSON,
    lambda inner: st.dictionaries(
        st.sampled_from(KEYWORDS),
        VALUES | inner | st.lists(inner, max_size=2) | st.dictionaries(st.just("a"), inner),
        max_size=4,
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(SCHEMAS)
@example({"type": "object", "$ref": "#/\ud800"})
@example({"type": "object", "$ref": "#%ff"})
def test_any_schema_is_accepted_or_refused_without_an_exception(schema):
    for role in ("input", "output"):
        found = check_schema(schema, role=role)
        assert all(isinstance(each, SchemaProblem) and each.message for each in found)
        if not found:
            jsonschema_rs.validator_for(schema, offline=True).is_valid({})
    if not check_schema(schema, role="input"):
        assert isinstance(param_headers(schema), tuple)
