"""The input schema is derived from the signature, and arguments fit it or the error names the
field."""

import enum
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from mcphost.kinds.functions.program import InvalidArgumentsError
from mcphost.kinds.functions.schemas import SignatureError
from mcphost.sdk import Context, tool
from tests.kinds.rounds import seen


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    name: str
    born: date
    friends: "list[Person]" = []


def schema(function: Any) -> dict[str, Any]:
    return dict(seen(function).parameters.schema)


def bound(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return seen(function).parameters.bind(arguments)


def refused(function: Any, arguments: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidArgumentsError) as caught:
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


def test_the_context_parameter_is_recognised_by_its_annotation_and_is_not_an_argument() -> None:
    def function(text: str, here: Context, there: "Context | None" = None) -> None: ...

    assert list(schema(function)["properties"]) == ["text"]
    assert seen(function).parameters.context == ("here", "there")
    assert bound(function, {"text": "a"}) == {"text": "a"}


@pytest.mark.parametrize("name", ["schema", "model_dump", "self", "_x"])
def test_no_argument_name_is_reserved(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def function({name}: str) -> None: ...", scope)
    assert list(schema(scope["function"])["properties"]) == [name]
    assert bound(scope["function"], {name: "a"}) == {name: "a"}


def test_every_problem_names_its_field() -> None:
    def function(text: str, who: Person, count: int = 1) -> None: ...

    problems = refused(function, {"count": "many", "who": {"name": 1}, "extra": 1})
    assert set(problems) == {"text", "count", "who.name", "who.born", "extra"}
    assert problems["text"] == "is required"


def test_errors_that_only_pydantic_detects_name_the_field() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    def function(when: date, count: Annotated[int, AfterValidator(even)] = 0) -> None: ...

    problems = refused(function, {"when": "yesterday", "count": 3})
    assert problems["count"] == "Value error, must be even"
    assert "valid date" in problems["when"]


@pytest.mark.parametrize(
    "taken", ["text: str, /", "*texts: str", "**texts: str", "ctx: Context, /"]
)
def test_parameters_that_cannot_be_passed_by_name_are_refused(taken: str) -> None:
    scope: dict[str, Any] = {"Context": Context}
    exec(f"def function({taken}) -> None: ...", scope)
    with pytest.raises(SignatureError, match="cannot be given by name"):
        seen(scope["function"])


VERBATIM = {
    "type": "object",
    "properties": {"when": {"type": "string"}, "how-often": {"type": "integer"}},
    "required": ["when"],
}


def test_an_explicit_input_schema_is_served_verbatim_and_arguments_stay_plain_json() -> None:
    @tool(input_schema=VERBATIM)
    def function(ctx: Context, when: date, **rest: Any) -> None: ...

    assert seen(function).parameters.schema == VERBATIM
    arguments = {"when": "2026-07-28", "how-often": 3, "more": None}
    assert bound(function, arguments) == arguments
    assert refused(function, {}) == {"when": "is required"}


def test_a_function_with_an_explicit_schema_receives_only_its_declared_parameters() -> None:
    @tool(input_schema={"type": "object", "properties": {"a": {}}})
    def function(a: Any = 1, b: Any = 2) -> None: ...

    assert bound(function, {"a": 5, "more": None}) == {"a": 5}
    assert bound(function, {}) == {}


def test_a_parameter_that_the_explicit_schema_does_not_require_must_be_optional() -> None:
    @tool(input_schema={"type": "object", "properties": {"a": {}}})
    def function(a: Any) -> None: ...

    with pytest.raises(SignatureError, match="does not require 'a'"):
        seen(function)


def test_a_function_that_lacks_a_property_of_the_explicit_schema_is_refused() -> None:
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
def test_values_sent_as_a_result_can_be_accepted_as_arguments(value: Everything) -> None:
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
    except InvalidArgumentsError as error:
        assert error.problems


def test_a_parameter_is_described_by_its_field_an_annotated_text_or_the_docstring() -> None:
    def function(
        ctx: Context,
        field: Annotated[str, Field(description="Of the field.")],
        text: Annotated[int, "Of the text."],
        person: Person,
        other: Annotated[str, Field(description="Of the field.", alias="wire")] = "",
        default: date = Field(date(2026, 1, 1), description="Of the default."),  # noqa: B008
        docs: int | None = None,
    ) -> None:
        """Do it.

        Use it often.

        Args:
            ctx: The call.
            field: Of the field.
            text: Something else.
            person: Who it is,
                and where.
            docs: Of the docstring.
            missing: No parameter.
        """

    inspected = seen(function)
    properties = inspected.parameters.schema["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        "field": "Of the field.",
        "text": "Of the text.",
        "person": "Who it is, and where.",
        "wire": "Of the field.",
        "default": "Of the default.",
        "docs": "Of the docstring.",
    }
    # Nothing is lost: what is no description of an argument stays.
    assert inspected.description == (
        "Do it.\n\nUse it often.\n\nArgs:\n    text: Something else.\n    missing: No parameter."
    )


def test_a_docstring_stays_whole_with_an_explicit_schema() -> None:
    @tool(input_schema={"type": "object", "properties": {"a": {}}, "required": ["a"]})
    def function(a: Any) -> None:
        """Do it.

        Args:
            a: A value.
        """

    assert seen(function).description == "Do it.\n\nArgs:\n    a: A value."
    assert seen(function).parameters.schema["properties"] == {"a": {}}
