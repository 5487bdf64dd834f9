"""Any form and any answer of a client: valid on the wire, and either read or refused."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from mcphost.protocol.forms import check_form
from mcphost.protocol.secret_names import looks_secret
from mcphost.protocol.web_addresses import mentions_one
from mcphost.runtime.questions import InvalidAnswerError, Question, QuestionRefusedError
from mcphost.runtime.schema import Validator
from mcphost.sdk.questions import form, roots, sampling, url
from tests.sdk.question_checks import accepted, on_the_wire
from tests.wire import check_type

LONGEST = 12

plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST)
harmless = plain.filter(lambda text: not looks_secret(text) and not mentions_one(text))
names = harmless.filter(bool)
texts = st.fixed_dictionaries({}, optional={"title": harmless, "description": harmless})
values = st.lists(plain, min_size=1, max_size=4, unique=True)


def bounds(low: str, high: str, numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    both = st.tuples(numbers, numbers).map(
        lambda pair: dict(zip((low, high), sorted(pair), strict=True))
    )
    return st.one_of(st.just({}), numbers.map(lambda one: {low: one}), both)


def merged(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda dicts: {k: v for d in dicts for k, v in d.items()})


def titled(consts: list[str]) -> list[dict[str, str]]:
    return [{"const": const, "title": "One"} for const in consts]


lengths = bounds("minLength", "maxLength", st.integers(0, LONGEST))
counts = bounds("minItems", "maxItems", st.integers(0, 4))
formats = st.sampled_from([{}, *({"format": f} for f in ("email", "uri", "date", "date-time"))])
fields = st.one_of(
    merged(st.just({"type": "string"}), texts, lengths, formats),
    merged(st.just({"type": "number"}), texts, bounds("minimum", "maximum", st.floats(-9, 9))),
    merged(st.just({"type": "integer"}), texts, bounds("minimum", "maximum", st.integers(-9, 9))),
    merged(st.just({"type": "boolean"}), texts),
    merged(st.just({"type": "string"}), texts, values.map(lambda v: {"enum": v})),
    merged(st.just({"type": "string"}), texts, values.map(lambda v: {"oneOf": titled(v)})),
    merged(
        st.just({"type": "array"}),
        texts,
        counts,
        values.map(lambda v: {"items": {"type": "string", "enum": v}}),
    ),
    merged(
        st.just({"type": "array"}),
        texts,
        counts,
        values.map(lambda v: {"items": {"anyOf": titled(v)}}),
    ),
)


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(names, fields, min_size=1, max_size=4))
    required = (
        draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    )
    extra = draw(st.sampled_from([{}, {"additionalProperties": False}, {"required": required}]))
    return {"type": "object", "properties": properties, **extra}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def asked_and_answered(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """Generate a form, and content that has more or less its fields."""
    schema = draw(forms())
    content = {}
    for name, field in schema["properties"].items():
        listed = field.get("enum") or [o["const"] for o in field.get("oneOf", ())] or ["a"]
        likely = st.sampled_from([*listed, 0, 1, 0.5, True, [], "2026-07-28", "a@b.org", "a:b"])
        if draw(st.booleans()):
            content[name] = draw(likely | json)
    return schema, content


def outcome(question: Question[Any], result: Any) -> Any:
    """Return what is read, or None if it is refused; any other exception fails the test."""
    try:
        return question.read(result)
    except InvalidAnswerError as refusal:
        assert str(refusal)
        return None


@pytest.mark.requirement("elicitation.flat")
@given(forms())
def test_any_flat_form_is_valid_by_the_specification(schema: dict[str, Any]) -> None:
    assert check_form(schema) == ()
    params = on_the_wire(form("form", "What?", schema))
    check_type("ElicitRequestFormParams", params)


@given(json, st.sampled_from(["type", "properties", "required", "title", "additionalProperties"]))
def test_any_json_in_a_schema_is_a_form_or_refused(value: Any, keyword: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, keyword: value}
    try:
        on_the_wire(form("form", "What?", schema))
    except QuestionRefusedError as refusal:
        assert str(refusal)


@given(json, st.sampled_from(["type", "enum", "oneOf", "items", "default", "minLength", "format"]))
def test_any_json_in_a_form_field_is_accepted_or_refused(value: Any, keyword: str) -> None:
    for kind in ("string", "array", "integer", "boolean"):
        schema = {"type": "object", "properties": {"a": {"type": kind, keyword: value}}}
        try:
            on_the_wire(form("form", "What?", schema))
        except QuestionRefusedError as refusal:
            assert str(refusal)


@pytest.mark.requirement("elicitation.content")
@given(asked_and_answered())
def test_any_content_is_read_unchanged_or_refused(case: tuple[dict[str, Any], Any]) -> None:
    schema, content = case
    answer = outcome(form("form", "What?", schema), accepted(content))
    if answer is not None:
        assert Validator(schema).problems(answer.content) == ()
        sent = orjson.loads(orjson.dumps(content))
        assert answer.content.items() <= sent.items()


class Everything(BaseModel):
    text: str = ""
    number: float | None = None
    whole: int = Field(0, ge=-5)
    sure: bool = False


QUESTIONS = (
    form("form", "What?", Everything),
    form("form", "What?", {"type": "object", "properties": {"a": {"type": "string"}}}),
    url("page", "Look", "https://example.com"),
    sampling("talk", "Hi", max_tokens=1),
    roots(),
)


@pytest.mark.parametrize("question", QUESTIONS)
@given(
    result=st.dictionaries(st.sampled_from(["action", "content", "roots", "role", "model"]), json)
)
def test_any_result_is_read_or_refused(question: Question[Any], result: Any) -> None:
    outcome(question, result)


@given(
    st.lists(
        st.sampled_from([str, int, float, bool, list[str], dict[str, str], bytes]),
        min_size=1,
        max_size=3,
    )
)
def test_any_model_is_a_valid_form_or_refused_when_it_is_used(types: list[Any]) -> None:
    model: Any = create_model("Model", **{f"field{i}": (each, ...) for i, each in enumerate(types)})
    try:
        on_the_wire(form("form", "What?", model))
    except QuestionRefusedError as refusal:
        assert "/properties/field" in str(refusal)
