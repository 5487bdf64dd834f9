"""A person with Chromium, who signs in and allows what a client asks for."""

from typing import Final

from playwright.sync_api import expect, sync_playwright

from tests.e2e.browser.conftest import ARGUMENTS, CHROMIUM, PATIENCE_MS
from tests.e2e.processes import Server

USER: Final = "admin"


def sign_in_and_allow(server: Server, url: str) -> None:
    """Open a page that a client shows, in a browser without cookies, until the client has the answer."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(url)
        page.fill("[name=username]", USER)
        page.fill("[name=password]", (server.home / f"{USER}-password").read_text().strip())
        page.click("button[type=submit]")
        page.get_by_role("button", name="Allow").click()
        page.wait_for_url(lambda current: not current.startswith(server.base))
        page.wait_for_load_state()
        browser.close()
