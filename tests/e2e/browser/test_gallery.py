"""The gallery in a browser: a template is picked, saved, published, listed and called."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mcp.types import ElicitResult
from playwright.sync_api import Page, expect

from mcphost.console.primitives.gallery import templates
from tests.e2e.browser.conftest import PHONE, Visit, shoot
from tests.e2e.processes import Server
from tests.e2e.test_python_client import connected

TOOLS = "/admin/t/demo/tools/"
NEW = f"{TOOLS}new/"
WIDE = {"width": 1440, "height": 900}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "Expense 1": {"category": "hotel", "amount": 200.5, "another": False},
    "How many nights?": {"nights": 2},
}


def use(page: Page, title: str) -> None:
    page.get_by_role("link", name=f"Use this template: {title}").click()


def called(server: Server) -> Any:
    """What the official client gets, which answers the tool's questions."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked = next(each for each in ANSWERS if params.message.startswith(each))
        return ElicitResult(action="accept", content=dict(ANSWERS[asked]))

    async def call() -> Any:
        async with connected(server.url, server.token, elicitation_callback=answer) as client:
            listed = await client.list_tools()
            assert "claim_expenses" in [tool.name for tool in listed.tools]
            return await client.call_tool("claim_expenses", {"trip": "Oslo"})

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(call())).result(timeout=60)


def test_a_template_is_picked_saved_published_and_called(visit: Visit, server: Server) -> None:
    page = visit("admin", size=WIDE)
    page.goto(TOOLS)
    page.get_by_role("link", name="New tool").click()
    expect(page.get_by_text("Start from a template")).to_be_visible()
    title = templates()["expenses"].title
    use(page, title)
    expect(page.get_by_text("Nothing is saved yet.")).to_be_visible()
    expect(page.locator("#id_name")).to_have_value("claim_expenses")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="claim_expenses")).to_be_visible()
    expect(page.locator("#main")).to_contain_text("is published")
    page.goto(TOOLS)
    expect(page.locator("tbody")).to_contain_text("claim_expenses")
    claim = called(server).structured_content
    expense = {"category": "hotel", "amount": 200.5, "nights": 2}
    assert claim == {"trip": "Oslo", "expenses": [expense], "total": 200.5}


def test_the_address_of_a_service_is_filled_in_by_its_own_button(visit: Visit) -> None:
    page = visit("admin", size=WIDE)
    page.goto(NEW)
    use(page, templates()["search"].title)
    expect(page.locator("#id_url")).to_have_value("https://api.example.com/orders")
    address = page.get_by_label("Address of the service")
    address.fill("shop")
    page.get_by_role("button", name="Fill in the address").click()
    expect(page.locator("[data-field=address] .c-error")).to_be_visible()
    shoot(page, "gallery-wrong-address")
    page.get_by_label("Address of the service").fill("https://shop.example.com/v2/")
    page.keyboard.press("Enter")
    expect(page.locator("#id_url")).to_have_value("https://shop.example.com/v2/orders")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", name="search_orders")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_gallery_fits_its_window(visit: Visit, size: dict[str, int], theme: str) -> None:
    page = visit("admin", size=size, theme=theme)
    for name, query in (("open", ""), ("picked", "?template=approval")):
        page.goto(f"{NEW}{query}")
        if not query:
            page.get_by_text("Which kind should I choose?").click()
        shoot(page, f"gallery-{name}-{size['width']}-{theme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
