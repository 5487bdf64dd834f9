"""Questions in a real browser: one is cancelled and its caller is told; a key is rotated while another waits;
an auditor searches in the texts of questions and answers."""

import re
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import expect

from tests.e2e.browser import mcp
from tests.e2e.browser.conftest import Visit
from tests.e2e.processes import Server

REQUESTS = "/admin/t/demo/input-requests/"
WHY = "the release is off"
TOOL = "update_work_item"
ANSWER = {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}}


def leg(server: Server, **more: Any) -> Mapping[str, Any]:
    call = {
        "name": TOOL,
        "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
        "_meta": mcp.able(elicitation={"form": {}}),
    }
    _, reply = mcp.ask(server.url, server.token, "tools/call", **call, **more)
    result: Mapping[str, Any] = reply["result"]
    return result


def test_an_open_input_request_is_cancelled_and_its_caller_is_notified(
    visit: Visit, server: Server
) -> None:
    leg(server)
    page = visit("admin")
    page.goto(REQUESTS)
    rows = page.get_by_role("row", name=TOOL)
    before = rows.count()
    asked = leg(server)
    expect(rows).to_have_count(before + 1)  # without a reload
    row = rows.first
    expect(row).to_contain_text("browser-tests")
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Cancel selected…").click()
    page.get_by_role("button", name="Cancel 1 call").click()
    expect(page.locator(".c-page")).to_contain_text("This field is required")
    page.get_by_label("Reason").fill(WHY)
    page.get_by_role("button", name="Cancel 1 call").click()
    expect(page.get_by_role("status").first).to_contain_text("Cancelled: 1 call.")
    page.goto(REQUESTS)
    page.get_by_role("row", name=TOOL).first.get_by_role("link").first.click()
    expect(page.locator(".c-page")).to_contain_text("The call was cancelled by admin")
    expect(page.locator(".c-page")).to_contain_text(WHY)
    told = leg(server, requestState=asked["requestState"], inputResponses=ANSWER)
    assert told["isError"] is True
    assert WHY in told["content"][0]["text"]


def test_a_key_is_rotated_while_an_input_request_is_open(visit: Visit, server: Server) -> None:
    asked = leg(server)
    page = visit("admin")
    page.locator("#nav-sidebar").get_by_text("Keys", exact=True).click()
    keys = page.locator(".c-ring-key")
    before = keys.count()
    page.get_by_role("link", name="Rotate…", exact=True).click()
    expect(page.locator(".c-page")).to_contain_text("No call will be interrupted")
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_role("status")).to_contain_text("It becomes active in a few seconds")
    expect(keys).to_have_count(before + 1)
    expect(page.locator("tr", has_text="Opens what it sealed").first).to_be_visible(timeout=30_000)
    answered = leg(server, requestState=asked["requestState"], inputResponses=ANSWER)
    assert not answered.get("isError"), answered
    page.goto(REQUESTS)
    expect(page.locator(".c-page")).not_to_contain_text(asked["requestState"][:20])


def test_an_auditor_finds_an_answer_by_its_words(visit: Visit, server: Server) -> None:
    asked = leg(server)
    leg(server, requestState=asked["requestState"], inputResponses=ANSWER)
    page = visit("auditor")
    page.goto(REQUESTS)
    page.get_by_role("link", name="Search texts").click()
    start = page.locator("#content").get_by_role("button", name="Search", exact=True)
    page.get_by_label("Words in the question or in the answer").fill("FIXED nothing-like-it")
    start.click()
    state = page.locator("[data-text-search-state]")
    expect(state).to_contain_text("0 matches in all ")
    page.get_by_label("Words in the question or in the answer").fill("FIXED")
    start.click()
    expect(state).to_contain_text("in all ")
    row = page.get_by_role("row", name=TOOL).first
    expect(row).to_contain_text("Fixed")
    expect(row.locator(".c-when .c-exact")).to_have_attribute("data-times-in", re.compile("."))
    assert "FIXED" not in page.url
    row.get_by_role("link").first.click()
    page.get_by_role("link", name="Show texts").click()
    expect(page.locator(".c-page")).to_contain_text("Your access was recorded")
