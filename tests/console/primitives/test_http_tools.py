"""Tests of tools that are HTTP requests, written in the console."""

import json
from html import escape
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import selectors, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.vault.secrets.services import create_secret
from tests.console.forms.submitted_forms import problems
from tests.console.tenant_data import ACTOR, Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
ONE_ARGUMENT = {"type": "object", "properties": {"id": {"type": "string"}}}
A_FORM = {"type": "object", "properties": {"comment": {"type": "string"}}}

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def form(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "http",
        "name": "order",
        "description": "Reads an order.",
        "method": "GET",
        "url": "https://api.example.com/orders/{arguments.id}",
        "input_schema": json.dumps(ONE_ARGUMENT),
        "statuses": "4xx 5xx",
        **changes,
    }


def written() -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name="order")


def shown(page: Any) -> dict[str, Any]:
    """Return what a browser would send of a form, as it is shown."""
    whole = page.context["form"]
    part = whole.part
    rows = [
        row
        for each in (part.query, part.headers, part.body_fields, part.body_files, part.questions)
        for row in each.filled
    ]
    fields = {bound.html_name: bound.value() for each in (whole, part, *rows) for bound in each}
    return {name: value for name, value in fields.items() if value not in (None, False)}


def test_an_http_tool_is_written_published_and_offered(operator: Client, acme: Things) -> None:
    fields = form(
        **{
            "method": "POST",
            "query-0-name": "page",
            "query-0-value": "1",
            "query-0-written": "form:False",
            "headers-0-name": "X-Key",
            "headers-0-value": "{secrets.api_key}",
            "body": "json",
            "body_json": '{"why": "{answers.reason.comment}"}',
            "questions-0-key": "reason",
            "questions-0-message": "Why?",
            "questions-0-requested_schema": json.dumps(A_FORM),
            "questions-0-when": '{"arguments.id": ["1"]}',
            "select": "items[0]",
            "content": "json",
            "statuses": "404, 5xx",
            "timeout_seconds": "2.5",
            "retries": "0",
            "redirects": "1",
            "repeatable": "no",
            "read_only": "yes",
            "destructive": "no",
            "tasks": "slow",
            "_publish": "",
        }
    )
    create_secret(
        acme.tenant,
        "api_key",
        "a-value-of-it",
        hosts=["api.example.com"],
        places=["header"],
        actor=ACTOR,
    )
    operator.post(NEW, fields)
    tool = written()
    assert (tool.kind, tool.state) == ("http", "published")
    assert tool.config == {
        "input_schema": ONE_ARGUMENT,
        "output_schema": None,
        "questions": [
            {
                "key": "reason",
                "message": "Why?",
                "requested_schema": A_FORM,
                "when": {"arguments.id": ["1"]},
            }
        ],
        "request": {
            "method": "POST",
            "url": "https://api.example.com/orders/{arguments.id}",
            "query": [{"name": "page", "value": "1", "style": "form", "explode": False}],
            "headers": [{"name": "X-Key", "value": "{secrets.api_key}"}],
            "body": {"type": "json", "value": {"why": "{answers.reason.comment}"}},
            "timeout_seconds": 2.5,
            "retries": 0,
            "redirects": 1,
            "repeatable": False,
        },
        "response": {"select": "items[0]", "content": "json", "errors": ["404", "5xx"]},
        "read_only": True,
        "destructive": False,
        "idempotent": None,
        "tasks": "slow",
    }
    assert "order" in [each.name for each in selectors.offering(acme.tenant).tools]


IMPORTED: dict[str, Any] = {
    "source": "POST /orders",
    "input_schema": ONE_ARGUMENT,
    "request": {
        "method": "POST",
        "url": "https://api.example.com/orders",
        "query": [
            {"name": "a", "value": "{arguments.id}", "style": "pipeDelimited", "explode": False},
            {"name": "b", "value": "{arguments.id}", "style": "deepObject", "explode": True},
        ],
        "body": {
            "type": "form",
            "fields": [{"name": "c", "value": "{arguments.id}", "style": "json", "explode": False}],
        },
    },
    "response": {"most_bytes": 1000},
}


def imported(acme: Things, config: dict[str, Any] = IMPORTED) -> str:
    fields = PrimitiveFields("order", config, kind="http", description="Reads an order.")
    return f"{TOOLS}{services.create(acme.tenant, fields, ACTOR).id}/edit/"


@pytest.mark.parametrize(
    "body",
    [
        IMPORTED["request"]["body"],
        {"type": "json", "value": None},
        {"type": "json", "value": 1, "media_type": "application/vnd.api+json; ext=bulk"},
        {"type": "text", "text": "{arguments.id}\n", "media_type": "text/csv"},
        {"type": "bytes", "content": "{arguments.id}", "media_type": "image/png"},
        {"type": "bytes", "content": "{arguments.id}"},
        {"type": "form", "fields": [], "more": "{arguments.id}"},
        {
            "type": "multipart",
            "fields": [{"name": "a", "value": "b", "style": "json", "media_type": "text/csv"}],
            "files": [],
            "more": "{arguments.id}",
        },
        None,
    ],
)
def test_saving_an_unchanged_form_changes_nothing(operator, acme, body):
    config = {**IMPORTED, "request": {**IMPORTED["request"], "body": body}}
    page = imported(acme, config)
    assert operator.post(page, shown(operator.get(page))).status_code == 302
    assert written().config == config


