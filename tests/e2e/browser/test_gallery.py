"""The gallery in a browser: a template is picked, saved, published, listed and called."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcp.types import ElicitResult
from playwright.sync_api import Page, expect

from mcphost.console.primitives.gallery import templates
from tests.e2e.browser.conftest import WIDE, Visit
from tests.e2e.processes import Server
from tests.e2e.test_python_client import connected

TOOLS = "/admin/t/demo/tools/"
NEW = f"{TOOLS}new/"

ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "Expense 1": {"category": "hotel", "amount": 200.5, "another": False},
    "How many nights?": {"nights": 2},
}


def use(page: Page, title: str) -> None:
    page.get_by_role("link", name=f"Use this example: {title}").click()


def called(server: Server) -> Any:
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
    page.get_by_text("Start from an example").click()
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
