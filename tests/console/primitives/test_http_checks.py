"""Tests of the arguments of an HTTP tool in its form, and of the check while the form is filled in."""

import json
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue.models import Primitive
from tests.console.primitives.test_http_tools import NEW, TOOLS, form, written
from tests.console.tenant_data import Things

CHECK = f"{TOOLS}check-request/"
ROWS = {
    "url": "https://api.example.com/{arguments.country}/weather",
    "arguments_as": "rows",
    "input_schema": "{ not the schema of what is shown",
    "query-0-name": "city",
    "query-0-value": "{arguments.city}",
    "arguments-0-name": "country",
    "arguments-0-type": "text",
    "arguments-0-required": "on",
    "arguments-0-choices": "ch\r\nde",
    "arguments-1-name": "city",
    "arguments-1-type": "text",
    "arguments-1-description": "Where.",
}
OF_ROWS = {
    "type": "object",
    "properties": {
        "country": {"type": "string", "enum": ["ch", "de"]},
        "city": {"type": "string", "description": "Where."},
    },
    "required": ["country"],
    "additionalProperties": False,
}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def checked(client: Client, **changes: Any) -> Any:
    return client.post(CHECK, form(**changes)).json()


def test_arguments_that_are_written_as_rows_are_stored_as_a_schema_only(operator: Client) -> None:
    operator.post(NEW, form(**ROWS))
    tool = written()
    assert tool.config["input_schema"] == OF_ROWS
    edit = f"{TOOLS}{tool.pk}/edit/"
    part = operator.get(edit).context["form"].part
    assert (part.begins_with, part.why_no_rows) == ("rows", "")
    assert [row["name"].value() for row in part.arguments.filled] == ["country", "city"]
    assert not part["others"].value()


def test_a_schema_keeps_its_text_while_its_rows_mean_the_same(operator: Client) -> None:
    schema = {**OF_ROWS, "required": ["city", "country"]}
    operator.post(NEW, form(**{**ROWS, "arguments_as": "", "input_schema": json.dumps(schema)}))
    tool = written()
    operator.post(f"{TOOLS}{tool.pk}/edit/", form(**ROWS, **{"arguments-1-required": "on"}))
    assert written().config["input_schema"]["required"] == ["city", "country"]


def test_a_form_of_which_rows_are_wrong_comes_back_with_them_and_nothing_is_saved(
    operator: Client,
) -> None:
    page = operator.post(NEW, form(**{**ROWS, "arguments-1-name": "country", "timeout_seconds": "900"}))
    part = page.context["form"].part
    assert part.begins_with == "rows"
    assert part.arguments.filled[1].errors["name"] == ["There are two arguments with this name."]
    assert part.errors["timeout_seconds"]  # at once, not after the rows are corrected
    assert not Primitive.objects.filter(name="order").exists()


def test_a_check_says_what_is_wrong_beside_its_field_and_saves_nothing(operator: Client) -> None:
    reply = checked(operator, **{**ROWS, "query-0-value": "{arguments.town}", "select": "a["})
    assert reply["problems"] == {
        "query-0-value": ["There is no argument 'town' ({arguments.town})."],
        "select": ["This is no JMESPath expression."],
    }
    assert reply["notices"] == {
        "arguments-1-name": ["The argument 'city' is used nowhere in the request."]
    }
    assert not Primitive.objects.filter(name="order").exists()


def test_an_argument_that_only_a_question_uses_is_used(operator: Client) -> None:
    question = {
        "questions-0-key": "sure",
        "questions-0-message": "In {arguments.city}?",
        "questions-0-requested_schema": '{"type": "object", "properties": {"a": {"type": "boolean"}}}',
    }
    assert checked(operator, **{**ROWS, "query-0-value": "1", **question})["notices"] == {}


def test_rows_become_a_schema_and_a_schema_becomes_rows(operator: Client) -> None:
    as_schema = checked(operator, **ROWS)["arguments"]["schema"]
    assert json.loads(as_schema) == OF_ROWS
    reply = checked(operator, input_schema=as_schema)["arguments"]
    assert [row["name"] for row in reply["rows"]] == ["country", "city"]
    assert (reply["rows"][0]["choices"], reply["others"]) == ("ch\nde", False)
    assert checked(operator, input_schema="")["arguments"]["rows"] == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({**ROWS, "arguments-0-name": ""}, "Correct the marked arguments first."),
        ({"input_schema": "{"}, "Correct the schema first."),
        ({"input_schema": '{"type": "object", "anyOf": [{}]}'}, '"anyOf"'),
    ],
)
def test_arguments_that_cannot_be_shown_in_the_other_way_say_why(
    operator: Client, changes: dict[str, str], why: str
) -> None:
    assert why in checked(operator, **changes)["arguments"]["why"]


def test_a_saved_tool_is_checked_with_what_its_form_does_not_show(
    operator: Client, acme: Things
) -> None:
    operator.post(NEW, form(**ROWS))
    address = f"{TOOLS}{written().pk}/check-request/"
    assert operator.post(address, form(**ROWS)).json()["problems"] == {}
    assert operator.get(address).status_code == 405
    assert operator.post(f"{TOOLS}{acme.tool}/check-request/", form(**ROWS)).status_code == 200