def test_serialization_styles_of_values_survive_an_edit(operator: Client, acme: Things) -> None:
    url = "https://api.example.com/{arguments.id}"
    field = {"name": "a", "value": "{arguments.id}", "style": "form", "explode": False}
    request = {
        "method": "GET",
        "url": url,
        "body": None,
        "path": [{"name": "x", "value": "{arguments.id}", "style": "label", "explode": True}],
        "query": [{**field, "allow_reserved": True}],
        "headers": [
            {"name": "X-A", "value": "{arguments.id}", "style": "json", "explode": False},
            {"name": "X-B", "value": "{arguments.id}", "style": "simple", "explode": True},
            {"name": "X-C", "value": "{arguments.id}"},
        ],
    }
    page = imported(acme, {**IMPORTED, "request": request})
    fields = {**shown(operator.get(page)), "url": f"{url}/b"}
    assert operator.post(page, fields).status_code == 302
    saved = written().config["request"]
    assert {name: saved[name] for name in request} == {**request, "url": f"{url}/b"}


def test_settings_that_the_form_does_not_show_survive_an_edit(
    operator: Client, acme: Things
) -> None:
    page = imported(acme)
    fields = {**shown(operator.get(page)), "url": "https://api.example.com/v2/orders"}
    assert operator.post(page, fields).status_code == 302
    config = written().config
    assert (config["source"], config["response"]["most_bytes"]) == ("POST /orders", 1000)
    assert config["request"]["query"] == IMPORTED["request"]["query"]
    assert config["request"]["body"] == IMPORTED["request"]["body"]
    assert config["request"]["url"] == "https://api.example.com/v2/orders"


def schema(text: str) -> dict[str, str]:
    return {"input_schema": text}


def body(type_: str, **fields: str) -> dict[str, str]:
    return {"method": "POST", "body": type_, **fields}


def question(row: int, schema: str = "", when: str = "") -> dict[str, str]:
    fields = {"key": "a", "message": "b", "requested_schema": schema, "when": when}
    return {f"questions-{row}-{name}": value for name, value in fields.items() if value}


def row(rows: str, name: str, value: str) -> dict[str, str]:
    return {f"{rows}-name": name, f"{rows}-value": value}


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"url": "orders"}, "url", "whole address"),
        ({"url": "https://api.example.com/{arguments.other}"}, "url", "no argument 'other'"),
        (row("query-7", "a", "{nonsense}"), "query.value", "no placeholder"),
        (row("headers-0", "Host", "a"), "headers.name", "platform sets Host"),
        (schema('{\n  "type": }'), "input_schema", "(line 2, column 11)"),
        (schema('{"type": 3}'), "input_schema", ""),
        (schema('{"a": "\\u0000"}'), "input_schema", "u0000"),
        (schema(f'{{"a": {"9" * 5000}}}'), "input_schema", "64 bits"),
        (schema('{"a":' * 100_000), "input_schema", "deeper than"),
        (body("json", body_json='{"a": tru}'), "body_json", "line 1, column 7"),
        (body("form", **row("fields-0", "a", "{b}")), "body_fields.value", "no placeholder"),
        (body("text", body_text="{secrets.a}"), "body_text", "A secret may stand"),
        ({"body": "text", "body_text": "a"}, "body", "GET request has no body"),
        ({"statuses": "teapot"}, "statuses", "A status is"),
        ({"timeout_seconds": "1000"}, "timeout_seconds", "120"),
        (question(0), "questions.requested_schema", "required"),
        (
            question(3, json.dumps(A_FORM), '{"answers.b.comment": [1]}'),
            "questions.when",
            "no earlier question 'b'",
        ),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_typed_values_are_kept(
    operator, changes, where, said
):
    page = operator.post(NEW, {**form(**changes), "_publish": ""})
    assert page.status_code == 200
    assert said in problems(page.context["form"], where)
    text = page.content.decode()
    assert "Nothing was saved" in text
    for value in changes.values():
        assert escape(value).replace("&#x27;", "&#39;") in text
    assert not Primitive.objects.filter(name="order").exists()


