"""Tests of the form schemas that clients can show, and of what forms must not ask for."""

from typing import Any

import pytest

from mcphost.protocol.forms import (
    check_form,
    expected,
    form_message_problem,
    is_typed,
    message_problem,
)
from tests.wire import check_type

ASKS_A_SECRET = "it asks for a secret, which no form may: use URL mode"
HOLDS_AN_ADDRESS = "it holds a web address, which no form may: use URL mode"
OPTIONS = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]


def a_form(field: Any, name: str = "field", **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: field}, **more}


def problems(schema: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in check_form(schema)]


def problem(field: Any, name: str = "field") -> tuple[str, str]:
    """Return the only problem of a form with one field, with its path within the field."""
    ((path, message),) = problems(a_form(field, name))
    return path.removeprefix(f"/properties/{name}"), message


LEGAL = [
    {"type": "string"},
    {"type": "string", "title": "Name", "description": "Yours", "default": "Ada"},
    {"type": "string", "format": "uri", "default": "https://example.com/a"},
    {"type": "string", "format": "date", "default": "2026-07-28"},
    {"type": "number", "minimum": 0.5, "maximum": 0.5, "default": 0.5},
    {"type": "boolean", "default": False},
    {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
    {"type": "string", "oneOf": OPTIONS, "default": "#f00"},
    {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
    {"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1, "maxItems": 2, "title": "C"},
]


@pytest.mark.parametrize("field", LEGAL)
def test_the_forms_of_the_specification_are_valid_forms(field):
    schema = a_form(field, required=["field"])
    assert problems(schema) == []
    check_type("ElicitRequestFormParams", {"message": "?", "requestedSchema": schema})


@pytest.mark.parametrize("schema", [None, "a", {"type": object()}, {5: 5}])
def test_values_that_are_not_schemas_are_refused_as_forms(schema):
    ((path, message),) = problems(schema)
    assert path == ""
    assert "must be a JSON object" in message or "is not JSON" in message


NO_FIELDS = (
    "there must be at least one field, such as a boolean: clients show a form without fields in "
    "which nothing can be answered"
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"properties": {"a": {"type": "boolean"}}},
            ("/type", 'the type must be "object": a form has fields'),
        ),
        ({"type": "object", "properties": {}}, ("/properties", NO_FIELDS)),
        ({"type": "object"}, ("/properties", "there must be an object with the fields")),
        (a_form({"type": "string"}, required="field"), ("/required", None)),
        (
            a_form({"type": "string"}, required=["other"]),
            ("/required", "there is no field 'other'"),
        ),
        (a_form({"type": "boolean"}, additionalProperties={}), ("/additionalProperties", None)),
        (
            a_form({"type": "boolean"}, allOf=[]),
            ("/allOf", "'allOf' is not allowed in a form here"),
        ),
    ],
)
def test_a_problem_of_the_whole_form_is_reported_at_its_path(schema, expected):
    ((path, message),) = problems(schema)
    assert path == expected[0]
    assert expected[1] in (None, message)


@pytest.mark.requirement("elicitation.flat")
@pytest.mark.parametrize(
    "field",
    [
        True,
        {},
        {"type": "object", "properties": {}},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/A"},
    ],
)
def test_nested_fields_and_fields_of_two_types_are_refused(field):
    path, message = problem(field)
    assert path == "/type"
    assert message.endswith("a form is flat")


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"type": "string", "pattern": "^a"}, "/pattern"),
        ({"type": "number", "exclusiveMinimum": 0}, "/exclusiveMinimum"),
        ({"type": "boolean", "const": True}, "/const"),
        ({"type": "array", "items": {"anyOf": OPTIONS}, "uniqueItems": True}, "/uniqueItems"),
        ({"type": "array", "items": {"type": "string", "enum": ["a"], "x/y": 1}}, "/items/x~1y"),
    ],
)
def test_a_keyword_that_clients_may_not_support_is_reported(field, path):
    found, message = problem(field)
    assert found == path
    assert "is not allowed in a form here" in message


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"type": "string", "minLength": -1}, "/minLength"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "/minLength"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "/minimum"),
        ({"type": "array", "items": {"anyOf": OPTIONS}, "maxItems": "2"}, "/maxItems"),
        ({"type": "string", "format": "uuid"}, "/format"),
        ({"type": "string", "title": None}, "/title"),
    ],
)
def test_a_keyword_with_an_invalid_value_is_reported(field, path):
    assert problem(field)[0] == path


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"type": "string", "enum": []}, "/enum"),
        ({"type": "string", "enum": ["a", 5]}, "/enum"),
        ({"type": "string", "enum": ["a"], "enumNames": "A"}, "/enumNames"),
        ({"type": "string", "enum": ["a"], "enumNames": ["A", "B"]}, "/enumNames"),
        ({"type": "string", "oneOf": []}, "/oneOf"),
        ({"type": "string", "oneOf": [{"const": "a"}]}, "/oneOf"),
        ({"type": "string", "oneOf": [OPTIONS[0], OPTIONS[0]]}, "/oneOf"),
        ({"type": "array"}, "/items"),
        ({"type": "array", "items": {"type": "string"}}, "/items"),
        ({"type": "array", "items": [{"type": "string", "enum": ["a"]}]}, "/items"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}]}}, "/items/anyOf"),
    ],
)
def test_the_options_of_a_choice_are_distinct_texts(field, path):
    assert problem(field)[0] == path


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "minLength": 2, "default": "a"},
        {"type": "string", "format": "date", "default": "tomorrow"},
        {"type": "integer", "default": 1.5},
        {"type": "boolean", "default": "yes"},
        {"type": "string", "enum": ["a"], "enumNames": ["A"], "default": "A"},
        {"type": "string", "oneOf": OPTIONS, "default": "Red"},
        {"type": "array", "items": {"anyOf": OPTIONS}, "minItems": 1, "default": []},
    ],
)
def test_a_default_must_fit_its_field(field):
    assert problem(field) == ("/default", "the default does not fit its own field")


