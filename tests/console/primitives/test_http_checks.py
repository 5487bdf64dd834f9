"""Tests of the arguments of an HTTP tool in its form, and of the check while the form is filled in."""

import json
from base64 import b64encode
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue.models import Primitive
from mcphost.vault.models import StoredSecret
from mcphost.vault.secrets.services import create_secret
from tests.console.primitives.test_http_tools import NEW, TOOLS, form, written
from tests.console.tenant_data import ACTOR, Things
from tests.plugins.canaries import CANARY

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
UP = {"type": "object", "properties": {"id": {"type": "string", "examples": [".."]}}}

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
    assert not part["further_arguments"].value()


def test_a_schema_keeps_its_text_while_its_rows_mean_the_same(operator: Client) -> None:
    schema = {**OF_ROWS, "required": ["city", "country"]}
    operator.post(NEW, form(**{**ROWS, "arguments_as": "", "input_schema": json.dumps(schema)}))
    tool = written()
    operator.post(f"{TOOLS}{tool.pk}/edit/", form(**ROWS, **{"arguments-1-required": "on"}))
    assert written().config["input_schema"]["required"] == ["city", "country"]


def test_a_form_of_which_rows_are_wrong_comes_back_with_them_and_nothing_is_saved(
    operator: Client,
) -> None:
    page = operator.post(
        NEW, form(**{**ROWS, "arguments-1-name": "country", "timeout_seconds": "900"})
    )
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
    assert (reply["rows"][0]["choices"], reply["further_arguments"]) == ("ch\nde", False)
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


def test_the_preview_is_the_request_of_a_call_with_example_values(operator: Client) -> None:
    body = {"at": "{arguments.at}", "why": "{answers.reason.why}", "points": "{arguments.points}"}
    rows = {
        "arguments-0-example": "de",
        "arguments-2-name": "at",
        "arguments-2-type": "date",
        "arguments-3-name": "points",
        "arguments-3-type": "numbers",
        "arguments-3-default": "[1, 2.5]",
        "questions-0-key": "reason",
        "questions-0-message": "Why?",
        "questions-0-requested_schema": '{"type": "object", "properties": {"why": {"type": "string"}}}',
        "headers-0-name": "X-Days",
        "headers-0-value": "{arguments.points}",
    }
    StoredSecret.objects.all().delete()
    shown = checked(
        operator, **ROWS, **rows, method="POST", body="json", body_json=json.dumps(body)
    )["request"]
    assert shown["method"] == "POST"
    assert shown["url"] == "https://api.example.com/de/weather?city=text"
    assert json.loads(shown["body"]) == {"at": "2026-07-28", "why": "text", "points": [1, 2.5]}
    headers = dict(shown["headers"])
    assert headers["x-days"] == "1,2.5"
    assert headers["content-length"] == str(len(shown["body"]))
    assert headers["accept-encoding"] == "gzip, deflate"


def test_the_preview_has_the_names_of_secrets_and_never_their_values(
    operator: Client, acme: Things
) -> None:
    create_secret(
        acme.tenant,
        "api_key",
        CANARY,
        hosts=["api.example.com"],
        places=["header", "query", "body"],
        actor=ACTOR,
    )
    reply = checked(
        operator,
        **ROWS,
        **{"query-1-name": "key", "query-1-value": "{secrets.api_key}"},
        **{"headers-0-name": "Authorization", "headers-0-value": "Basic me:{secrets.api_key}"},
        **{"headers-1-name": "X-Key", "headers-1-value": "{secrets.unknown}"},
        method="POST",
        body="form",
        **{"fields-0-name": "key", "fields-0-value": "{secrets.api_key}"},
    )
    shown = reply["request"]
    assert shown["url"].endswith("&key={secrets.api_key}")
    assert shown["body"] == "key={secrets.api_key}"
    headers = dict(shown["headers"])
    assert headers["authorization"] == "Basic base64(me:{secrets.api_key})"
    assert "content-length" not in headers
    assert headers["accept-encoding"] == "identity"
    assert CANARY not in json.dumps(reply)
    (sentence,) = reply["notices"]["headers-1-value"]
    assert "unknown" in sentence


STAND = "secret-5f2c9d-{}-d9c2f5"


@pytest.mark.parametrize("name", [b"api_key".hex(), "f", "ff"])
def test_a_text_like_what_stands_for_a_secret_stays_as_it_is(operator: Client, name: str) -> None:
    text = STAND.format(name)
    basic = b64encode(text.encode()).decode()
    reply = checked(
        operator,
        **ROWS,
        **{"query-1-name": "key", "query-1-value": text},
        **{"headers-0-name": "Authorization", "headers-0-value": f"Basic {basic}"},
    )
    assert reply["request"]["url"].endswith(f"&key={text}")
    assert dict(reply["request"]["headers"])["authorization"] == f"Basic {basic}"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"url": ""}, "once the marked fields are correct"),
        ({"body": "json", "method": "POST", "body_json": "{"}, "once the marked fields"),
        ({"input_schema": "{"}, "once the marked fields"),
        ({"questions-0-key": "a", "questions-0-requested_schema": '{"properties": "ab"}'}, "once"),
        ({"input_schema": json.dumps(UP)}, "A call with these values would fail"),
    ],
)
def test_a_request_that_cannot_be_made_says_why(
    operator: Client, changes: dict[str, str], why: str
) -> None:
    assert why in checked(operator, **changes)["request"]["why"]
