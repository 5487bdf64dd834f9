"""The live list of calls: a client calls while somebody looks, and the call appears."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit, generated_password
from tests.e2e.browser.mcp import ask
from tests.e2e.processes import Server, free_port, serving

CALLS = "/admin/t/demo/calls/"
NO_SOCKETS = """
window.WebSocket = class {
  constructor() { setTimeout(() => this.onclose && this.onclose({ code: 1006 })); }
  close() {}
};
"""


def call(server: Server, text: str) -> None:
    status, answer = ask(
        server.url, server.token, "tools/call", name="echo", arguments={"text": text}
    )
    assert status == 200, answer


def rows(page: Page) -> int:
    return page.locator("tr[data-call]").count()


def is_live(page: Page, way: str = "live") -> None:
    expect(page.locator(f'[data-live-state="{way}"]')).to_be_visible()


@pytest.fixture
def window(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


def sign_in(page: Page, server: Server) -> None:
    page.goto(f"{server.base}/admin/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", generated_password(server, "admin"))
    page.click("button[type=submit]")
    page.wait_for_url("**/admin/")


def test_a_new_call_appears_in_the_open_list(visit: Visit, server: Server) -> None:
    call(server, "the first, so that there is a list")
    page = visit("admin")
    page.goto(f"{CALLS}?tool=echo")
    is_live(page)
    before = rows(page)
    call(server, "while the list is open")
    expect(page.locator("tr[data-call]")).to_have_count(before + 1)
    newest = page.locator("tr[data-call]").first
    expect(newest).to_have_class("c-fresh")
    expect(newest.locator(".c-when .c-exact[data-times-in]")).to_have_count(1)
    page.goto(f"{CALLS}?tool=nothing")
    expect(page.get_by_text("No matching calls")).to_be_visible()
    is_live(page)
    call(server, "not shown here")


def test_a_burst_of_calls_is_announced_without_moving_the_list(
    visit: Visit, server: Server
) -> None:
    call(server, "the first, so that there is a list")
    page = visit("admin", size=PHONE, theme="dark")
    page.goto(CALLS)
    is_live(page)
    before = rows(page)
    page.locator("tr[data-call] a").first.focus()
    for number in range(9):
        call(server, f"burst {number}")
    button = page.locator("[data-live-new]")
    expect(button).to_have_text("9 new calls")
    assert rows(page) == before
    button.click()
    expect(page.locator("tr[data-call]")).to_have_count(min(50, before + 9))
    expect(button).to_be_hidden()


def test_a_paused_list_only_counts_new_calls(visit: Visit, server: Server) -> None:
    call(server, "the first, so that there is a list")
    page = visit("admin", size=WIDE)
    page.goto(CALLS)
    is_live(page)
    before = rows(page)
    page.get_by_role("button", name="Live").click()
    expect(page.get_by_role("button", name="Paused")).to_be_visible()
    call(server, "while it pauses")
    expect(page.locator("[data-live-new]")).to_have_text("1 new call")
    assert rows(page) == before
    page.get_by_role("button", name="Paused").click()
    expect(page.locator("tr[data-call]")).to_have_count(min(50, before + 1))


def test_the_list_polls_if_no_websocket_opens(window: Page, server: Server) -> None:
    call(server, "the first, so that there is a list")
    window.add_init_script(NO_SOCKETS)
    sign_in(window, server)
    window.goto(f"{server.base}{CALLS}")
    is_live(window, "polling")
    before = rows(window)
    call(server, "asked for")
    expect(window.locator("tr[data-call]")).to_have_count(min(50, before + 1))


def test_the_list_resumes_after_a_restart_of_the_server(window: Page, tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    with serving("uvicorn", home, port=port) as server:
        call(server, "the first, so that there is a list")
        sign_in(window, server)
        window.goto(f"{server.base}{CALLS}")
        is_live(window)
    is_live(window, "lost")
    with serving("uvicorn", home, port=port) as server:
        call(server, "while the list was away")
        expect(window.locator("tr[data-call]")).to_have_count(2, timeout=60_000)


def test_an_export_is_downloaded_with_its_end_line(visit: Visit, server: Server) -> None:
    call(server, "exported")
    page = visit("admin")
    page.goto(f"{CALLS}?tool=echo")
    page.get_by_role("link", name="Export these calls…").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Export CSV").click()
    lines = Path(saving.value.path()).read_text().splitlines()
    assert lines[-1].startswith("end,calls=")
    assert lines[-1].endswith(",complete=True,after=None")
    expect(page.locator("[data-export-state]")).to_contain_text("all that match")
