"""The status page in a real browser: it follows a change without being loaded again."""

import re

from playwright.sync_api import expect

from tests.e2e.browser.conftest import Visit


def test_the_status_page_shows_a_key_rotation_without_a_reload(visit: Visit) -> None:
    page, other = visit("admin"), visit("admin")
    page.locator("#nav-sidebar").get_by_text("Status", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("All is well.")
    note = page.locator("p.c-note")
    one_line = page.get_by_role("status").evaluate("text => text.getClientRects()[0].height")
    assert note.evaluate("p => p.clientHeight") < 2 * one_line + 24
    line = page.locator("#line-keys")
    before = line.inner_text()
    assert "is active" in before
    page.evaluate("window.sameDocument = true")
    other.goto("/admin/keys/compromised/")
    field = other.get_by_label("to confirm")
    field.fill(other.locator("input[name=replaces]").input_value())
    other.get_by_role("button", name="Replace the compromised key").click()
    expect(line).not_to_have_text(before)
    assert page.evaluate("window.sameDocument")


def test_the_keys_page_follows_two_rotations_without_a_reload(visit: Visit) -> None:
    page, other = visit("admin"), visit("admin")
    page.goto("/admin/keys/")
    page.evaluate("window.sameDocument = true")
    active = page.locator("tr").filter(has=page.get_by_text("active", exact=True)).locator("code")
    for _ in range(2):
        before = active.inner_text()
        other.goto("/admin/keys/rotate/")
        other.get_by_role("button", name="Rotate").click()
        expect(page.locator("tbody")).to_contain_text("standby")
        expect(active).not_to_have_text(before)
        expect(page.locator("tbody")).not_to_contain_text("standby")
    assert page.evaluate("window.sameDocument")


def test_the_status_page_reports_that_updates_stop_when_the_session_ends(visit: Visit) -> None:
    page = visit("admin")
    page.goto("/admin/status/")
    page.context.clear_cookies()
    note = page.get_by_role("alert")
    expect(note).to_have_text("This page is no longer updated. Reload it to see why.")
    note.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/admin/login/"))
