"""The frame of the pages in a browser: colours, menu, account menu, with keyboard, phone and no script."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser.conftest import PHONE, Visit, generated_password
from tests.e2e.processes import Server


def _is_dark(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.classList.contains('dark')"))


def test_the_colour_theme_is_remembered_and_set_before_the_first_paint(visit: Visit) -> None:
    page = visit("admin")
    assert not _is_dark(page)
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="Dark").click()
    assert _is_dark(page)
    # Set by a script in the head: when the body begins to exist, the colours are there.
    page.add_init_script(
        "new MutationObserver((_, seen) => { if (document.body) { window.darkAtBody = "
        "document.documentElement.classList.contains('dark'); seen.disconnect(); } })"
        ".observe(document, {childList: true, subtree: true})"
    )
    page.goto("/admin/status/")
    assert page.evaluate("window.darkAtBody") is True
    page.goto("/nowhere")
    assert _is_dark(page)
    page.goto("/admin/")
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="System").click()
    assert not _is_dark(page)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))


def test_the_account_menu_works_by_keyboard(visit: Visit) -> None:
    page = visit("admin")
    opener = page.locator(".c-account-button")
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Light")).to_be_focused()
    expect(opener).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("button", name="Sign out")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Light")).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    expect(page.locator("#account-menu")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()


def test_the_menu_is_a_drawer_on_a_phone(visit: Visit) -> None:
    page = visit("admin", size=PHONE, theme="dark")
    menu = page.locator("#nav-sidebar")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Show the menu").click()
    expect(menu).to_be_visible()
    page.locator(".c-account-button").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()


def test_the_menus_open_without_javascript(browser: Browser, server: Server) -> None:
    context = browser.new_context(
        base_url=server.base,
        java_script_enabled=False,
        viewport=PHONE,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto("/admin/login/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", generated_password(server, "admin"))
    page.click("button[type=submit]")
    page.get_by_role("button", name="Show the menu").click()
    page.locator("#nav-sidebar").get_by_role("link", name=re.compile("^Status")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Status")
    page.get_by_role("button", name="Show the menu").click()
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    context.close()
