"""The import of an OpenAPI document in a browser: given once, chosen, previewed, and again."""

import json
from typing import Any

from playwright.sync_api import FilePayload, Page, expect

from tests.e2e.browser.conftest import WIDE, Visit

PAGE = "/admin/t/demo/tools/import/"


def document(prefix: str, *, changed: bool = False) -> FilePayload:
    listing: dict[str, Any] = {"operationId": f"{prefix}_list", "summary": "Lists the orders"}
    if changed:
        page = {"name": "page", "in": "query", "schema": {"type": "integer"}}
        listing |= {"summary": "Lists orders by page", "parameters": [page]}
    remove: dict[str, Any] = {
        "operationId": f"{prefix}_remove",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        ],
    }
    written = {
        "openapi": "3.1.0",
        "info": {"title": "Orders"},
        "servers": [{"url": f"https://{prefix}.example.com"}],
        "paths": {"/orders": {"get": listing}, "/orders/{id}": {"delete": remove}},
    }
    data = json.dumps(written).encode()
    return {"name": "orders.json", "mimeType": "application/json", "buffer": data}


def list_operations(page: Page, given: FilePayload) -> None:
    page.goto(PAGE)
    page.get_by_label("Or a file").set_input_files(given)
    page.get_by_role("button", name="List operations").click()


def choose(page: Page, source: str) -> None:
    page.get_by_role("checkbox", name=source).check()


def test_openapi_operations_are_selected_previewed_created_and_reimported(visit: Visit) -> None:
    page = visit("admin", size=WIDE)
    list_operations(page, document("first"))
    preview = page.get_by_role("button", name="Preview")
    expect(preview).to_be_disabled()
    page.get_by_role("checkbox", name="Select all").check()
    every = page.locator("tbody input[type=checkbox]").count()
    expect(page.get_by_text(f"{every} of {every} selected")).to_be_visible()
    page.get_by_role("checkbox", name="Select all").uncheck()
    choose(page, "GET /orders")
    expect(page.get_by_text(f"1 of {every} selected")).to_be_visible()
    expect(preview).to_be_enabled()
    page.get_by_label("Tool name for GET /orders").fill("all_orders")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("GET https://first.example.com/orders")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("all_orders")
    page.get_by_label("Description", exact=True).fill("Lists all orders.")
    page.get_by_role("button", name="Create 1 draft").click()
    expect(page.locator("#main")).to_contain_text("1 draft is created")
    expect(page.locator("tbody")).to_contain_text("all_orders")

    list_operations(page, document("first", changed=True))
    row = page.get_by_role("row").filter(has_text="all_orders")
    expect(row).to_contain_text("changed")
    choose(page, "GET /orders")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Argument page")).to_be_visible()
    unchosen = page.get_by_role("radio", name="Take the document").first
    page.get_by_role("button", name="Change 1 tool").click()
    expect(page.get_by_text("Choose what to keep where both have changed.")).to_be_visible()
    expect(unchosen).not_to_be_checked()
    page.get_by_role("radio", name="Keep the tool").check()
    page.get_by_role("button", name="Change 1 tool").click()
    expect(page.locator("#main")).to_contain_text("1 tool is changed")
