"""Tasks in the console: they change while a user looks at them, and can be cancelled."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import mcp
from tests.e2e.browser.conftest import Visit
from tests.e2e.processes import Server, serving

TASKS = "/admin/t/conformance/tasks/"
ABLE = mcp.able(elicitation={"form": {}}, extensions={"io.modelcontextprotocol/tasks": {}})


def ask(server: Server, method: str, **params: Any) -> dict[str, Any]:
    """Return the result of one request of an anonymous client that can follow tasks."""
    url = f"{server.base}/t/conformance/mcp"
    result: dict[str, Any] = mcp.ask(url, None, method, _meta=ABLE, **params)[1]["result"]
    return result


def call(server: Server, tool: str, **arguments: Any) -> str:
    id: str = ask(server, "tools/call", name=tool, arguments=arguments)["taskId"]
    return id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the public tenant `conformance`, which has functions that become tasks."""
    home = tmp_path_factory.mktemp("tasks") / "home"
    # At the end a task is still running, which the drain would wait for.
    with serving("uvicorn", home, MCPHOST_CONFORMANCE="1", MCPHOST_DRAIN_SECONDS="1") as started:
        yield started


def test_the_page_of_a_task_updates_without_a_reload(visit: Visit, server: Server) -> None:
    id = call(server, "confirm_delete", filename="notes.txt")
    page = visit("admin")
    page.goto(TASKS)
    row = page.get_by_role("row", name="confirm_delete")
    expect(row).to_contain_text("waiting for an answer")
    row.get_by_role("link").first.click()
    expect(page.locator("#live")).to_contain_text("waiting for an answer")
    assert id not in page.content()
    given = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    ask(server, "tasks/update", taskId=id, inputResponses=given)
    expect(page.locator("#live-state")).to_contain_text("completed")  # without a reload
    expect(page.get_by_role("link", name="Cancel…")).to_have_count(0)


def test_a_task_is_cancelled_by_a_user(visit: Visit, server: Server) -> None:
    id = call(server, "slow_compute", seconds=60)
    page = visit("admin")
    page.goto(TASKS)
    row = page.get_by_role("row", name="slow_compute")
    expect(row).to_contain_text("working")
    row.get_by_role("link").first.click()
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_label("Reason").fill("The computer is needed")
    page.get_by_role("button", name="Cancel task").click()
    expect(page.locator(".c-page")).to_contain_text("The task was cancelled by admin")
    found = ask(server, "tasks/get", taskId=id)
    assert found["status"] == "cancelled"
    assert found["statusMessage"].endswith("The computer is needed")
    page.get_by_role("link", name="View call", exact=True).click()
    expect(page.locator(".c-heading")).to_contain_text("cancelled")
