"""Tests of how the pages of tools show their definition, and name what is wrong with it."""

from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue.models import Primitive
from mcphost.catalogue.selectors import primitive
from mcphost.console.primitives.definitions import definition_of, labelled
from mcphost.kinds.primitive_types import PrimitiveType
from tests.console.things import Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
EVIL = "<script>alert(1)</script>"
URL = "https://api.example.com/orders"

pytestmark = pytest.mark.django_db


def parts(kind: str, config: Any, sort: PrimitiveType = PrimitiveType.TOOL) -> dict[str, Any]:
    return {each.label: each.value for each in definition_of(sort, kind, config)}


def test_a_request_is_shown_as_it_is_sent() -> None:
    question = {"key": "why", "message": "Why?", "requested_schema": {"type": "object"}}
    request = {
        "method": "POST",
        "url": URL,
        "query": [{"name": "a", "value": "{arguments.a}"}, {"name": "b", "value": "2"}],
        "headers": [{"name": "X-Key", "value": "{secrets.key}"}],
        "body": {"type": "json", "value": {"a": "{answers.why.b}"}},
    }
    config = {"request": request, "questions": [{**question, "when": {"arguments.a": [1]}}]}
    shown = parts("http", {**config, "response": {"select": "items"}})
    head = f"POST {URL}\n  ?a={{arguments.a}}\n  &b=2\nX-Key: {{secrets.key}}\n\n"
    assert shown["Request"] == head + '{\n  "a": "{answers.why.b}"\n}'
    assert shown["Input request why"].startswith("Why?\nOnly if {")
    assert (shown["Response why"], shown["Expression"]) == ({"type": "object"}, "items")


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        ({"type": "text", "text": "Hi"}, "\n\nHi"),
        ({"type": "form", "fields": [{"name": "a", "value": "b"}]}, "\n\na=b"),
        (
            {
                "type": "multipart",
                "files": [{"name": "f", "content": "{arguments.f}", "file_name": "f.txt"}],
            },
            "\n\nf=file {arguments.f} (f.txt)",
        ),
    ],
)
def test_each_type_of_body_is_shown(body: dict[str, Any], ends: str) -> None:
    shown = parts("http", {"request": {"method": "POST", "url": URL, "body": body}})
    assert shown["Request"] == f"POST {URL}{ends}"


def test_other_kinds_are_shown_by_their_fields() -> None:
    assert parts("script", {"code": "def f(): pass"}) == {"Script": "def f(): pass"}
    assert parts("python", {"function": "demo.echo"}) == {"Python function": "demo.echo"}
    file = {"uri": "docs://a", "blob": "QUJD"}
    shown = parts("text", file, PrimitiveType.RESOURCE)
    assert shown == {"URI": "docs://a", "Blob": "4 characters of Base64"}
    assert parts("http", {"request": 5}) == {"Configuration": {"request": 5}}


def test_what_is_wrong_is_named_by_the_labels_of_the_form_with_a_link(operator, acme):
    operator.post(NEW, {"kind": "http", "name": "order", "description": "d", "method": "GET",
                        "url": URL, "headers-0-name": "X-Key",
                        "headers-0-value": "{secrets.missing}"})  # fmt: skip
    path = f"{TOOLS}{Primitive.objects.get(name='order').id}/"
    page = operator.get(path).content.decode()
    link = f'<a href="{path}edit/#id_headers-0-value">Header 1, Value</a>: There is no secret'
    assert link in page
    assert 'id="id_headers-0-value"' in operator.get(f"{path}edit/").content.decode()
    refused = operator.post(f"{path}publish/", follow=True).content.decode()
    assert "Nothing was changed. Header 1, Value: There is no secret" in refused
    assert "config.request" not in refused


def test_a_problem_is_placed_by_its_path(operator: Client, acme: Things) -> None:
    operator.post(NEW, {"kind": "http", "name": "order", "description": "d", "method": "POST",
                        "url": URL, "body": "json", "body_json": "{}",
                        "query-0-name": "a", "query-0-value": "1"})  # fmt: skip
    row = primitive(Primitive.objects.get(name="order").id)
    assert row is not None
    for path, label, anchor in (
        ("config.request.url", "Address", "id_url"),
        ("config.request.query.0.value", "Query parameter 1, Value", "id_query-0-value"),
        ("config.request.query.7.value", "Content", ""),
        ("config.request.body.value", "JSON", "id_body_json"),
        ("config.response.errors.0", "Statuses that are errors", "id_statuses"),
        ("config.nothing", "Content", ""),
        ("description", "Description", "id_description"),
        ("icons", "Icons", ""),
    ):
        assert labelled(row, {path: ["No."]}) == [(label, "No.", anchor)]
    assert labelled(row, {}) == []
