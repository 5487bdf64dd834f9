"""Tests of the pages that import the operations of an OpenAPI document."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.catalogue import documents
from mcphost.catalogue.models import KeptDocument, Primitive
from mcphost.kinds.http.openapi_documents import MAX_BYTES
from mcphost.serving.user_slots import IMPORTS
from mcphost.tenants.models import Tenant
from mcphost.vault.secrets.fields import check_new
from tests.cast import Cast

PAGE = "/admin/t/acme/tools/import/"
YAML = """\
openapi: 3.1.0
servers: [{url: https://api.example.com}]
paths:
  /pets: {get: {operationId: pets, description: Lists pets.}}
"""

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme", "jobs_here")]


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
        "/files": {
            "post": {
                "requestBody": {"content": {"application/xml": {"schema": {"type": "object"}}}}
            }
        },
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


def upload(content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("a.yaml", content)


def with_page(**texts: str) -> str:
    """Return the document with an argument for the operation GET /orders, and other texts."""
    changed = json.loads(document())
    changed["paths"]["/orders"]["get"] |= {
        "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}],
        **texts,
    }
    return json.dumps(changed)


def made() -> dict[str, Primitive]:
    rows = Primitive.objects.filter(tenant__slug="acme", kind="http")
    return {row.config["source"]: row for row in rows}


def states(page: Any) -> dict[str, str]:
    """Return what the page says of each operation."""
    found = {}
    for row in page.context["listed"]:
        known = "changed" if row.changes else "same"
        found[row.source] = "new" if row.is_new else row.found_operation.operation.problem or known
    return found


def kept(page: Any) -> dict[str, Any]:
    """Return the field that names the document on later pages."""
    return {"kept": str(page.context["document_import"].kept)}


def listed(browser: Client, text: str) -> dict[str, Any]:
    return kept(browser.post(PAGE, {"document": text, "_list": ""}))


def imported(browser: Client, *sources: str, text: str = "", **fields: Any) -> Any:
    """Import operations without looking at the preview."""
    given = listed(browser, text or document())
    return browser.post(PAGE, {**given, "chosen": sources, **fields, "_create": ""})


def errors(page: Any) -> str:
    return " ".join(text for texts in page.context["form"].errors.values() for text in texts)


def fields_of(page: Any) -> dict[str, str]:
    """Return the fields of the changes on a preview, by their labels."""
    return {
        row.change.label: row.field
        for each in page.context["selected_rows"]
        for row in each.changes
    }


def test_listing_and_previewing_operations_creates_no_tool(operator: Client) -> None:
    page = operator.post(PAGE, {"document": document()})
    said = states(page)
    assert list(said) == ["GET /orders", "POST /orders", "POST /files"]
    assert said["GET /orders"] == said["POST /orders"] == "new"
    assert "application/xml" in said["POST /files"]
    text = page.content.decode()
    for part in (said["POST /files"], "must be the API key", "canary_acme_secret"):
        assert part in text
    fields = {**kept(page), "chosen": ["GET /orders", "POST /files"], "name-0": "all_orders"}
    page = operator.post(PAGE, {**fields, "_preview": ""})
    (row,) = page.context["selected_rows"]
    hints = "read-only, may be repeated"
    assert (row.source, row.name, row.hints) == ("GET /orders", "all_orders", hints)
    text = page.content.decode()
    assert "GET https://api.example.com/orders" in text
    assert 'value="all_orders"' in text
    assert not made()


def test_selected_operations_become_drafts_with_names_descriptions_and_secrets(operator: Client):
    fields = {"name-1": "make_order", "secret:key": "canary_acme_secret"}
    text = {"description-1": "Makes an order."}
    made_now = imported(
        operator, "POST /orders", "POST /files", "GET /nowhere", **{**fields, **text}
    )
    assert made_now["Location"] == "/admin/t/acme/tools/"
    assert list(made()) == ["POST /orders"]
    row = made()["POST /orders"]
    assert (row.name, row.state, row.description) == ("make_order", "draft", "Makes an order.")
    assert row.config["request"]["headers"] == [
        {"name": "X-Key", "value": "{secrets.canary_acme_secret}"}
    ]
    assert "1 draft is created" in operator.get("/admin/t/acme/tools/").content.decode()
    assert operator.get(f"/admin/t/acme/tools/{row.id}/edit/").status_code == 200


def test_importing_again_shows_new_changed_and_removed_operations(operator: Client) -> None:
    imported(operator, "GET /orders", "POST /orders")
    changed = json.loads(with_page())
    del changed["paths"]["/orders"]["post"]
    changed["paths"]["/pets"] = {"get": {"operationId": "pets"}}
    page = operator.post(PAGE, {"document": json.dumps(changed)})
    assert states(page)["GET /orders"] == "changed"
    assert states(page)["GET /pets"] == "new"
    assert [tool.name for tool in page.context["removed"]] == ["order"]
    assert "The document has it no more" in page.content.decode()
    elsewhere = operator.post(PAGE, {**kept(page), "base_url": "https://other.example.com"})
    assert states(elsewhere)["GET /orders"] == "new"
    assert elsewhere.context["removed"] == []


def test_a_change_of_the_document_is_previewed_and_applied(operator: Client) -> None:
    imported(operator, "GET /orders", "POST /orders")
    row = made()["GET /orders"]
    row.title, row.config["response"] = "Mine", {"select": "items"}
    row.save()
    fields = {**listed(operator, with_page()), "chosen": "GET /orders"}
    preview = operator.post(PAGE, {**fields, "_preview": ""})
    assert list(fields_of(preview)) == ["Argument page", "Parameter of the query page"]
    assert made()["GET /orders"].config["input_schema"]["properties"] == {}
    operator.post(PAGE, {**fields, "_create": ""})
    assert "1 tool is changed" in operator.get("/admin/t/acme/tools/").content.decode()
    row = made()["GET /orders"]
    assert row.config["input_schema"]["properties"] == {"page": {"type": "integer"}}
    assert [each["name"] for each in row.config["request"]["query"]] == ["page"]
    assert (row.title, row.config["response"]) == ("Mine", {"select": "items"})
    assert states(operator.post(PAGE, {"document": with_page()}))["GET /orders"] == "same"


def test_a_choice_made_for_an_earlier_change_is_not_applied(operator: Client) -> None:
    imported(operator, "GET /orders")
    rows = Primitive.objects.filter(config__source="GET /orders")
    rows.update(title="Mine")
    fields = {**listed(operator, with_page(summary="Theirs")), "chosen": "GET /orders"}
    field = fields_of(operator.post(PAGE, {**fields, "_preview": ""}))["Title"]
    rows.update(title="Edited meanwhile")
    page = operator.post(PAGE, {**fields, field: "theirs", "_create": ""})
    assert "Choose what to keep" in errors(page)
    assert made()["GET /orders"].title == "Edited meanwhile"


@pytest.mark.parametrize(
    ("name", "said"),
    [("no blanks", "A name is"), ("canary-acme-tool", "Another tool"), ("orders", "Another tool")],
)
def test_an_invalid_operation_stops_the_whole_import_and_is_reported(
    operator: Client, name: str, said: str
):
    given, entries = listed(operator, document()), Entry.objects.count()
    fields = {"chosen": ["GET /orders", "POST /orders"], "name-1": name, "_create": ""}
    page = operator.post(PAGE, {**given, **fields})
    problems = {each.source: each.problems for each in page.context["selected_rows"]}
    assert said in " ".join(problems["POST /orders"])
    assert not problems["GET /orders"]
    assert f'value="{name}"' in page.content.decode()
    assert "Nothing was created" in page.content.decode()
    assert not made()
    assert Entry.objects.count() == entries


def test_a_refused_operation_names_the_part_of_the_document(operator: Client) -> None:
    header = {"header_name": "X-Key", "header_value": "{secrets.api_key} {answers.none}"}
    given = {**listed(operator, document()), **header}
    fields = {"chosen": ["GET /orders"], "description-0": "", "_create": ""}
    (row,) = operator.post(PAGE, {**given, **fields}).context["selected_rows"]
    assert [problem.partition(": ")[0] for problem in row.problems] == ["The header 'X-Key'"]
    too_long = {**fields, "description-0": "x" * 100_000, "header_value": "a"}
    (row,) = operator.post(PAGE, {**given, **too_long}).context["selected_rows"]
    assert [problem.partition(": ")[0] for problem in row.problems] == ["Description"]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({}, "document", "paste a document"),
        ({"document": "{"}, "document", "neither JSON nor YAML"),
        ({"document": '{"swagger": "1.2"}'}, "document", "version 1.2"),
        ({"file": upload(b"a" * (MAX_BYTES + 1))}, "file", "larger than 16 MiB"),
        ({"document": document(), "base_url": "api"}, "base_url", "whole address"),
        ({"url": "http://169.254.169.254/latest"}, "url", "not among the allowed hosts"),
        ({"url": "https://127.0.0.1/openapi.json"}, "url", "public internet"),
        ({"kept": "00000000-0000-0000-0000-000000000000"}, "__all__", "not kept any more"),
    ],
)
def test_an_unreadable_document_is_refused_with_the_reason(operator, fields, field, said):
    page = operator.post(PAGE, fields)
    assert page.status_code == 200
    assert said in " ".join(page.context["form"].errors[field])
    assert not page.context["listed"]
    assert not KeptDocument.objects.exists()


def test_a_document_is_kept_until_its_tools_are_created(operator, monkeypatch):
    monkeypatch.undo()  # jobs have processes of their own
    page = operator.post(PAGE, {"file": upload(YAML.encode())})
    (row,) = KeptDocument.objects.all()
    assert "pets" not in row.content
    fields = {**kept(page), "chosen": "GET /pets"}
    operator.post(PAGE, {**fields, "_preview": ""})
    operator.post(PAGE, {**fields, "_create": ""})
    assert made()["GET /pets"].description == "Lists pets."
    assert not KeptDocument.objects.exists()


def test_a_kept_document_belongs_to_one_user_and_one_tenant(operator, owner, browse, cast, globex):
    given = listed(operator, document())
    assert "not kept any more" in errors(owner.post(PAGE, given))
    stranger = browse(cast.stranger)
    assert "not kept any more" in errors(stranger.post(PAGE.replace("acme", "globex"), given))
    assert not errors(operator.post(PAGE, given))


def test_a_kept_document_expires_after_an_hour_and_is_bound_to_its_row(operator: Client) -> None:
    first, second = (listed(operator, document()) for _ in range(2))
    content = KeptDocument.objects.get(id=first["kept"]).content
    KeptDocument.objects.filter(id=second["kept"]).update(content=content)
    assert "not kept any more" in errors(operator.post(PAGE, second))
    past = timezone.now() - timedelta(hours=1, seconds=1)
    KeptDocument.objects.filter(id=first["kept"]).update(kept_at=past)
    assert "not kept any more" in errors(operator.post(PAGE, first))
    assert documents.prune() == 1
    assert [str(row.id) for row in KeptDocument.objects.all()] == [second["kept"]]


def test_imports_are_limited_to_one_per_user_and_tenant_and_two_per_process(
    operator: Client, cast: Cast
):
    fields = {"document": document()}
    here, other = cast.acme.id, cast.globex.id
    with IMPORTS.of(cast.operator.user.pk, other):
        assert "of yours is in progress" in errors(operator.post(PAGE, fields))
    with IMPORTS.of(-1, here):
        assert "Another user of this tenant" in errors(operator.post(PAGE, fields))
    with IMPORTS.of(-1, other):
        assert not errors(operator.post(PAGE, fields))
        with IMPORTS.of(-2, uuid4()):
            assert "Other tenants import" in errors(operator.post(PAGE, fields))
    assert not errors(operator.post(PAGE, fields))


Answer = tuple[int, Mapping[str, str], bytes]


@contextmanager
def serving(*answers: Answer) -> Iterator[str]:
    """Serve answers on loopback, one after another. Yields the address of the service."""
    left = list(answers)

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = left.pop(0)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Documents)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        Tenant.objects.filter(slug="acme").update(outgoing_hosts=[base])
        with override_settings(MCPHOST_EGRESS_LOOPBACK_PORTS=frozenset({server.server_port})):
            yield base
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_relative_server_of_a_fetched_document_is_resolved_by_its_url(operator: Client) -> None:
    text = YAML.replace("https://api.example.com", "../v2")
    moved = (302, {"Location": "/docs/openapi.yaml"}, b"")
    with serving(moved, (200, {}, text.encode())) as base:
        given = kept(operator.post(PAGE, {"url": f"{base}/latest"}))
        operator.post(PAGE, {**given, "chosen": "GET /pets", "_create": ""})
        assert made()["GET /pets"].config["request"]["url"] == f"{base}/v2/pets"


def api(base: str, *names: str, **more: Any) -> str:
    """Return a document with an operation for each name."""
    paths = {f"/{name}": {"get": {"operationId": f"{base}{name}"}} for name in names}
    servers = [{"url": f"https://api.example.com/{base}"}]
    return json.dumps({"openapi": "3.0.3", "servers": servers, "paths": paths, **more})


@pytest.mark.parametrize("bases", [("crm", "shop"), ("v1", "v2"), ("a", "a/b")])
def test_imports_of_two_apis_on_one_host_are_independent(operator: Client, bases: tuple[str, str]):
    first, second = bases
    imported(operator, "GET /people", "GET /tags", text=api(first, "people", "tags"))
    page = operator.post(PAGE, {"document": api(second, "people", "offers")})
    assert states(page) == {"GET /people": "new", "GET /offers": "new"}
    assert page.context["removed"] == []
    imported(operator, "GET /people", text=api(second, "people", "offers"))
    urls = Primitive.objects.filter(kind="http").values_list("config__request__url", flat=True)
    assert sorted(url for url in urls if url.endswith("people")) == sorted(
        f"https://api.example.com/{base}/people" for base in bases
    )
    page = operator.post(PAGE, {"document": api(first, "people")})
    assert states(page) == {"GET /people": "same"}
    assert [tool.fields.config["source"] for tool in page.context["removed"]] == ["GET /tags"]


def test_a_tool_with_an_edited_address_still_matches_its_operation(operator: Client) -> None:
    imported(operator, "GET /people", text=api("crm", "people"))
    row = made()["GET /people"]
    row.config["request"]["url"] = "https://sandbox.example.com/people"
    row.save()
    assert states(operator.post(PAGE, {"document": api("crm", "people")})) == {
        "GET /people": "same"
    }


SECURED: dict[str, Any] = {
    "security": [{"BearerAuth": []}],
    "components": {
        "securitySchemes": {
            "BearerAuth": {"type": "http", "scheme": "bearer"},
            "bearer-auth": {"type": "http", "scheme": "bearer"},
            "1. Ключ": {"type": "apiKey", "in": "query", "name": "k"},
            "OAuth2": {"type": "oauth2", "flows": {}},
            "X" * 90: {"type": "http", "scheme": "basic"},
        }
    },
}


def test_every_proposed_secret_name_can_be_stored(operator: Client, cast: Cast) -> None:
    schemes = SECURED["components"]["securitySchemes"]
    given = json.loads(api("crm", **SECURED))
    given["paths"] = {
        f"/{number}": {"get": {"security": [{name: []}]}} for number, name in enumerate(schemes)
    }
    page = operator.post(PAGE, {"document": json.dumps(given)})
    names = [scheme.credential.secret for scheme in page.context["document_import"].schemes]
    assert names[:2] == ["bearer_auth", "bearer_auth_2"]
    assert names[3] == "oauth2"
    assert len(set(names)) == len(schemes)
    for name in names:
        check_new(name, "a value of 1", ["api.example.com"], ["header"])


def test_the_preview_names_missing_secrets(operator: Client) -> None:
    given = listed(operator, api("crm", "people", **SECURED))
    page = operator.post(PAGE, {**given, "chosen": "GET /people", "_preview": ""})
    (missing,) = page.context["missing"]
    assert missing.name == "bearer_auth"
    assert missing.hosts == ["api.example.com"]
    assert "secrets/new/?name=bearer_auth&amp;hosts=api.example.com" in page.content.decode()
    fields = {"chosen": "GET /people", "secret:BearerAuth": "canary_acme_secret", "_preview": ""}
    assert not operator.post(PAGE, {**given, **fields}).context["missing"]


def test_a_second_import_can_change_the_selected_secret(operator: Client) -> None:
    text = api("crm", "people", **SECURED)
    imported(operator, "GET /people", text=text)
    assert states(operator.post(PAGE, {"document": text})) == {"GET /people": "same"}
    chosen = {"secret:BearerAuth": "canary_acme_secret"}
    page = operator.post(PAGE, {"document": text, **chosen})
    assert states(page) == {"GET /people": "changed"}
    imported(operator, "GET /people", text=text, **chosen)
    headers = made()["GET /people"].config["request"]["headers"]
    assert [each["value"] for each in headers] == ["Bearer {secrets.canary_acme_secret}"]
    assert states(operator.post(PAGE, {"document": text, **chosen})) == {"GET /people": "same"}


def test_an_extra_header_is_added_to_operations_without_credentials(operator: Client) -> None:
    text, sources = api("crm", "people", "tags"), ["GET /people", "GET /tags"]
    page = operator.post(PAGE, {"document": text})
    assert "the requests are sent without any" in page.content.decode()
    imported(operator, "GET /tags", text=text)
    header = {"header_name": "X-Key", "header_value": "{secrets.canary_acme_secret}"}
    page = operator.post(PAGE, {"document": text, **header})
    assert states(page) == {"GET /people": "new", "GET /tags": "changed"}
    imported(operator, *sources, text=text, **header)
    for source in sources:
        (written,) = made()[source].config["request"]["headers"]
        assert (written["name"], written["value"]) == tuple(header.values())
    # It is the operator's: an import without it neither shows nor removes it.
    assert set(states(operator.post(PAGE, {"document": text})).values()) == {"same"}
    wrong = operator.post(PAGE, {"document": text, "header_name": "a b", "header_value": "x"})
    assert "A header's name" in errors(wrong)


@pytest.mark.parametrize("secured", [{}, {"security": [{}, {"BearerAuth": []}]}])
def test_the_preview_names_operations_without_credentials(operator: Client, secured: Any):
    text = api("crm", "people", **{**SECURED, "security": [], **secured})
    page = operator.post(PAGE, {**listed(operator, text), "chosen": "GET /people", "_preview": ""})
    assert "It is sent without credentials." in page.content.decode()


TROUBLED: dict[str, Any] = {
    "/title": {
        "get": {"summary": "First line\nsecond\tline\x07 \x00", "description": "a\x00b\r\nc"}
    },
    "/long": {"get": {"summary": "word " * 60, "description": "word " * 500, "deprecated": True}},
    "/bound": {
        "get": {
            "parameters": [
                {
                    "name": "n",
                    "in": "query",
                    "description": "a\x00b",
                    "schema": {
                        "type": "integer",
                        "maximum": 9223372036854776000,
                        "default": 2**63,
                        "enum": ["a\x00", 2**63],
                        "example": 2**63,
                        "multipleOf": 2**63,
                        "title": "\x00",
                    },
                }
            ]
        }
    },
    "/deep": {
        "post": {
            "requestBody": {
                "content": {
                    "application/json": {
                        "schema": json.loads('{"default":' + "[" * 70 + "]" * 70 + "}")
                    }
                }
            }
        }
    },
}


def test_every_operation_listed_as_new_can_be_imported(operator: Client) -> None:
    text = document(**TROUBLED)
    page = operator.post(PAGE, {"document": text})
    sources = [source for source, state in states(page).items() if state == "new"]
    assert len(sources) == 6
    imported(operator, *sources, text=text)
    assert set(made()) == set(sources)
    row = made()["GET /title"]
    assert (row.title, row.description) == ("First line second line", "ab\nc")
    assert made()["GET /bound"].config["input_schema"]["properties"]["n"] == {
        "type": "integer",
        "description": "ab",
        "title": "",
    }
    long = made()["GET /long"]
    assert long.title.endswith("word …")
    assert long.description.endswith("word …")


def test_omissions_and_changes_of_an_import_are_reported(operator: Client) -> None:
    changed = json.loads(document(**TROUBLED))
    changed["servers"] = [
        {
            "url": "https://{region}.api.example.com",
            "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}},
        },
        {"url": "https://sandbox.example.com"},
    ]
    changed["paths"]["/title"]["options"] = {}
    page = operator.post(PAGE, {"document": json.dumps(changed)})
    text = page.content.decode()
    for part in (
        "It is deprecated.",
        "Its summary is cut to 200 characters.",
        "Its description is cut to 2,000 characters.",
        "The first server is used. Others: https://sandbox.example.com.",
        "The variable region of the server is &#x27;eu&#x27; of eu, us, its default.",
        "1 operations with the methods OPTIONS, TRACE and QUERY are left out.",
        "Responses are not read",
    ):
        assert part in text, part
    fields = {**kept(page), "chosen": ["GET /title", "GET /long"], "_preview": ""}
    preview = operator.post(PAGE, fields).content.decode()
    assert "Once published, they add at most 3 KiB to the list" in preview
