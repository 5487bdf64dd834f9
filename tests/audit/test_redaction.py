"""Values that are secret by schema or by path never reach a record."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.audit import redaction
from mcphost.audit.redaction import REDACTED, BadPathError, Redactor, compile

SECRET = {"type": "string", "writeOnly": True}
PASSWORD = {"type": "string", "format": "password"}


def properties(**named: Any) -> dict[str, Any]:
    return {"type": "object", "properties": named}


@pytest.mark.parametrize("secret", [SECRET, PASSWORD])
@pytest.mark.parametrize(
    ("wrap", "value", "expected"),
    [
        (lambda s: properties(p=s), {"p": "x", "q": 1}, {"p": REDACTED, "q": 1}),
        (lambda s: properties(a=properties(p=s)), {"a": {"p": "x"}}, {"a": {"p": REDACTED}}),
        (lambda s: properties(a={"items": s}), {"a": ["x", "y"]}, {"a": [REDACTED] * 2}),
        (lambda s: properties(a={"prefixItems": [{}, s]}), {"a": ["x", "y"]}, {"a": [REDACTED] * 2}),
        (lambda s: properties(a={"contains": s}), {"a": ["x"]}, {"a": [REDACTED]}),
        (lambda s: {"additionalProperties": s}, {"a": "x"}, {"a": REDACTED}),
        (
            lambda s: {"properties": {"a": {}}, "additionalProperties": s},
            {"a": "x", "b": "y"},
            {"a": "x", "b": REDACTED},
        ),
        (lambda s: {"unevaluatedProperties": s}, {"a": "x"}, {"a": REDACTED}),
        (lambda s: {"patternProperties": {"^p": s}}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"allOf": [properties(p=s)]}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"anyOf": [{}, properties(p=s)]}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"oneOf": [properties(p=s), True]}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"if": {}, "then": properties(p=s)}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"else": properties(p=s)}, {"p": "x"}, {"p": REDACTED}),
        (lambda s: {"dependentSchemas": {"a": properties(p=s)}}, {"p": "x"}, {"p": REDACTED}),
        (
            lambda s: {**properties(p={"$ref": "#/$defs/s"}), "$defs": {"s": s}},
            {"p": "x"},
            {"p": REDACTED},
        ),
        (
            lambda s: {**properties(p={"$ref": "#/$defs/a~1b%20c/anyOf/0"}), "$defs": {"a/b c": {"anyOf": [s]}}},
            {"p": "x"},
            {"p": REDACTED},
        ),
        (
            lambda s: {**properties(p={"$ref": "#here"}), "$defs": {"s": [{"$anchor": "here", **s}]}},
            {"p": "x"},
            {"p": REDACTED},
        ),
        (
            lambda s: {**properties(p={"$dynamicRef": "#d"}), "$defs": {"s": {"$dynamicAnchor": "d", **s}}},
            {"p": "x"},
            {"p": REDACTED},
        ),
        (
            lambda s: {"properties": {"a": {}, "b": True}, "additionalProperties": s},
            {"a": 1, "b": 2, "c": 3},
            {"a": 1, "b": 2, "c": REDACTED},
        ),
        (
            lambda s: {"$ref": "#/$defs/s", "allOf": [{"$ref": "#/$defs/s"}], "$defs": {"s": properties(p=s)}},
            {"p": 1},
            {"p": REDACTED},
        ),
        (lambda s: s, "x", REDACTED),
    ],
)  # fmt: skip
def test_values_that_a_schema_marks_as_secret_are_redacted_at_any_depth(
    secret, wrap, value, expected
):
    before = copy.deepcopy(value)
    redactor = compile(wrap(secret))
    assert redactor.rules
    assert redactor.redact(value) == expected
    assert value == before, "the value itself is still needed, whole"


def test_a_recursive_schema_is_applied_at_every_depth_of_the_value() -> None:
    schema = properties(child={"$ref": "#"}, password=PASSWORD)
    value = {"password": "1", "child": {"child": {"password": "2", "name": "n"}}}
    assert compile(schema).redact(value) == {
        "password": REDACTED,
        "child": {"child": {"password": REDACTED, "name": "n"}},
    }
    assert not compile(properties(child={"$ref": "#"})).rules


@pytest.mark.parametrize(
    "reference",
    ["#/nowhere", "https://example.com/s", "#/$defs/list/7", "#/$defs/list/x", "#anchor", 7],
)
def test_a_value_whose_schema_reference_cannot_be_resolved_is_redacted(reference: Any) -> None:
    schema = {**properties(p={"$ref": reference}, q={}), "$defs": {"list": [{}]}}
    assert compile(schema).redact({"p": {"a": 1}, "q": 1}) == {"p": REDACTED, "q": 1}


def test_a_schema_too_large_to_read_redacts_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_MAX_NODES", 10)
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = properties(a=deep)
    assert compile(deep).redact({"a": 1}) == REDACTED
    wide = {**properties(p={"$ref": "#a"}), "$defs": {str(n): {} for n in range(20)}}
    assert compile(wide).redact({"p": 1}) == {"p": REDACTED}, "the anchor is not found"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("a", {"a": 1, "b": 2}, {"a": REDACTED, "b": 2}),
        ("a.b", {"a": {"b": 1, "c": 2}}, {"a": {"b": REDACTED, "c": 2}}),
        ("a.b[*].c", {"a": {"b": [{"c": 1, "d": 2}, 7]}}, {"a": {"b": [{"c": REDACTED, "d": 2}, 7]}}),
        ("[*]", [1, 2], [REDACTED, REDACTED]),
        ("[*][*]", [[1], 2], [[REDACTED], 2]),
        ("a.*", {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": REDACTED, "c": REDACTED}, "d": 3}),
        ("*.b", {"a": {"b": 1}}, {"a": {"b": REDACTED}}),
        ('["a.b"].c', {"a.b": {"c": 1}, "a": {"b": 2}}, {"a.b": {"c": REDACTED}, "a": {"b": 2}}),
        (r'a["\"[*]"]', {"a": {'"[*]': 1}}, {"a": {'"[*]': REDACTED}}),
        ("a", "no object", "no object"),
        ("a", [{"a": 1}], [{"a": 1}]),
        ("é ü", {"é ü": 1}, {"é ü": REDACTED}),
    ],
)  # fmt: skip
def test_values_at_a_path_are_redacted(path: str, value: Any, expected: Any) -> None:
    assert compile(None, [path]).redact(value) == expected


@pytest.mark.parametrize(
    "path", ["", ".", ".a", "a.", "a..b", "a[", "a[0]", 'a["b]', "a]", "a[**]"]
)
def test_a_malformed_redaction_path_is_refused(path: str) -> None:
    with pytest.raises(BadPathError):
        compile({}, ["fine", path])


def test_secrets_by_schema_and_by_path_are_both_redacted() -> None:
    redactor = compile(properties(a=SECRET), ["b", "c[*].d"])
    value = {"a": 1, "b": 2, "c": [{"d": 3}], "e": 4}
    assert redactor.redact(value) == {
        "a": REDACTED, "b": REDACTED, "c": [{"d": REDACTED}], "e": 4,
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abp"), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(JSON)
def test_every_secret_in_any_value_is_redacted_without_an_exception(value: Any) -> None:
    def without_p(node: Any) -> Any:
        if isinstance(node, dict):
            return {k: REDACTED if k == "p" else without_p(v) for k, v in node.items()}
        return [without_p(item) for item in node] if isinstance(node, list) else node

    everywhere = {
        "properties": {"p": SECRET},
        "additionalProperties": {"$ref": "#"},
        "items": {"$ref": "#"},
    }
    assert compile(everywhere).redact(value) == without_p(value)
    assert Redactor().redact(value) == value


@given(JSON)
def test_no_schema_makes_the_redactor_raise(schema: Any) -> None:
    compile(schema).redact({"a": [1, {"p": 1}]})
    compile({"properties": schema, "anyOf": schema, "$ref": schema}).redact({"a": [{"b": 1}]})
