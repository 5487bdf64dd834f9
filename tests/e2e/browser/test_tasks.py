"""Tasks in the console: they change while a user looks at them, and can be cancelled."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit, shoot
from tests.e2e.browser.mcp import META, REVISION
from tests.e2e.processes import Server, serving
from tests.mcp import check_response

TASKS = "/admin/t/conformance/tasks/"
CAPABILITIES = {
    "elicitation": {"form": {}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}


def ask(server: Server, method: str, about: str, **params: Any) -> dict[str, Any]:
    """Return the result of one request of an anonymous client that can follow tasks."""
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
        "Mcp-Name": about,
    }
    url = f"{server.base}/t/conformance/mcp"
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as answer:
        result: dict[str, Any] = check_response(method, answer.read())["result"]
        return result


def call(server: Server, tool: str, **arguments: Any) -> str:
    """Call a tool, and return the id of the task that comes of it."""
    id: str = ask(server, "tools/call", tool, name=tool, arguments=arguments)["taskId"]
    return id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the public tenant `conformance`, which has functions that become tasks."""
    home = tmp_path_factory.mktemp("tasks") / "home"
    # At the end a task is still running, which the drain would wait for.
    with serving("uvicorn", home, MCPHOST_CONFORMANCE="1", MCPHOST_DRAIN_SECONDS="1") as started:
        yield started


def test_a_task_changes_while_one_looks_at_it(visit: Visit, server: Server) -> None:
    id = call(server, "confirm_delete", filename="notes.txt")
    page = visit("admin")
    page.goto(TASKS)
    row = page.get_by_role("row", name="confirm_delete")
    expect(row).to_contain_text("waits for responses")
    shoot(page, "tasks")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    shoot(page, "phone-tasks")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    row.get_by_role("link").first.click()
    expect(page.locator("#live")).to_contain_text("waiting for a response")
    shoot(page, "task-asks")
    assert id not in page.content()
    given = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    ask(server, "tasks/update", id, taskId=id, inputResponses=given)
    expect(page.locator("#live h2").first).to_contain_text("completed")  # without a reload
    expect(page.get_by_role("link", name="Cancel…")).to_have_count(0)
    shoot(page, "task-completed")


def test_a_task_is_cancelled_by_a_user(visit: Visit, server: Server) -> None:
    id = call(server, "slow_compute", seconds=60)
    page = visit("admin")
    page.goto(TASKS)
    row = page.get_by_role("row", name="slow_compute")
    expect(row).to_contain_text("working")
    row.get_by_role("link").first.click()
    shoot(page, "task-works")
    page.get_by_role("link", name="Cancel…").click()
    shoot(page, "task-cancel")
    page.get_by_label("Reason").fill("The computer is needed")
    page.get_by_role("button", name="Cancel task").click()
    expect(page.locator(".c-page")).to_contain_text("The task was cancelled by admin")
    shoot(page, "task-cancelled")
    found = ask(server, "tasks/get", id, taskId=id)
    assert found["status"] == "cancelled"
    assert found["statusMessage"].endswith("The computer is needed")
    page.get_by_role("link", name="View call", exact=True).click()
    expect(page.locator(".c-heading")).to_contain_text("cancelled")
    shoot(page, "call-of-task")


def test_the_dashboard_has_tasks_and_their_questions(visit: Visit, server: Server) -> None:
    call(server, "multi_input")
    call(server, "slow_compute", seconds=60)
    page = visit("admin")
    expect(page.locator(".c-page")).to_contain_text("Failed in the last day")
    expect(page.locator(".c-waiting").get_by_text("task").first).to_be_visible()
    shoot(page, "dashboard-tasks")
    page.goto("/admin/t/conformance/calls/")
    expect(page.get_by_role("row", name="slow_compute").first).to_contain_text("as a task")
    shoot(page, "records-tasks")
    dark = visit("admin", theme="dark")
    dark.goto(TASKS)
    shoot(dark, "dark-tasks")
