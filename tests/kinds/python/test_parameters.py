"""The input schema is derived from the signature, and arguments fit it or the error names the
field."""

import enum
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from mcphost.kinds.functions.program import InvalidArguments
from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.python.parameters import parameters_of
from mcphost.protocol.schemas import check_schema
from mcphost.sdk import Context, tool
from tests.kinds.rounds import seen


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    name: str
    born: date
    friends: "list[Person]" = []


@dataclass
class Point:
    x: int
    y: int = 0


def schema(function: Any) -> dict[str, Any]:
    return dict(seen(function).parameters.schema)


def bound(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return seen(function).parameters.bind(arguments)


def refused(function: Any, arguments: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidArguments) as caught:
        bound(function, arguments)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_plain_signature_gives_a_plain_schema() -> None:
    def function(text: str, times: int = 2, *, loud: bool = False) -> None: ...

    assert schema(function) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "times": {"type": "integer", "default": 2},
            "loud": {"type": "boolean", "default": False},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert bound(function, {"text": "a"}) == {"text": "a", "times": 2, "loud": False}


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def function() -> None: ...

    assert schema(function) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert refused(function, {"more": 1}) == {"more": "is not expected"}


def test_descriptions_and_bounds_come_from_fields() -> None:
    def function(
        size: Annotated[int, Field(ge=1, description="How large.")],
        colour: str = Field("red", description="Which colour."),
        depth: Annotated[int, Field(description="How deep.")] = 3,
    ) -> None: ...

    properties = schema(function)["properties"]
    assert properties["size"] == {"type": "integer", "minimum": 1, "description": "How large."}
    assert properties["colour"] == {
        "type": "string",
        "default": "red",
        "description": "Which colour.",
    }
    assert properties["depth"]["default"] == 3
    assert bound(function, {"size": 1}) == {"size": 1, "colour": "red", "depth": 3}


def test_the_context_is_recognised_by_its_annotation_and_is_no_argument() -> None:
    def function(text: str, here: Context, there: "Context | None" = None) -> None: ...

    assert list(schema(function)["properties"]) == ["text"]
    assert seen(function).parameters.context == ("here", "there")
    assert bound(function, {"text": "a"}) == {"text": "a"}


def test_a_parameter_without_annotation_takes_anything() -> None:
    def function(anything, something=1): ...  # type: ignore[no-untyped-def]

    assert schema(function)["properties"] == {"anything": {}, "something": {"default": 1}}
    assert bound(function, {"anything": [1, {"a": None}]})["anything"] == [1, {"a": None}]


@pytest.mark.parametrize("name", ["schema", "copy", "json", "model_dump", "self", "class_", "_x"])
def test_no_name_is_taken(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def function({name}: str) -> None: ...", scope)
    assert list(schema(scope["function"])["properties"]) == [name]
    assert bound(scope["function"], {name: "a"}) == {name: "a"}


def test_an_alias_is_the_name_on_the_wire() -> None:
    def function(from_: Annotated[str, Field(alias="from")]) -> None: ...

    assert schema(function)["required"] == ["from"]
    assert bound(function, {"from": "here"}) == {"from_": "here"}


def test_strict_models_read_json_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        when: date

    def function(what: Strict) -> None: ...

    assert bound(function, {"what": {"when": "2026-07-28"}})["what"].when == date(2026, 7, 28)


def test_references_stay_within_the_schema() -> None:
    def function(who: Person) -> None: ...

    person = schema(function)["properties"]["who"]
    assert person == {"$ref": "#/$defs/Person"}
    assert check_schema(schema(function), role="input") == ()


def test_a_default_that_is_no_json_is_left_out_of_the_schema() -> None:
    marker = object()

    def function(value: Any = marker) -> None: ...

    assert schema(function)["properties"] == {"value": {}}
    assert bound(function, {})["value"] is not None


def test_every_problem_names_its_field() -> None:
    def function(text: str, who: Person, count: int = 1) -> None: ...

    problems = refused(function, {"count": "many", "who": {"name": 1}, "extra": 1})
    assert set(problems) == {"text", "count", "who.name", "who.born", "extra"}
    assert problems["text"] == "is required"


def test_what_only_pydantic_knows_names_the_field_too() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    def function(when: date, count: Annotated[int, AfterValidator(even)] = 0) -> None: ...

    problems = refused(function, {"when": "yesterday", "count": 3})
    assert problems["count"] == "Value error, must be even"
    assert "valid date" in problems["when"]


def test_what_a_model_says_of_itself_is_told() -> None:
    class Range(BaseModel):
        low: int
        high: int

        @model_validator(mode="after")
        def ordered(self) -> "Range":
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    def function(range: Range) -> None: ...

    assert refused(function, {"range": {"low": 2, "high": 1}}) == {
        "range": "Value error, low is above high"
    }


def test_a_number_that_json_cannot_hold_is_refused() -> None:
    def function(count: int) -> None: ...

    assert refused(function, {"count": 2**70}) == {"": "contain values that JSON does not support"}


@pytest.mark.parametrize(
    "taken", ["text: str, /", "*texts: str", "**texts: str", "ctx: Context, /"]
)
def test_what_cannot_be_given_by_name_is_refused(taken: str) -> None:
    scope: dict[str, Any] = {"Context": Context}
    exec(f"def function({taken}) -> None: ...", scope)
    with pytest.raises(SignatureError, match="cannot be given by name"):
        seen(scope["function"])


def test_an_illegal_schema_is_the_authors_error() -> None:
    def function(
        password: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Password"})],
    ) -> None: ...

    with pytest.raises(SignatureError, match="input schema is not legal"):
        seen(function)


VERBATIM = {
    "type": "object",
    "properties": {"when": {"type": "string"}, "how-often": {"type": "integer"}},
    "required": ["when"],
}


def test_a_schema_given_verbatim_is_served_as_it_is_and_brings_plain_json() -> None:
    @tool(input_schema=VERBATIM)
    def function(ctx: Context, when: date, **rest: Any) -> None: ...

    assert seen(function).parameters.schema == VERBATIM
    arguments = {"when": "2026-07-28", "how-often": 3, "more": None}
    assert bound(function, arguments) == arguments
    assert refused(function, {}) == {"when": "is required"}


def test_a_function_that_names_what_it_takes_gets_nothing_else() -> None:
    @tool(input_schema={"type": "object", "properties": {"a": {}}})
    def function(a: Any = 1, b: Any = 2) -> None: ...

    assert bound(function, {"a": 5, "more": None}) == {"a": 5}
    assert bound(function, {}) == {}


def test_a_function_that_needs_what_the_schema_does_not_require_is_refused() -> None:
    @tool(input_schema={"type": "object", "properties": {"a": {}}})
    def function(a: Any) -> None: ...

    with pytest.raises(SignatureError, match="does not require 'a'"):
        seen(function)


def test_a_function_that_does_not_take_what_the_schema_offers_is_refused() -> None:
    @tool(input_schema=VERBATIM)
    def function(when: str) -> None: ...

    with pytest.raises(SignatureError, match="does not take 'how-often'"):
        seen(function)


@dataclass
class Everything:
    """All kinds of values that survive a journey through JSON."""

    text: str
    whole: int
    real: float
    flag: bool
    day: date
    colour: Colour
    maybe: str | None
    names: list[str]
    counts: dict[str, int]
    point: tuple[int, int]


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
WHOLE = st.integers(-(2**63), 2**63 - 1)
EVERYTHING = st.builds(
    Everything,
    text=TEXT,
    whole=WHOLE,
    real=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    day=st.dates(),
    colour=st.sampled_from(Colour),
    maybe=st.none() | TEXT,
    names=st.lists(TEXT, max_size=5),
    counts=st.dictionaries(TEXT, WHOLE, max_size=5),
    point=st.tuples(WHOLE, WHOLE),
)


def takes(value: Everything) -> Everything:
    return value


EVERYTHING_TOOL = seen(takes)


@settings(deadline=None)
@given(EVERYTHING)
def test_what_is_sent_as_a_result_can_be_taken_as_arguments(value: Everything) -> None:
    sent = EVERYTHING_TOOL.returns.encode(value, 1_000_000).result["structuredContent"]
    assert EVERYTHING_TOOL.parameters.bind({"value": sent}) == {"value": value}


JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*Everything.__dataclass_fields__, "other"])


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON))
def test_any_arguments_fit_or_are_refused_with_a_problem(arguments: dict[str, Any]) -> None:
    try:
        EVERYTHING_TOOL.parameters.bind({"value": arguments})
    except InvalidArguments as error:
        assert error.problems


def test_large_arguments_that_only_pydantic_refuses_are_refused_at_the_first_misfit() -> None:
    def plan(days: dict[str, date], notes: str = "") -> None: ...

    hints = {"days": dict[str, date], "notes": str, "return": None}
    bind = parameters_of(plan, hints, None).bind
    wrong = {f"d{n}": "never" for n in range(8_000)}
    with pytest.raises(InvalidArguments, match="cannot be read"):
        bind({"days": wrong, "notes": "x"})
    good = {f"d{n}": "2026-07-28" for n in range(8_000)}
    assert bind({"days": good})["days"]["d0"] == date(2026, 7, 28)
