"""Open input requests in a real browser: one is cancelled and its caller is told; a key is rotated while
another waits."""

import json
import urllib.request
from collections.abc import Mapping
from typing import Any

from playwright.sync_api import expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit, shoot
from tests.e2e.browser.mcp import META, REVISION
from tests.e2e.processes import Server
from tests.mcp import check_response

REQUESTS = "/admin/t/demo/input-requests/"
WHY = "the release is off"
TOOL = "update_work_item"
ANSWER = {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}}


def leg(server: Server, **more: Any) -> Mapping[str, Any]:
    """One request of a call that asks, as a client that shows forms."""
    capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    arguments = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
    params = {"_meta": {**META, **capable}, "name": TOOL, "arguments": arguments, **more}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": TOOL,
    }
    request = urllib.request.Request(server.url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as reply:
        result: Mapping[str, Any] = check_response("tools/call", reply.read())["result"]
        return result


def test_an_open_request_is_cancelled_and_its_caller_is_told(visit: Visit, server: Server) -> None:
    page = visit("admin")
    page.goto(REQUESTS)
    asked = leg(server)
    row = page.get_by_role("row", name=TOOL).first
    expect(row).to_contain_text("browser-tests")  # without a reload
    shoot(page, "input-requests")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    shoot(page, "phone-input-requests")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    row.get_by_role("link", name="Cancel the call of").click()
    page.get_by_role("button", name="Cancel the call").click()
    expect(page.locator(".c-page")).to_contain_text("This field is required")
    page.get_by_label("Reason").fill(WHY)
    shoot(page, "input-request-cancel")
    page.get_by_role("button", name="Cancel the call").click()
    expect(page.locator(".c-page")).to_contain_text("The call was cancelled by admin")
    expect(page.locator(".c-page")).to_contain_text(WHY)
    shoot(page, "call-cancelled")
    told = leg(server, requestState=asked["requestState"], inputResponses=ANSWER)
    assert told["isError"] is True
    assert WHY in told["content"][0]["text"]
    page.goto(f"{REQUESTS}funnel/")
    shoot(page, "input-request-funnel")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    shoot(page, "phone-input-request-funnel")
    dark = visit("admin", theme="dark")
    leg(server)
    dark.goto(REQUESTS)
    shoot(dark, "dark-input-requests")
    dark.goto(f"{REQUESTS}funnel/")
    shoot(dark, "dark-input-request-funnel")


def test_a_key_is_rotated_while_a_request_waits(visit: Visit, server: Server) -> None:
    asked = leg(server)
    page = visit("admin")
    page.goto("/admin/keys/rotate/")
    expect(page.locator(".c-page")).to_contain_text("No call is interrupted")
    page.get_by_role("button", name="Rotate").click()
    expect(page.get_by_role("status")).to_contain_text("It becomes active in a few seconds")
    expect(page.locator("tr", has_text="Opens what it sealed").first).to_be_visible(timeout=30_000)
    shoot(page, "keys-rotated")
    answered = leg(server, requestState=asked["requestState"], inputResponses=ANSWER)
    assert not answered.get("isError"), answered
    page.goto(REQUESTS)
    expect(page.locator(".c-page")).not_to_contain_text(asked["requestState"][:20])
