"""Tests of how the pages of tools show their definition, and name what is wrong with it."""

import pytest
from django.test import Client

from mcphost.catalogue.models import Primitive
from mcphost.catalogue.selectors import primitive
from mcphost.console.primitives.definitions import labelled
from tests.console.tenant_data import Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
URL = "https://api.example.com/orders"

pytestmark = pytest.mark.django_db


def test_a_problem_is_shown_at_the_field_of_its_path(operator: Client, acme: Things) -> None:
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
        assert labelled(row.tenant_id, row.fields, {path: ["No."]}) == [(label, "No.", anchor)]
    assert labelled(row.tenant_id, row.fields, {}) == []
