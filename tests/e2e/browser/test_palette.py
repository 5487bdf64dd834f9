"""The search by Ctrl-K, and lists by keyboard alone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import mcp
from tests.e2e.browser.conftest import Visit
from tests.e2e.processes import Server

CALLS = "/admin/t/demo/calls/"
OPTION = ".c-palette [role=option]"


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    for text in ("one", "two", "three"):
        assert mcp.ask(
            server.url, server.token, "tools/call", name="echo", arguments={"text": text}
        )
    page = visit("admin")
    page.goto(CALLS)
    return page


def chosen(page: Page) -> str:
    """What is chosen in the palette, as a screen reader follows it from the field."""
    named = page.locator(".c-palette [role=combobox]").get_attribute("aria-activedescendant")
    return page.locator(f"#{named}[aria-selected=true]").inner_text()


def search(page: Page, text: str, hit: str) -> None:
    page.keyboard.press("Control+k")
    page.locator(".c-palette [role=combobox]").fill(text)
    expect(page.locator(OPTION).first).to_contain_text(hit)


def test_a_tool_is_searched_and_opened_by_keyboard(page: Page) -> None:
    search(page, "arrange_m", "arrange_meeting")
    expect(page.locator(".c-palette [role=combobox]")).to_be_focused()
    expect(page.locator(".c-palette [role=combobox]")).to_have_attribute("aria-expanded", "true")
    assert "arrange_meeting" in chosen(page)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("arrange_meeting")


def test_arrow_keys_wrap_around_the_search_results_and_escape_closes_them(page: Page) -> None:
    search(page, "demo", "demo")
    expect(page.locator(OPTION).nth(1)).to_be_visible()
    first = chosen(page)
    page.keyboard.press("ArrowDown")
    assert chosen(page) != first
    page.keyboard.press("ArrowUp")
    assert chosen(page) == first
    page.keyboard.press("ArrowUp")
    assert page.locator(OPTION).last.get_attribute("aria-selected") == "true"
    page.keyboard.press("Escape")
    expect(page.locator(".c-palette")).to_be_hidden()
    expect(page.locator("tbody a").first).to_be_visible()  # calls may be listed a moment later
    page.keyboard.press("j")
    expect(page.locator("tbody a:focus-visible")).to_have_count(1)


def test_list_rows_are_selected_and_opened_by_keyboard(page: Page) -> None:
    rows = page.locator("tbody tr td.c-first b a")
    page.keyboard.press("k")
    expect(rows.last).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    target = rows.nth(0).get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{target}$"))


def test_keyboard_shortcuts_are_explained_and_can_be_turned_off(page: Page) -> None:
    page.keyboard.press("?")
    dialog = page.locator("#shortcuts")
    expect(dialog).to_be_visible()
    dialog.locator("[data-keys-on]").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("j")
    expect(page.locator("tbody a:focus")).to_have_count(0)
    page.reload()
    page.locator("[data-shortcuts]").click()
    expect(dialog.locator("[data-keys-on]")).not_to_be_checked()
