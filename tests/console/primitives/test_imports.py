"""Tests of the page that imports the operations of an OpenAPI document."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue.models import Primitive
from mcphost.console.primitives.imports import MOST_BYTES, MOST_LISTED
from tests.console.things import Things

PAGE = "/admin/t/acme/tools/import/"
EVIL = "<script>alert(1)</script>{{ 7*7 }}"
YAML = """\
openapi: 3.1.0
servers: [{url: https://api.example.com}]
paths:
  /pets: {get: {operationId: pets, description: Lists pets.}}
"""

pytestmark = pytest.mark.django_db


def document(**paths: Any) -> str:
    """Return a document with two operations that become tools, one that does not, and `paths`."""
    listed = {
        "/orders": {
            "get": {"operationId": "orders", "summary": "Lists orders"},
            "post": {
                "operationId": "order",
                "security": [{"key": []}],
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
            },
        },
        "/files": {"post": {"requestBody": {"content": {"application/zip": {}}}}},
        **paths,
    }
    return json.dumps(
        {
            "openapi": "3.1.0",
            "servers": [{"url": "https://api.example.com"}],
            "components": {
                "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
            },
            "paths": listed,
        }
    )


def made() -> dict[str, Primitive]:
    rows = Primitive.objects.filter(tenant__slug="acme", kind="http")
    return {row.config["source"]: row for row in rows}


def states(page: Any) -> dict[str, str]:
    """Return what the page says of each operation."""
    return {
        each.operation.source: "new"
        if each.is_new
        else each.operation.problem or ("same" if each.is_same else "differs")
        for each in page.context["listed"]
    }


def test_operations_are_listed_with_the_reasons_of_those_that_cannot_be_tools(
    operator: Client, acme: Things
) -> None:
    page = operator.post(PAGE, {"document": document()})
    said = states(page)
    assert list(said) == ["GET /orders", "POST /orders", "POST /files"]
    assert said["GET /orders"] == said["POST /orders"] == "new"
    assert "application/zip" in said["POST /files"]
    text = page.content.decode()
    assert said["POST /files"] in text
    assert "must be the API key" in text
    assert "canary_acme_secret" in text
    assert not made()


def test_the_chosen_ones_become_drafts_with_names_and_secrets(
    operator: Client, acme: Things
) -> None:
    page = operator.post(PAGE, {"document": document()})
    fields = {
        "document": page.context["form"].compact,
        "chosen": ["POST /orders", "POST /files", "GET /nowhere"],
        "name-1": "make_order",
        "secret-0": "canary_acme_secret",
        "_create": "",
    }
    assert operator.post(PAGE, fields)["Location"] == "/admin/t/acme/tools/"
    assert list(made()) == ["POST /orders"]
    row = made()["POST /orders"]
    assert (row.name, row.state, row.description) == ("make_order", "draft", "POST /orders")
    assert row.config["request"]["headers"] == [
        {"name": "X-Key", "value": "{secrets.canary_acme_secret}"}
    ]
    assert "1 draft is created" in operator.get("/admin/t/acme/tools/").content.decode()
    assert operator.get(f"/admin/t/acme/tools/{row.id}/edit/").status_code == 200


def test_without_a_choice_the_secret_is_the_one_that_the_document_names(
    operator: Client, acme: Things
) -> None:
    fields = {"document": document(), "chosen": "POST /orders", "secret-0": "no-such-one"}
    operator.post(PAGE, {**fields, "_create": ""})
    (header,) = made()["POST /orders"].config["request"]["headers"]
    assert header["value"] == "{secrets.key}"


def test_importing_again_shows_what_exists_and_what_differs(operator: Client, acme: Things) -> None:
    create = {"chosen": ["GET /orders", "POST /orders"], "_create": ""}
    operator.post(PAGE, {"document": document(), **create})
    changed = json.loads(document())
    changed["paths"]["/orders"]["get"]["parameters"] = [{"name": "page", "in": "query"}]
    changed["paths"]["/pets"] = {"get": {"operationId": "pets"}}
    again = {"document": json.dumps(changed), **create}
    page = operator.post(PAGE, again)
    said = states(page)
    assert "Choose at least one" in page.content.decode()
    assert (said["GET /orders"], said["POST /orders"], said["GET /pets"]) == (
        "differs",
        "same",
        "new",
    )
    names = {"name-0": "other_orders", "name-1": "other_order"}
    elsewhere = operator.post(PAGE, {**again, **names, "base_url": "https://other.example.com"})
    assert elsewhere.status_code == 302
    assert len(Primitive.objects.filter(kind="http")) == 4


def test_what_was_changed_in_the_form_but_is_not_of_the_document_is_still_the_same(
    operator: Client, acme: Things
) -> None:
    operator.post(PAGE, {"document": document(), "chosen": "GET /orders", "_create": ""})
    row = made()["GET /orders"]
    row.config["response"] = {"select": "items"}
    row.config["request"]["timeout_seconds"] = 5
    row.save()
    assert states(operator.post(PAGE, {"document": document()}))["GET /orders"] == "same"


def test_an_operation_is_the_same_whatever_secret_it_uses(operator: Client, acme: Things) -> None:
    fields = {"chosen": "POST /orders", "secret-0": "canary_acme_secret", "_create": ""}
    operator.post(PAGE, {"document": document(), **fields})
    assert states(operator.post(PAGE, {"document": document()}))["POST /orders"] == "same"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no blanks", "A name is"),
        ("canary-acme-tool", "Another tool"),
        ("orders", "Another tool"),
    ],
)
def test_one_that_is_wrong_stops_all_and_says_so_beside_it(
    operator: Client, acme: Things, name: str, said: str
) -> None:
    entries = Entry.objects.count()
    fields = {
        "document": document(),
        "chosen": ["GET /orders", "POST /orders"],
        "name-1": name,
        "_create": "",
    }
    page = operator.post(PAGE, fields)
    problems = {each.operation.source: each.problems for each in page.context["listed"]}
    assert said in " ".join(problems["POST /orders"])
    assert not problems["GET /orders"]
    assert f'value="{name}"' in page.content.decode()
    assert "Nothing was created" in page.content.decode()
    assert not made()
    assert Entry.objects.count() == entries


def test_a_text_that_cannot_be_stored_is_refused(operator: Client, acme: Things) -> None:
    parameter = {"name": "a", "in": "query", "description": "a\0b", "schema": {"type": "string"}}
    fields = {
        "document": document(
            **{"/nul": {"get": {"operationId": "nul", "parameters": [parameter]}}}
        ),
        "chosen": "GET /nul",
        "_create": "",
    }
    assert "u0000" in operator.post(PAGE, fields).content.decode()
    assert not made()


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({}, "document", "paste a document"),
        ({"document": "{"}, "document", "neither JSON nor YAML"),
        ({"document": "[" * 5000}, "document", "nested too deep"),
        ({"document": '{"swagger": "2.0"}'}, "document", "Swagger 2.0"),
        ({"document": "a" * (MOST_BYTES + 1)}, "document", "larger than 1.5 MiB"),
        (
            {"file": SimpleUploadedFile("a.yaml", b"a" * (MOST_BYTES + 1))},
            "file",
            "larger than 1.5 MiB",
        ),
        ({"file": SimpleUploadedFile("a.yaml", b"\xff\xfe\x00")}, "file", ""),
        ({"document": document(), "base_url": "http://["}, "base_url", "whole address"),
        ({"document": document(), "base_url": "api"}, "base_url", "whole address"),
        ({"document": document(), "below": "/nowhere"}, "__all__", "no operations"),
    ],
)
def test_what_cannot_be_read_says_why(
    operator: Client, acme: Things, fields: dict[str, Any], field: str, said: str
) -> None:
    page = operator.post(PAGE, fields)
    assert page.status_code == 200
    assert said in " ".join(page.context["form"].errors[field])
    assert not page.context["listed"]


def test_an_address_of_a_server_that_cannot_be_read_is_said_beside_each_operation(
    operator: Client, acme: Things
) -> None:
    unreadable = document().replace("https://api.example.com", "http://[")
    said = states(operator.post(PAGE, {"document": unreadable}))
    for operation in ("GET /orders", "POST /orders"):
        assert "address of its server cannot be read: http://[" in said[operation]
    assert "new" not in said.values()


def test_a_file_of_yaml_is_carried_to_the_next_page(operator: Client, acme: Things) -> None:
    page = operator.post(PAGE, {"file": SimpleUploadedFile("pets.yaml", YAML.encode())})
    carried = {"document": page.context["form"].compact, "chosen": "GET /pets", "_create": ""}
    operator.post(PAGE, carried)
    assert made()["GET /pets"].description == "Lists pets."


def test_many_operations_fit_a_form_and_the_others_are_found_by_their_path(
    operator: Client, acme: Things
) -> None:
    many = {f"/many/{n}": {"get": {"operationId": f"many_{n}"}} for n in range(MOST_LISTED + 5)}
    page = operator.post(PAGE, {"document": document(**many)})
    assert len(page.context["listed"]) == MOST_LISTED
    assert "8 more operations" in page.content.decode()
    listed = page.context["listed"]
    every = {f"name-{each.number}": each.name for each in listed}
    chosen = [each.operation.source for each in listed]
    wanted = {"document": document(**many), "chosen": chosen, **every, "below": "/many/404"}
    last = operator.post(PAGE, wanted)
    assert list(states(last)) == ["GET /many/404"]


def test_hostile_texts_are_escaped(operator: Client, acme: Things) -> None:
    evil = {f"/{EVIL}": {"get": {"operationId": EVIL, "summary": EVIL}}}
    text = operator.post(PAGE, {"document": document(**evil)}).content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_only_those_who_write_tools_import_them(
    auditor: Client, operator: Client, acme: Things
) -> None:
    fields = {"document": document(), "chosen": "GET /orders", "_create": ""}
    assert auditor.get(PAGE).status_code == auditor.post(PAGE, fields).status_code == 403
    assert not made()
    assert PAGE in operator.get("/admin/t/acme/tools/").content.decode()
    assert PAGE not in auditor.get("/admin/t/acme/tools/").content.decode()
