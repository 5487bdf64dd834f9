"""The validator names the field, quotes no value, fetches nothing and never raises."""

from typing import Any

import pytest

from mcphost.runtime.schema import MAX_PROBLEMS, ArgumentProblem, UnusableSchemaError, Validator

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "fields": {
            "type": "object",
            "properties": {"System": {"type": "object", "required": ["State"]}},
            "unevaluatedProperties": False,
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
NO_FIELDS = {"properties": {"a": {"additionalProperties": False}}}


def paths(schema: Any, value: Any) -> list[str]:
    return [problem.path for problem in Validator(schema).problems(value)]


@pytest.mark.parametrize(
    ("schema", "value", "problems"),
    [
        (PERSON, {}, ["name: is required"]),
        (PERSON, {"name": "Ada", "fields": {"System": {}}}, ["fields.System.State: is required"]),
        (PERSON, {"name": "Ada", "tags": ["x", 1]}, ['tags.1: is not of type "string"']),
        (PERSON, {"name": "Ada", "fields": {"x": 1}}, ["fields.x: is not expected"]),
        (PERSON, [], ['is not of type "object"']),
        (NO_FIELDS, {"a": {"b": 1}}, ["a: holds a field that is not expected"]),
    ],
)
def test_a_problem_names_its_field_by_its_path(schema: Any, value: Any, problems: list[str]):
    assert list(map(str, Validator(schema).problems(value))) == problems


def test_a_problem_never_quotes_the_value() -> None:
    schema = {"properties": {"pin": {"type": "integer", "minimum": 5}, "kind": {"enum": ["a"]}}}
    problems = Validator(schema).problems({"pin": "hunter2", "kind": "hunter2"})
    assert len(problems) == 2
    assert "hunter2" not in str(problems)


def test_at_most_twenty_problems_are_reported() -> None:
    assert len(paths({"items": {"type": "string"}}, [1] * 1000)) == MAX_PROBLEMS


@pytest.mark.parametrize("value", [{"a": b"bytes"}, {1: 2}])
def test_a_value_that_is_not_json_is_a_problem_and_not_an_exception(value: Any) -> None:
    assert Validator({"properties": {"a": {"type": "string"}}}).problems(value) == (
        ArgumentProblem("", "is not JSON"),
    )


@pytest.mark.requirement("schema.other-dialects")
def test_draft_07_schemas_are_validated_by_draft_07_rules() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
    assert paths(schema, [1]) == ["0"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://example.com/own"},
        {"const": object()},
        {"properties": {"x": 5}},
    ],
)
def test_an_invalid_schema_is_refused_when_it_is_compiled(schema: Any) -> None:
    with pytest.raises(UnusableSchemaError):
        Validator(schema)


@pytest.mark.requirement("schema.no-network-reference")
@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x.json", "file:///etc/passwd"])
def test_remote_references_are_never_fetched(reference: str) -> None:
    with pytest.raises(UnusableSchemaError, match="disabled") as caught:
        Validator({"$ref": reference})
    assert "root:" not in str(caught.value)


def test_a_catastrophic_pattern_runs_in_linear_time() -> None:
    assert paths({"type": "string", "pattern": "^(a+)+$"}, "a" * 50_000 + "!") == [""]


TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "anyOf": [
                {"type": "object", "properties": {"all": {"$ref": "#/$defs/node"}}},
                {"type": "object", "properties": {"any": {"$ref": "#/$defs/node"}}},
                {"type": "string"},
            ]
        }
    },
}


def _tree(depth: int) -> dict[str, object]:
    """Return a tree with a number at the end, which neither `all` nor `any` allows."""
    node: object = 5
    for _ in range(depth):
        node = {"all": node, "any": node}
    return {"tree": node}


def test_a_shallow_misfit_of_a_recursive_schema_is_named_in_the_problem() -> None:
    assert [problem.path for problem in Validator(TREE).problems(_tree(1))] == ["tree"]


def test_a_deep_misfit_of_a_recursive_schema_is_reported_as_one_problem() -> None:
    assert Validator(TREE).problems(_tree(24)) == (ArgumentProblem("", "does not fit the schema"),)
    assert Validator(TREE).problems({"tree": [[[[[[5]]]]]]}) != ()
