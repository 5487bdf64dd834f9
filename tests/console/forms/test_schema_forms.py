"""Tests of forms that are drawn from a tool's input schema."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.console.forms.schema_forms import MAX_FIELDS, MAX_JSON, ArgumentsForm, form_of

MODE, TEXT = "arguments-mode", "arguments-json"


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def needing(**properties: Any) -> dict[str, Any]:
    return {**of(**properties), "required": list(properties)}


def posted(form: ArgumentsForm) -> QueryDict:
    """Return what a browser posts for a form as it is on the page."""
    data = QueryDict(mutable=True)
    for field in form.values:
        value = field.value()
        data.setlist(field.html_name, value if isinstance(value, list) else [value or ""])
    data[MODE] = form.chosen_mode
    return data


def sent(schema: Mapping[str, Any], **values: Any) -> ArgumentsForm:
    data = QueryDict(mutable=True)
    for name, value in values.items():
        data.setlist(f"arguments-value-{name}", value if isinstance(value, list) else [value])
    return form_of(schema, data)


def as_json(schema: Mapping[str, Any], text: str) -> ArgumentsForm:
    return form_of(schema, {MODE: "json", TEXT: text})


def page(form: ArgumentsForm) -> str:
    fields = [*form.values, form["json"]]
    return "".join(render_to_string("console/forms/field.html", {"field": each}) for each in fields)


def problem(form: ArgumentsForm, name: str) -> str:
    assert not form.is_valid()
    (sentence,) = form.errors[f"value-{name}"]
    return str(sentence)


@pytest.mark.parametrize(
    ("property_", "typed", "value"),
    [
        ({"type": "string"}, " two\r\nlines ", " two\nlines "),
        ({"oneOf": [{"const": 1, "title": "One"}, {"const": "1", "title": "Text"}]}, '"1"', "1"),
        ({"enum": [1, "1", None, True]}, "true", True),
        ({"type": "integer"}, "1e3", 1000),
        ({"type": "number"}, "-2.50", -2.5),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "4", 4),
        ({"type": "array", "items": {"type": "integer"}}, "1\r\n\r\n2", [1, 2]),
        ({"type": "array", "items": {"type": "boolean"}}, "true\nfalse", [True, False]),
        ({"type": "array", "items": {"type": "array"}}, "[[1], []]", [[1], []]),
        ({}, "null", None),
    ],
)
def test_typed_input_becomes_json_of_the_schema_type(
    property_: Any, typed: Any, value: Any
) -> None:
    form = sent(of(a=property_), a=typed)
    assert form.is_valid(), form.errors
    assert form.arguments() == {"a": value}
    assert type(form.arguments()["a"]) is type(value)


@pytest.mark.parametrize(
    ("property_", "typed", "sentence"),
    [
        ({"type": "integer"}, "2.5", "Enter a whole number."),
        ({"type": "integer"}, "9" * 30, f"The number {'9' * 30} has more than 64 bits."),
        ({"type": "number"}, "NaN", "Enter a number, such as 3 or 2.5."),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A", "This does not match"),
        ({"type": "string", "enum": ["a"]}, "b", "b is not one of the available choices."),
        ({"type": "array", "items": {"type": "integer"}}, "1\nx", "Line 2: Enter a number"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, "a\nb", "more than 1 item"),
        ({"type": "object"}, "{", "This is not JSON"),
        (of(b={"type": "integer"}), '{"b": "x"}', 'b is not of type "integer"'),
        ({"type": "string"}, "a\0b", "Null characters are not allowed."),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(property_: Any, typed: str, sentence: str):
    form = sent(of(a=property_), a=typed)
    assert sentence in problem(form, "a")
    assert form["value-a"].value() == typed


def test_schema_references_are_resolved_and_cycles_terminate() -> None:
    schema = {
        **of(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/B"}, c={"$ref": "#/$defs/none"}),
        "$defs": {"A": {"enum": ["x", "y"], "title": "Letter"}, "B": {"$ref": "#/$defs/B"}},
    }
    form = form_of(schema)
    assert [field.label for field in form.values] == ["Letter", "b", "c"]
    assert 'value="x"' in page(form)


NAMES = ["mode", "json", "__proto__", "", "with space", "nul\0", "a.b", "a", "value-a", "ü/<&>"]


def test_colliding_or_unusual_property_names_stay_distinct() -> None:
    schema = of(**{name: {"type": "string"} for name in NAMES})
    first = form_of(schema, starting={name: f"of {name!r}" for name in NAMES})
    again = form_of(schema, posted(first))
    assert again.is_valid(), again.errors
    assert again.arguments() == {name: f"of {name!r}" for name in NAMES}
    assert "\0" not in page(first)


def test_hostile_texts_in_a_schema_are_escaped() -> None:
    evil = "<script>alert(1)</script>\0"
    schema = of(**{evil: {"title": evil, "description": evil, "enum": [evil], "default": evil}})
    html = page(form_of(schema)) + page(sent(schema, x=evil))
    assert "<script>" not in html
    assert "\0" not in html


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (of(**{f"p{number}": {} for number in range(10_000)}), f"more than {MAX_FIELDS}"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "does not describe"),
        ({"type": "object", "additionalProperties": True}, "no properties"),
        ({"type": "object", "oneOf": [of(a={}), of(b={})]}, "no properties"),
    ],
)
def test_a_schema_that_no_form_can_express_gets_a_json_field(
    schema: dict[str, Any], why: str
) -> None:
    form = form_of(schema)
    assert why in form.why_json
    assert (form.values, form.chosen_mode) == ([], "json")
    written = form_of(schema, {TEXT: '{"a": 1}'})
    assert written.is_valid(), written.errors
    assert written.arguments() == {"a": 1}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1]", "Arguments are a JSON object"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": {"b": 1, "b": 2}}', 'The name "b" is given twice in one object.'),
        ("[" * 100_000, "nested deeper"),
        (" " * (MAX_JSON + 1), "longer than 524,288 characters"),
    ],
)
def test_invalid_json_is_refused_with_a_message(text: str, sentence: str) -> None:
    form = as_json(of(a={}), text)
    assert not form.is_valid()
    assert sentence in form.errors["json"][0]
    assert form["json"].value() == text


def test_the_json_field_does_not_validate_against_the_schema() -> None:
    form = as_json(needing(a={"type": "integer"}), '{"b": true}')
    assert form.is_valid(), form.errors
    assert form.arguments() == {"b": True}
    assert as_json(of(), "").is_valid()


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=20
)
lines = texts.filter(lambda text: text.strip() != "" and "\n" not in text)
integers = st.integers(-(2**63), 2**63 - 1)
numbers = integers | st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
enums = st.lists(texts | integers | st.booleans(), min_size=1, max_size=4, unique_by=repr)


def listing(choices: list[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    chosen = st.sets(st.sampled_from(range(len(choices))), min_size=1)
    schema = {"type": "array", "items": {"enum": choices}}
    return chosen.map(lambda places: (schema, [choices[place] for place in sorted(places)]))


def typed(type_: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(st.just({"type": type_}), values)


fitting = st.one_of(
    typed("string", texts),
    typed("integer", integers),
    typed("number", numbers),
    typed("boolean", st.booleans()),
    typed("object", st.dictionaries(texts, anything, max_size=3)),
    st.tuples(st.just({}), anything),
    enums.flatmap(lambda choices: st.tuples(st.just({"enum": choices}), st.sampled_from(choices))),
    enums.flatmap(listing),
    *(
        st.tuples(st.just({"type": "array", "items": {"type": type_}}), st.lists(each, min_size=1))
        for type_, each in (("string", lines), ("integer", integers), ("number", numbers))
    ),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=8), fitting, max_size=5))
def test_valid_values_survive_a_round_trip_through_the_form(
    properties: dict[str, tuple[Any, Any]],
) -> None:
    schema = of(**{name: property_ for name, (property_, _) in properties.items()})
    values = {name: value for name, (_, value) in properties.items()}
    again = form_of(schema, posted(form_of(schema, starting=values)))
    assert again.is_valid(), again.errors
    assert repr(sorted(again.arguments().items())) == repr(sorted(values.items()))
