"""The form of an HTTP tool in a browser: a tool with two arguments is made without writing a schema."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser.conftest import PHONE, Visit
from tests.e2e.browser.mcp import ask
from tests.e2e.browser.test_axe import RULES, axe, violations_of
from tests.e2e.processes import Server, serving
from tests.e2e.scripts import Prices, pricing

__all__ = ["axe"]

NEW = "/admin/t/demo/tools/new/?kind=http"
TOOL = "price"
BODY = '{"trip": "{arguments.trip}", "seat": "{arguments.seat}"}'
SCHEMA = {
    "type": "object",
    "properties": {
        "trip": {"type": "string", "description": "Where to.", "examples": ["Oslo"]},
        "seat": {"type": "integer"},
    },
    "required": ["trip", "seat"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def prices() -> Iterator[Prices]:
    with pricing() as service:
        yield service


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, prices: Prices) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("http-form") / "home"
    with serving("uvicorn", home, MCPHOST_EGRESS_LOOPBACK_PORTS=str(prices.port)) as started:
        yield started


def argument(page: Page, number: int) -> Locator:
    return page.locator("[data-rows=arguments] [data-row]").nth(number)


def field(scope: Page | Locator, name: str) -> Locator:
    return scope.locator(f"[data-field={name}] :is(input, select, textarea)")


def allow(page: Page, url: str) -> None:
    """Let the tools of the tenant call a service."""
    page.goto("/admin/t/demo/settings/")
    page.get_by_label("Hosts that tools may call").fill(url)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#main")).to_contain_text("Saved.")


def test_a_tool_with_two_arguments_is_made_without_json_schema_previewed_published_and_tried(
    visit: Visit, server: Server, prices: Prices
) -> None:
    page = visit("admin")
    allow(page, prices.url)
    page.goto(NEW)
    field(page, "name").first.fill(TOOL)
    field(page, "description").first.fill("The price of a seat.")
    field(page, "method").select_option("POST")
    field(page, "url").fill(f"{prices.url}/price")
    field(page, "body").select_option("json")
    field(page, "body_json").fill(BODY)
    expect(argument(page, 1)).to_be_visible()
    assert field(argument(page, 0), "name").input_value() == "trip"
    field(argument(page, 0), "description").fill("Where to.")
    argument(page, 0).locator("summary").click()
    field(argument(page, 0), "example").fill("Oslo")
    field(argument(page, 1), "type").select_option("Whole number")
    preview = page.locator("#preview pre")
    expect(preview).to_contain_text(f"POST {prices.url}/price")
    expect(preview).to_contain_text('{"trip":"Oslo","seat":1}')
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name=TOOL, level=1)).to_be_visible()
    trial = page.frame_locator("iframe[name=trial]")
    trial.get_by_label("trip", exact=True).fill("Bergen")
    trial.get_by_label("seat", exact=True).fill("2")
    trial.get_by_role("button", name="Run", exact=True).click()
    expect(trial.locator("pre").first).to_contain_text("30")
    assert prices.requests("Bergen") == {2: 1}
    assert prices.requests("Oslo") == {}, "a preview sends nothing"
    _, listed = ask(server.url, server.token, "tools/list")
    (tool,) = [offered for offered in listed["result"]["tools"] if offered["name"] == TOOL]
    assert tool["inputSchema"] == SCHEMA


def test_placeholders_and_arguments_follow_one_another_and_mistakes_are_said_at_their_fields(
    visit: Visit, axe: str
) -> None:
    page = visit("admin", size=PHONE)
    page.goto(NEW)
    address = field(page, "url")
    address.press_sequentially("https://api.example.com/{arguments.town}/{arguments.x}")
    expect(field(argument(page, 1), "name")).to_have_value("x")
    address.press("Backspace")
    address.press("Backspace")
    expect(argument(page, 1)).to_have_count(0)
    address.press_sequentially("day}")
    field(argument(page, 0), "name").fill("city")
    field(argument(page, 0), "name").press("Tab")
    expect(address).to_have_value("https://api.example.com/{arguments.city}/{arguments.day}")
    argument(page, 1).get_by_role("button", name="Remove").click()
    expect(page.locator("[data-field=url]")).to_contain_text("There is no argument 'day'")
    page.get_by_role("button", name="Add an argument").click()
    field(argument(page, 1), "name").fill("unused")
    expect(argument(page, 1)).to_contain_text("The argument 'unused' is used nowhere")
    assert violations_of(page, axe, RULES["light"]) == []


def test_the_schema_is_shown_to_experts_and_back_unless_fields_cannot_show_it(visit: Visit) -> None:
    page = visit("admin")
    page.goto(NEW)
    field(page, "url").fill("https://api.example.com/{arguments.city}")
    page.get_by_role("button", name="JSON Schema for experts").click()
    schema = field(page, "input_schema")
    expect(schema).to_be_focused()
    text = schema.input_value()
    assert '"city"' in text
    schema.fill(text.replace('"type": "string"', '"type": "string", "pattern": "^a"'))
    page.get_by_role("button", name="Back to fields").click()
    expect(page.locator("[data-why]")).to_contain_text('"pattern", which fields cannot show')
    schema.fill(text.replace('"string"', '"integer"'))
    page.get_by_role("button", name="Back to fields").click()
    expect(field(argument(page, 0), "type")).to_have_value("integer")


def test_the_sections_of_a_page_are_links_that_the_address_remembers(visit: Visit) -> None:
    page = visit("admin", size=PHONE)
    page.goto(NEW)
    sections = page.get_by_role("navigation", name="On this page")
    sections.get_by_role("link", name="Response").press("Enter")
    expect(page.locator("#response")).to_be_in_viewport()
    expect(sections.get_by_role("link", name="Response")).to_have_attribute("aria-current", "true")
    assert page.url.endswith("#response")
    page.reload()
    expect(page.locator("#response")).to_be_in_viewport()
    page.goto("/admin/t/demo/connect/#log")
    expect(sections.get_by_role("link", name="Connection log")).to_have_attribute(
        "aria-current", "true"
    )
