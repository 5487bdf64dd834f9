"""OpenAPI documents are imported through the API: what was previewed, all of it or nothing."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from mcphost.api.resources import openapi_imports
from mcphost.audit.models import Entry
from mcphost.catalogue.models import Primitive
from mcphost.serving.user_slots import IMPORTS
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.cast import Cast
from tests.console.primitives.test_imports import document, with_page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_here")]

IMPORT = "/api/v1/tenants/acme/imports"
ORDERS, ORDER, FILES = "GET /orders", "POST /orders", "POST /files"


def body(*sources: str, content: str = "", **operation: Any) -> dict[str, Any]:
    """Return a request that imports these operations."""
    operations = [{"source": source, **operation} for source in sources]
    return {"content": content or document(), "operations": operations}


def previewed(client: ApiClient, sent: dict[str, Any]) -> Any:
    response = client.send("POST", f"{IMPORT}/preview", sent)
    assert response.status_code == 200, response.content
    return response.json()


def applied(client: ApiClient, sent: dict[str, Any], **headers: str) -> Any:
    """Preview and apply."""
    digest = previewed(client, sent)["digest"]
    return client.send("POST", f"{IMPORT}/apply", {**sent, "digest": digest}, **headers)


@pytest.fixture
def tool(owner: ApiClient) -> Iterator[str]:
    """The address of an imported tool."""
    response = applied(owner, body(ORDERS))
    yield f"/api/v1/tenants/acme/tools/{response.json()['tools'][0]['id']}"


def test_a_preview_says_what_becomes_a_tool_what_does_not_and_why(owner: ApiClient) -> None:
    listing = previewed(owner, body())
    states = {row["source"]: (row["state"], bool(row["reason"])) for row in listing["operations"]}
    assert states == {
        ORDERS: ("new", False),
        ORDER: ("new", False),
        FILES: ("unsupported", True),
    }
    assert not listing["ready"]
    preview = previewed(owner, body(ORDERS, ORDER))
    assert preview["ready"]
    assert preview["missing_secrets"] == [{"name": "key", "hosts": ["api.example.com"]}]
    by_source = {row["source"]: row for row in preview["operations"]}
    assert by_source[ORDERS]["config"]["request"]["url"] == "https://api.example.com/orders"
    assert by_source[FILES]["config"] is None
    assert not Primitive.objects.filter(tenant__slug="acme", kind="http").exists()


def test_applying_creates_the_drafts_of_the_preview(owner: ApiClient) -> None:
    sent = body(ORDERS, name="all_orders", description="Reads them.")
    created = applied(owner, sent).json()["tools"]
    assert [(tool["name"], tool["source"]) for tool in created] == [("all_orders", ORDERS)]
    shown = owner.get(f"/api/v1/tenants/acme/tools/{created[0]['id']}").json()
    assert (shown["state"], shown["description"]) == ("draft", "Reads them.")
    assert Entry.objects.filter(action="tool.created").count() == 1


def test_a_refused_operation_stops_the_whole_import(owner: ApiClient) -> None:
    sent = body(ORDERS, ORDER, name="same")
    sent["operations"][0]["name"] = "two words"
    preview = previewed(owner, sent)
    (refused,) = (row for row in preview["operations"] if row["problems"])
    assert (refused["source"], preview["ready"]) == (ORDERS, False)
    response = applied(owner, sent)
    assert response.status_code == 422
    pointers = {fault["pointer"] for fault in response.json()["errors"]}
    assert pointers == {"/operations/GET ~1orders"}
    same = body(ORDERS, ORDER, name="same")
    assert not previewed(owner, same)["ready"]
    assert applied(owner, same).status_code == 422
    assert not Primitive.objects.filter(tenant__slug="acme", kind="http").exists()


def test_another_import_than_the_one_previewed_is_refused(owner: ApiClient, tool: str) -> None:
    changed = body(ORDERS, content=with_page(description="New."))
    digest = previewed(owner, changed)["digest"]
    owner.send("PATCH", tool, {"title": "Mine"}, etag="*")
    response = owner.send("POST", f"{IMPORT}/apply", {**changed, "digest": digest})
    assert response.status_code == 412
    other = body(ORDERS, content=with_page(description="Other."))
    digest = previewed(owner, changed)["digest"]
    response = owner.send("POST", f"{IMPORT}/apply", {**other, "digest": digest})
    assert response.status_code == 412
    assert owner.get(tool).json()["description"] != "Other."


def test_a_change_is_taken_over_and_a_conflict_waits_for_a_choice(
    owner: ApiClient, tool: str
) -> None:
    owner.send("PATCH", tool, {"description": "Mine."}, etag="*")
    text = with_page(description="Theirs.")
    preview = previewed(owner, body(ORDERS, content=text))
    (row,) = (row for row in preview["operations"] if row["selected"])
    conflicts = {change["part"]: change["conflict"] for change in row["changes"]}
    assert conflicts == {
        "Description": True,
        "Argument page": False,
        "Parameter of the query page": False,
    }
    assert (preview["ready"], row["state"]) == (False, "changed")
    assert applied(owner, body(ORDERS, content=text)).status_code == 422
    response = applied(owner, body(ORDERS, content=text, conflicts="document"))
    assert response.status_code == 200
    shown = owner.get(tool).json()
    assert shown["description"] == "Theirs."
    assert "page" in str(shown["config"])
    again = owner.send("POST", f"{IMPORT}/preview", body(ORDERS, content=text))
    assert again.json()["errors"][0]["detail"] == "There is nothing to change."


def test_a_repeated_import_gets_the_first_response(owner: ApiClient) -> None:
    sent = body(ORDERS)
    digest = previewed(owner, sent)["digest"]
    first, second = (
        owner.send("POST", f"{IMPORT}/apply", {**sent, "digest": digest}, Idempotency_Key="one")
        for _ in range(2)
    )
    assert first.content == second.content
    assert second.headers["Idempotent-Replayed"] == "true"


def test_the_first_response_also_comes_if_the_same_import_ended_while_this_one_was_read(
    owner: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = body(ORDERS)
    sent["digest"] = previewed(owner, sent)["digest"]
    read, responses = openapi_imports.tenant_secrets, []

    def apply() -> Any:
        return owner.send("POST", f"{IMPORT}/apply", sent, Idempotency_Key="one")

    def read_late(tenant: UUID) -> Any:
        """Let another process do it first."""
        monkeypatch.setattr(openapi_imports, "tenant_secrets", read)
        responses.append(apply())
        return read(tenant)

    monkeypatch.setattr(openapi_imports, "tenant_secrets", read_late)
    second = apply()
    assert (second.status_code, second.content) == (200, responses[0].content)
    assert second.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({}, "/content"),
        ({"content": "a", "url": "https://a.example"}, "/content"),
        ({"content": "no: document"}, "/content"),
        ({"content": "{", "base_url": "nowhere"}, "/base_url"),
        ({"content": document(), "operations": [{"source": FILES}]}, "/operations/0/source"),
        ({"content": document(), "operations": [{"source": "GET /x"}]}, "/operations/0/source"),
        ({"content": document(), "secrets": {"key": "unknown"}}, "/secrets/key"),
        ({"content": document(), "header": {"name": "a b", "value": "x"}}, "/header"),
        ({"url": "https://localhost/openapi.json"}, "/content"),
    ],
)
def test_what_cannot_be_imported_is_refused_by_its_field(
    owner: ApiClient, sent: dict[str, Any], pointer: str
) -> None:
    response = owner.send("POST", f"{IMPORT}/preview", sent)
    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]


def test_an_import_waits_for_another_one_of_the_user(cast: Cast, clients: ApiClients) -> None:
    with IMPORTS.of(cast.owner.user.pk, cast.acme.id):
        response = clients.owner.send("POST", f"{IMPORT}/preview", body())
    assert (response.status_code, response.headers["Retry-After"]) == (429, "2")
