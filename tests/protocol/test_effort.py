"""Tests of the cost of schemas, and of the limit on the size of arguments."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.effort import (
    EXPLAINED_BYTES,
    FREE,
    effort_of,
    is_explained,
    pattern_effort,
)

MEBIBYTE = 1 << 20
INTEGER = {"type": "integer"}


def many(schema: Any) -> dict[str, Any]:
    """Return a schema of arguments with a list of values of the schema."""
    return {"type": "object", "properties": {"list": {"type": "array", "items": schema}}}


def factor(schema: Any) -> float:
    return effort_of(schema).factor


CHEAP: dict[str, Any] = {
    "anything": True,
    "nothing": False,
    "plain": many(INTEGER),
    "one number of many steps": {"properties": {"one": {"multipleOf": 0.01}}},
    "a list of different things": many(INTEGER) | {"properties": {"list": {"uniqueItems": True}}},
    "a date": many({"pattern": r"^\d{4}-\d{2}-\d{2}$"}),
    "fields": many({"properties": {f"p{n}": INTEGER for n in range(100)}}),
    "a tree": {
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "anyOf": [
                    {"properties": {"all": {"items": {"$ref": "#/$defs/node"}}}},
                    {"properties": {"any": {"items": {"$ref": "#/$defs/node"}}}},
                ]
            }
        },
    },
}
"""Schemas whose arguments may fill the body."""

DEAR: dict[str, Any] = {
    "six alternatives": many({"anyOf": [INTEGER] * 6}),
    "alternatives within alternatives": many({"anyOf": [{"oneOf": [INTEGER] * 3}] * 2}),
    "alternatives of parts": many({"anyOf": [{"properties": {"a": {"anyOf": [INTEGER] * 3}}}] * 3}),
    "names of alternatives": {"propertyNames": {"anyOf": [INTEGER] * 6}},
    "alternatives by reference": {
        **many({"anyOf": [{"$ref": "#/$defs/a"}] * 4}),
        "$defs": {"a": {"allOf": [INTEGER, {"minimum": 1}]}},
    },
    "steps": many({"multipleOf": 0.01}),
    "bounds with fractions": many({"minimum": 0.5}),
    "choices of whole numbers": many({"enum": list(range(10))}),
    "a constant number": many({"const": 0.5}),
    "dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **many({"dependencies": {f"p{n}": ["a"] for n in range(100)}}),
    },
    "choices of objects": many({"enum": [{"a": n} for n in range(10)]}),
    "mixed choices": many({"enum": [*map(str, range(40)), None]}),
    "names by pattern": {"patternProperties": {f"^a{n}": INTEGER for n in range(10)}},
    "other properties of alternatives": {
        "properties": {"a": True},
        "additionalProperties": {"anyOf": [INTEGER] * 6},
    },
    "a tree of alternatives": {
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {"anyOf": [INTEGER] * 6, "properties": {"next": {"$ref": "#/$defs/node"}}}
        },
    },
    "unevaluated": many(
        {
            "anyOf": [{"properties": {"a": INTEGER}}] * 4,
            "unevaluatedItems": True,
            "unevaluatedProperties": True,
        }
    ),
    "a long text of a large pattern": {"properties": {"a": {"pattern": r"\p{L}{1,200}$"}}},
}
"""Schemas whose arguments must be smaller."""


@pytest.mark.parametrize("schema", CHEAP.values(), ids=CHEAP)
def test_arguments_of_a_cheap_schema_may_fill_the_body(schema: Any) -> None:
    assert factor(schema) <= FREE
    assert effort_of(schema).limit(MEBIBYTE) == MEBIBYTE


@pytest.mark.parametrize("schema", DEAR.values(), ids=DEAR)
def test_arguments_of_an_expensive_schema_must_be_proportionally_smaller(schema: Any) -> None:
    effort = effort_of(schema)
    assert effort.factor > FREE
    assert effort.limit(MEBIBYTE) == int(MEBIBYTE * FREE / effort.factor)


@pytest.mark.parametrize(
    "keywords",
    [
        {"uniqueItems": True},
        {"unevaluatedItems": False},
        {"patternProperties": {"^a": True}},
        {"pattern": r"\p{L}{1,200}$"},
        {"enum": [{}]},
        {"const": []},
        {"enum": ["a", None]},
        {"enum": [1]},
        {"const": 1},
        {"maximum": 0.5},
        {"dependentRequired": {"a": ["b"]}},
        {"multipleOf": 2},
        {"multipleOf": 0.01},
        {"anyOf": [True, True]},
    ],
    ids=lambda keywords: next(iter(keywords)),
)
def test_each_expensive_keyword_adds_to_the_cost_of_a_schema(keywords: Any) -> None:
    """Otherwise many of it, in a list of many values, would cost more than the size of the body says."""
    plain, dear = factor(many({})), factor(many({"allOf": [keywords] * 100}))
    assert dear > factor(many({"allOf": [{}] * 100})) + 20 * plain


def test_a_schema_too_large_to_estimate_gets_the_highest_cost() -> None:
    levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 3} for n in range(12)}
    schema = {**many({"$ref": "#/$defs/l0"}), "$defs": {**levels, "l12": INTEGER}}
    assert effort_of(schema).limit(MEBIBYTE) < 2_000


# --- patterns ---


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "a", "abc|def", "(a|b)+", r"^[\w.]+@[\w.]+$", "a*b?", "[)(]{3}"),
        *(r"^\d{4}-\d{2}-\d{2}$", r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
        *("^[a-z]{1,200}$", r"^\p{L}{1,200}$", "[0-9a-f]{64}", r"^[\w.]+@[\w.]+\.[a-z]{2,10}$"),
        *(")", "{3}", r"\{900}", "[{900}]", "a{,3}"),
    ],
)
def test_a_common_pattern_is_cheap(pattern: str) -> None:
    assert pattern_effort(pattern) <= 2


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\p{L}{1,200}$", r"\PL{100}", ".{1000}[xy]", "(a|b|c){500}x", "((a{10}){10}){10}"),
        *("^[ab]*a[ab]{30}$", "^[ab]+a[ab]{30}$", "^(a{2,}b){30}$"),
        *("[ab]*a" + "[ab]" * 70, "|".join(f"{n:b}[01]*x" for n in range(70))),
    ],
)
def test_a_pattern_that_expands_to_much_is_expensive(pattern: str) -> None:
    assert pattern_effort(pattern) > 100


@given(st.text(alphabet="ab(){}[]\\pL0123,*+?|^$."))
def test_any_text_has_a_cost_as_a_pattern(pattern: str) -> None:
    assert pattern_effort(pattern) >= 2


# --- what is explained ---


def test_values_above_64_kib_are_not_explained() -> None:
    assert is_explained("a" * (EXPLAINED_BYTES - 2))
    assert not is_explained("a" * (EXPLAINED_BYTES - 1))