# --- secrets and addresses ---


@pytest.mark.requirement("elicitation.no-secrets")
@pytest.mark.parametrize("name", ["password", "access_token", "card_number"])
@pytest.mark.parametrize("kind", ["string", "number", "integer"])
def test_a_field_whose_name_asks_for_a_secret_is_refused(name, kind):
    assert problem({"type": kind}, name) == ("", ASKS_A_SECRET)


@pytest.mark.parametrize(
    ("keyword", "text"), [("title", "API key"), ("description", "The password of the account")]
)
def test_a_field_whose_title_or_description_asks_for_a_secret_is_refused(keyword, text):
    field = {"type": "string", keyword: text}
    assert problem(field) == (f"/{keyword}", ASKS_A_SECRET)
    assert (f"/{keyword}", ASKS_A_SECRET) in problems(a_form({"type": "string"}, **{keyword: text}))


def test_a_format_for_secrets_is_refused():
    assert problem({"type": "string", "format": "password"}) == ("/format", ASKS_A_SECRET)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "boolean"},
        {"type": "string", "enum": ["now"]},
        {"type": "array", "items": {"anyOf": OPTIONS}},
        {"type": "string", "format": "date"},
    ],
)
def test_fields_that_users_cannot_type_into_may_mention_secrets(field):
    schema = a_form({**field, "title": "Rotate the API key?"}, "rotate_api_key")
    assert problems(schema) == []
    assert not is_typed(schema)
    assert form_message_problem("This resets the password. Go on?", typed=False) is None


@pytest.mark.requirement("elicitation.no-links")
@pytest.mark.parametrize("address", ["https://example.com", "at www.x.org."])
@pytest.mark.parametrize(
    ("field", "path"),
    [
        (lambda text: {"type": "string", "title": text}, "/title"),
        (lambda text: {"type": "boolean", "description": text}, "/description"),
        (lambda text: {"type": "string", "enum": ["a"], "enumNames": [text]}, "/enumNames"),
        (lambda text: {"type": "string", "oneOf": [{"const": "a", "title": text}]}, "/oneOf"),
    ],
)
def test_a_web_address_in_a_text_is_refused(field, path, address):
    assert problem(field(address)) == (path, HOLDS_AN_ADDRESS)


def test_a_web_address_may_be_the_value_of_a_field():
    assert problems(a_form({"type": "string", "format": "uri", "title": "Web site"})) == []
    assert problems(a_form({"type": "string", "enum": ["https://a.org", "https://b.org"]})) == []


@pytest.mark.parametrize("message", ["", "  ", None, 5])
def test_a_form_message_must_not_be_empty(message):
    assert message_problem(message) == "the message must be a text that says what is asked"
    assert form_message_problem(message, typed=True) == message_problem(message)


def test_a_form_message_asks_for_no_secret_and_contains_no_web_address():
    assert form_message_problem("What is your name?", typed=True) is None
    assert form_message_problem("Your password, please", typed=True) == ASKS_A_SECRET
    assert form_message_problem("See https://example.com", typed=False) == HOLDS_AN_ADDRESS


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"type": "string"}, "a text"),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "a text of 1 to 9 characters"),
        ({"type": "string", "format": "email"}, "an email address"),
        ({"type": "integer", "minimum": 1}, "a whole number of at least 1"),
        ({"type": "number", "maximum": 2}, "a number of at most 2"),
        ({"type": "boolean"}, "true or false"),
        ({"type": "string", "enum": ["red", "blue"]}, "one of red, blue"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "one of r"),
        (
            {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}, "minItems": 1},
            "a list of r of at least 1",
        ),
        (
            {"type": "string", "enum": [str(number) for number in range(21)]},
            f"one of {', '.join(map(str, range(20)))}, …",
        ),
    ],
)
def test_the_values_that_a_field_accepts_are_said_in_words(field: Any, text: str) -> None:
    assert expected(field) == text