EVERYTHING_WRONG = {
    "name": "two words",
    "title": "x" * 2000,
    "method": "GET",
    "url": "ftp://api.example.com/{arguments.nope}",
    "query-0-name": "",
    "query-0-value": "{arguments.nope}",
    "query-1-name": "page",
    "query-1-value": "{arguments.neither}",
    "headers-0-name": "Host",
    "headers-0-value": "x",
    "body": "text",
    "body_text": "{b}",
    "questions-0-key": "a b",
    "questions-0-message": "{arguments.no_message}",
    "questions-0-requested_schema": '{"type": "object", "properties": {"x": {"type": "array"}}}',
    "output_schema": '{"type": "strng"}',
    "select": "nothing(a)",
    "statuses": "teapot",
    "timeout_seconds": "999",
    "retries": "9",
}
WHERE = {
    "name": "",
    "title": "",
    "url": "whole address",
    "query.name": "It is required.",
    "query.value": "There is no argument 'nope'",
    "headers.name": "The platform sets Host itself",
    "body": "A GET request has no body",
    "body_text": "no placeholder",
    "questions.key": "A key has 1 to 64",
    "questions.message": "There is no argument 'no_message'",
    "questions.requested_schema": "",
    "output_schema": "not legal",
    "select": "JMESPath has no function nothing()",
    "statuses": "A status is",
    "timeout_seconds": "at most 120",
    "retries": "at most 3",
}


def errors_of(page: Any) -> dict[str, str]:
    """Return all errors of a form by their fields, those of rows as `<rows>.<field>`."""
    whole = page.context["form"]
    found = {name: str(errors) for name, errors in {**whole.errors, **whole.part.errors}.items()}
    for name in ("query", "headers", "body_fields", "questions"):
        for row in getattr(whole.part, name).filled:
            for field, errors in row.errors.items():
                at = f"{name}.{field}"
                found[at] = found.get(at, "") + str(errors)
    return {name: text.replace("&#x27;", "'") for name, text in found.items()}


def test_everything_wrong_is_reported_at_once_at_its_field(operator: Client) -> None:
    errors = errors_of(operator.post(NEW, form(**EVERYTHING_WRONG)))
    assert errors.keys() == WHERE.keys()
    for name, words in WHERE.items():
        assert words in errors[name], name
    assert not any("pattern" in text or "String should" in text for text in errors.values())


@pytest.mark.parametrize(
    ("unreadable", "hidden"),
    [
        ({"body": "json", "body_json": "{", "method": "POST"}, {"body", "body_text"}),
        ({"input_schema": "{"}, {"query.value", "questions.message"}),
        ({"retries": "many"}, set()),
        ({"output_schema": "["}, set()),
    ],
)
def test_what_cannot_be_read_hides_only_what_depends_on_it(
    operator: Client, unreadable: dict[str, str], hidden: set[str]
) -> None:
    errors = errors_of(operator.post(NEW, form(**{**EVERYTHING_WRONG, **unreadable})))
    read = {name for name in unreadable if name not in ("body", "method")}
    assert errors.keys() == (WHERE.keys() | read) - hidden


def test_an_unreadable_row_hides_no_problem_of_the_other_fields(operator: Client) -> None:
    fields = {**EVERYTHING_WRONG, "questions-0-requested_schema": "{"}
    errors = errors_of(operator.post(NEW, form(**fields)))
    assert errors.keys() == WHERE.keys() | {"questions.requested_schema"}


def test_an_edit_reports_everything_at_once_and_keeps_its_own_name(operator: Client) -> None:
    operator.post(NEW, form())
    path = f"{TOOLS}{written().pk}/edit/"
    fields = {"name": "order", "retries": "many", "statuses": "teapot", "select": "nothing(a)"}
    errors = errors_of(operator.post(path, form(**fields)))
    assert errors.keys() == {"retries", "statuses", "select"}


def test_a_missing_secret_stops_publishing_at_its_field_and_saving_only_warns(operator):
    header = {"headers-0-name": "X-Key", "headers-0-value": "{secrets.api_key}"}
    page = operator.post(NEW, form(**header, _publish=""))
    (row,) = page.context["form"].part.headers.filled
    assert row.errors["value"] == [
        "There is no secret 'api_key'. Store it under Secrets, or name another one."
    ]
    assert not Primitive.objects.filter(name="order").exists()
    saved = operator.post(NEW, form(**header), follow=True)
    assert written().state == "draft"
    assert "Cannot be published:" in saved.content.decode()
    assert "There is no secret" in saved.content.decode()


def test_a_question_that_cannot_be_read_hides_no_other_problem(operator: Client) -> None:
    wrong = form(
        url="https://api.example.com/{arguments.no}",
        **{
            "questions-0-key": "reason",
            "questions-0-message": "Why?",
            "questions-0-requested_schema": "{",
            "query-0-name": "why",
            "query-0-value": "{answers.reason.comment}",
            "query-1-name": "else",
            "query-1-value": "{answers.other.comment}",
        },
    )
    page = operator.post(NEW, wrong)
    sent = page.context["form"]
    assert "JSON" in problems(sent, "questions.requested_schema")
    assert "no argument 'no'" in problems(sent, "url")
    first, second = sent.part.query.filled
    assert not first.errors, "the question may have this answer"
    assert "There is no answer" in str(second.errors["value"])
