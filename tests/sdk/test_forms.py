"""Tests of forms from a model or a schema: valid on the wire, and answers read strictly."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, SecretStr, field_validator
from pydantic_core import PydanticCustomError

from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sdk import Form, FormAnswer
from mcphost.sdk.questions import form
from tests.sdk.question_checks import accepted, invalid, schema_of


class Colour(Enum):
    """A docstring for programmers."""

    RED = "red"
    GREEN = "green"


class Size(IntEnum):
    SMALL = 1


class Everything(Form):
    """Not sent to clients."""

    name: str = Field(min_length=1, max_length=20, title="Your name")
    age: int | None = Field(description="In years", gt=17, lt=100)
    weight: float = Field(70.5, ge=0)
    price: Decimal = Field(Decimal("1.5"), le=10)
    born: date = date(2000, 1, 1)
    home: AnyUrl | None = None
    sure: bool = False
    one: Literal["a"] = "a"
    colour: Colour = Field(Colour.RED, description="Of the bicycle shed")
    other: Colour | None = None
    colours: list[Colour] = Field([Colour.RED], min_length=1)
    letters: set[Literal["a", "b"]] = Field(default_factory=set)


# --- forms by a model ---


def test_a_model_becomes_a_flat_schema_without_additions() -> None:
    assert schema_of(Everything) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 20, "title": "Your name"},
            "age": {"type": "integer", "minimum": 18, "maximum": 99, "description": "In years"},
            "weight": {"type": "number", "minimum": 0, "default": 70.5},
            "price": {"type": "number", "maximum": 10, "default": 1.5},
            "born": {"type": "string", "format": "date", "default": "2000-01-01"},
            "home": {"type": "string", "format": "uri", "minLength": 1},
            "sure": {"type": "boolean", "default": False},
            "one": {"type": "string", "enum": ["a"], "default": "a"},
            "colour": {
                "type": "string",
                "enum": ["red", "green"],
                "default": "red",
                "description": "Of the bicycle shed",
            },
            "other": {"type": "string", "enum": ["red", "green"]},
            "colours": {
                "type": "array",
                "items": {"type": "string", "enum": ["red", "green"]},
                "default": ["red"],
                "minItems": 1,
            },
            "letters": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        },
        "required": ["name"],
    }


def test_an_accepted_form_is_read_as_its_model() -> None:
    content = {
        "name": "Ada",
        "age": 36,
        "price": 2,
        "born": "1815-12-10",
        "home": "https://example.com/ada",
        "sure": True,
        "colour": "green",
        "colours": ["green", "red"],
        "letters": ["b", "b"],
    }
    answer = form("details", "Who?", Everything).read(accepted(content))
    assert isinstance(answer, FormAnswer)
    assert answer.accepted
    said = answer.content
    assert isinstance(said, Everything)
    assert (said.age, said.price, said.born) == (36, Decimal(2), date(1815, 12, 10))
    assert (str(said.home), said.colour) == ("https://example.com/ada", Colour.GREEN)
    assert (said.colours, said.letters) == ([Colour.GREEN, Colour.RED], {"b"})
    assert (said.weight, said.one, said.other) == (70.5, "a", None)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_was_not_accepted_has_no_content(action: str) -> None:
    result = {"action": action, "content": {"name": "Ada"}}
    answer = form("details", "Who?", Everything).read(result)
    assert (answer.action, answer.content, answer.accepted) == (action, None, False)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({}, "its action must be accept, decline or cancel"),
        ({"action": ["accept"]}, "its action must be accept, decline or cancel"),
        ({"action": "accept"}, "name: is required"),
        (accepted([]), "its content must be an object"),
        (accepted({"name": None}), "name: not a text of 1 to 20 characters"),
        (accepted({"name": ""}), "name: not a text of 1 to 20 characters"),
        (accepted({"name": "Ada", "age": "36"}), "age: not a whole number of 18 to 99"),
        (accepted({"name": "Ada", "age": 3}), "age: not a whole number of 18 to 99"),
        (accepted({"name": "Ada", "born": "long ago"}), "born: not a date such as 2026-01-31"),
        (accepted({"name": "Ada", "colour": "blue"}), "colour: not one of red, green"),
        (accepted({"name": "\ud800"}), "is not JSON"),
    ],
)
def test_an_invalid_response_is_reported_field_by_field(result: Any, why: str) -> None:
    assert why in invalid(form("details", "Who?", Everything), result)


class Clearable(Form):
    mail: Annotated[str | None, Field(json_schema_extra={"format": "email"})] = None
    born: date | None = None
    home: AnyUrl | None = None
    age: int | None = None
    colour: Literal["red", "green"] = "red"
    colours: list[Literal["red", "green"]] | None = Field(None, min_length=1)
    note: str | None = None


@pytest.mark.parametrize("empty", [None, "", []])
@pytest.mark.parametrize("name", ["mail", "born", "home", "age", "colour", "colours"])
def test_a_cleared_optional_field_counts_as_left_empty(name: str, empty: Any) -> None:
    of_model = form("form", "What?", Clearable)
    assert of_model.read(accepted({name: empty})).content == Clearable()
    of_schema = form("form", "What?", schema_of(Clearable))
    assert of_schema.read(accepted({name: empty})).content == {}


def test_an_empty_text_is_valid_only_for_an_optional_field_without_a_format() -> None:
    answer = form("form", "What?", Clearable).read(accepted({"note": ""}))
    assert answer.content == Clearable(note="")
    schema = {**schema_of(Clearable), "required": ["mail"]}
    assert "mail: not an email address" in invalid(
        form("form", "What?", schema), accepted({"mail": ""})
    )


@pytest.mark.parametrize(
    "refusal",
    [
        lambda name: ValueError(f"{name} is unknown"),
        lambda name: AssertionError(name),
        lambda name: PydanticCustomError("unknown_name", "{name} is unknown", {"name": name}),
    ],
)
def test_a_problem_of_a_response_never_quotes_the_response(
    refusal: Callable[[str], Exception],
) -> None:
    class Guarded(Form):
        name: str = ""
        size: int = 0

        @field_validator("name")
        @classmethod
        def known(cls, name: str) -> str:
            raise refusal(name)

    question = form("form", "What?", Guarded)
    assert invalid(question, accepted({"name": "Ada"})) == "name: is not accepted"
    assert "Ada" not in invalid(question, accepted({"size": "Ada"}))


def test_the_model_decides_about_fields_that_the_form_does_not_have() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str = ""

    extra = {"name": "Ada", "nick": "A"}
    assert form("f", "Who?", Everything).read(accepted(extra)).content.name == "Ada"  # type: ignore[union-attr]
    assert "nick" in invalid(form("f", "Who?", Strict), accepted(extra))
    assert "additionalProperties" not in schema_of(Strict)


def test_a_choice_may_have_titles() -> None:
    class Titled(Form):
        one: (
            Annotated[Literal["r"], Field(title="Red")]
            | Annotated[Literal["g"], Field(title="Green")]
        )
        some: list[Annotated[Literal["r"], Field(title="Red")] | Literal["g", "b"]]
        plain: Literal["a"] | Literal["b"] = "a"

    schema = schema_of(Titled)
    assert schema["properties"]["one"] == {
        "type": "string",
        "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}],
    }
    assert schema["properties"]["some"]["items"] == {
        "anyOf": [
            {"const": "r", "title": "Red"},
            {"const": "g", "title": "g"},
            {"const": "b", "title": "b"},
        ]
    }
    assert schema["properties"]["plain"]["enum"] == ["a", "b"]
    answer = form("f", "Which?", Titled).read(accepted({"one": "g", "some": ["r", "b"]}))
    assert answer.content == Titled(one="g", some=["r", "b"])


class Inner(BaseModel):
    street: str


@pytest.mark.parametrize(
    ("annotation", "where"),
    [
        (Inner, "/properties/x/type"),
        (list[str], "/properties/x/items"),
        (dict[str, str], "/properties/x/type"),
        (str | int, "/properties/x/type"),
        (Size, "/properties/x/enum"),
        (Literal["a", 2], "/properties/x/type"),
        (SecretStr, "/properties/x/format"),
        (Annotated[str, Field(pattern="^a")], "/properties/x/pattern"),
        (Annotated[float, Field(gt=0)], "/properties/x/exclusiveMinimum"),
        (Annotated[str, Field(title="Password")], "/properties/x/title"),
        (Annotated[bool, Field(description="See www.example.com")], "/properties/x/description"),
    ],
)
def test_a_form_that_no_client_can_show_fails_at_its_definition(
    annotation: Any, where: str
) -> None:
    with pytest.raises(QuestionRefusedError, match="Bad is not a valid form: ") as caught:
        type("Bad", (Form,), {"__annotations__": {"x": annotation}, "__module__": __name__})
    assert where in str(caught.value)


def test_a_model_that_is_no_form_class_is_checked_when_it_is_used() -> None:
    class Plain(BaseModel):
        api_key: str

    with pytest.raises(QuestionRefusedError, match="/properties/api_key: it asks for a secret"):
        form("form", "What?", Plain)


def test_a_form_with_unresolved_types_is_checked_once_they_are_resolved() -> None:
    later: Any = type(
        "Later", (Form,), {"__annotations__": {"x": "Missing"}, "__module__": __name__}
    )
    with pytest.raises(QuestionRefusedError, match="Later has no schema: "):
        form("form", "What?", later)
    with pytest.raises(QuestionRefusedError, match="/properties/x/type"):
        later.model_rebuild(_types_namespace={"Missing": Inner})


@pytest.mark.parametrize(
    "asked",
    [
        None,
        5,
        RootModel[str],
    ],
)
def test_a_value_that_is_neither_a_model_nor_a_schema_is_refused_as_a_form(asked: Any) -> None:
    with pytest.raises(QuestionRefusedError):
        form("form", "What?", asked)


# --- forms by a schema ---

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_a_schema_is_sent_unchanged_and_read_as_plain_values() -> None:
    assert schema_of(NAME) == NAME
    question = form("user_name", "What is your name?", NAME)
    assert question.read(accepted({"name": "Alice"})).content == {"name": "Alice"}
    assert invalid(question, accepted({"name": 5})) == "name: not a text"


@pytest.mark.parametrize(
    ("more", "content"), [(None, {"name": "A"}), (True, {"name": "A", "nick": "B"})]
)
def test_additional_properties_of_a_schema_decide_about_other_fields(
    more: Any, content: Any
) -> None:
    schema = NAME if more is None else {**NAME, "additionalProperties": more}
    given = accepted({"name": "A", "nick": "B"})
    assert form("f", "Who?", schema).read(given).content == content
    closed = form("f", "Who?", {**NAME, "additionalProperties": False})
    assert invalid(closed, given) == "nick: is not expected"


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "string"}, {5: 5}])
def test_a_schema_that_is_not_flat_is_refused(schema: Any) -> None:
    with pytest.raises(QuestionRefusedError, match=r"is not a valid form|is not JSON"):
        form("f", "Who?", schema)


def test_a_form_without_fields_is_refused_at_its_definition() -> None:
    with pytest.raises(QuestionRefusedError, match="at least one field"):

        class Nothing(Form):
            pass
