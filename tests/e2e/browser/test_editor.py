"""The script editor in a real browser: colours, completion, errors in place, and the way out."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.mcp import ask
from tests.e2e.processes import Server

NEW = "/admin/t/demo/tools/new/?kind=script"
SCRIPT = '''\
def order(item: str, count: int = 1) -> str:
    """Order an item, after asking.

    Args:
        item: What is ordered.
    """
    # Ask first: an order cannot be undone.
    answer = elicit("sure", f"Order {count} of {item}?", {"sure": bool})
    if not answer["sure"]:
        fail("Nothing was ordered.")
    return f"{count} of {item}"
'''
WRONG = SCRIPT.replace('return f"{count} of {item}"', "return count")
PROBLEM = "Return type does not match returned value"


def open_editor(page: Page) -> None:
    page.goto(NEW)
    use_editor(page)


def use_editor(page: Page) -> None:
    """Focus the code, which loads the editor in its place."""
    code(page).focus()
    expect(page.locator(".cm-content")).to_be_focused()


def code(page: Page):  # type: ignore[no-untyped-def]
    return page.get_by_role("textbox", name="Code")


def write(page: Page, text: str) -> None:
    use_editor(page)
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def accept(page: Page) -> None:
    """Accept what is suggested: Tab is ignored in the first moment, so that it is not meant for the text."""
    offers = page.locator(".cm-tooltip-autocomplete")
    for _ in range(100):
        if not offers.count():
            return
        page.keyboard.press("Tab")
    pytest.fail("Tab accepted nothing")


def stored(page: Page) -> str:
    return str(page.locator("textarea[name=code]").input_value())


def test_the_editor_marks_a_mistake_at_its_line_and_stores_the_script_as_typed(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    open_editor(page)
    write(page, WRONG)
    assert stored(page) == WRONG
    status = page.locator("[data-status]")
    expect(status).to_contain_text(f"1 problem. Line 11, column 12: {PROBLEM}")
    expect(page.locator(".cm-said")).to_contain_text(PROBLEM)
    expect(page.locator(".cm-lintRange-error")).to_have_text("count")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    expect(page.locator("[data-arguments]")).to_contain_text('"item"')
    page.get_by_label("Name", exact=True).fill("order")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.locator("[data-field=code] .c-error")).to_contain_text("Line 11, column 12")
    expect(page.locator(".cm-said")).to_contain_text(PROBLEM)
    assert stored(page) == WRONG

    write(page, SCRIPT)
    expect(status).to_have_text("Checked: no problems.")
    expect(page.locator(".cm-said, .c-error")).to_have_count(0)
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="order")).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    use_editor(page)
    assert stored(page) == SCRIPT
    _, listed = ask(server.url, server.token, "tools/list")
    (tool,) = [each for each in listed["result"]["tools"] if each["name"] == "order"]
    assert tool["inputSchema"]["properties"]["item"]["description"] == "What is ordered."


def test_the_editor_completes_functions_members_and_secret_names(visit: Visit) -> None:
    page = visit("admin")
    page.goto("/admin/t/demo/secrets/new/")
    page.get_by_label("Name").fill("editor_key")
    page.get_by_label("Value").fill("a-value-that-nobody-completes")
    page.get_by_label("Hosts").fill("api.example.com")
    page.get_by_label("header", exact=True).check()
    page.get_by_role("button", name="Create secret").click()
    expect(page.get_by_role("row", name="editor_key")).to_be_visible()
    open_editor(page)
    assert "a-value-that-nobody-completes" not in page.content()
    write(page, "def f() -> str:\n    ")
    offers = page.locator(".cm-tooltip-autocomplete")
    page.keyboard.type("eli")
    expect(offers.get_by_role("option").first).to_have_text("elicit")
    expect(offers).to_contain_text("(key: str, message: str, fields: dict[str, Any])")
    expect(offers).to_contain_text("Ask the user")
    accept(page)
    assert stored(page).endswith("    elicit()")
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.keyboard.type("reply = http.po")
    expect(offers.get_by_role("option").first).to_have_text("post")
    accept(page)
    page.keyboard.type('"https://api.example.com", headers={"Authorization": secret("edit')
    expect(offers.get_by_role("option")).to_have_text(["editor_key"])
    accept(page)
    assert 'secret("editor_key")' in stored(page)
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("reply.st")
    expect(offers.get_by_role("option").first).to_contain_text("status")


def test_the_editor_is_loaded_once_the_code_is_used_and_goes_on_at_the_cursor(
    visit: Visit,
) -> None:
    page = visit("admin")
    page.goto(NEW, wait_until="networkidle")
    expect(page.locator(".cm-editor")).to_have_count(0)
    area = page.locator("textarea[name=code]")
    area.evaluate("(area) => { area.value = 'pass'; area.setSelectionRange(0, 0); }")
    use_editor(page)
    page.keyboard.type("# ")
    assert stored(page) == "# pass"


def test_tab_indents_and_leaves_the_editor_after_escape(visit: Visit) -> None:
    page = visit("admin")
    open_editor(page)
    write(page, "pass")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    assert stored(page) == "    pass"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(code(page)).not_to_be_focused()
    assert stored(page) == "    pass"
    page.keyboard.press("Shift+Tab")
    expect(code(page)).to_be_focused()
    page.keyboard.press("Control+Z")
    assert stored(page) == "pass"
    page.locator("label", has_text="Code").click()
    expect(code(page)).to_be_focused()


def test_the_code_field_works_without_the_check_and_without_javascript(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    page.route("**/tools/check/", lambda route: route.fulfill(status=404))
    open_editor(page)
    write(page, WRONG)
    expect(page.locator("[data-status]")).to_contain_text("the check is unavailable")
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator(".cm-said")).to_contain_text(PROBLEM)
    page.unroute("**/tools/check/")

    page.route(
        "**/editor.js*", lambda route: route.fulfill(body="", content_type="text/javascript")
    )
    page.goto(NEW)
    page.get_by_label("Code").fill(WRONG)
    page.get_by_role("button", name="Save draft").click()
    expect(page.locator("[data-field=code] .c-error")).to_contain_text("Line 11, column 12")
    assert page.get_by_label("Code").input_value() == WRONG


def test_style_elements_need_the_nonce_of_the_page(visit: Visit) -> None:
    page = visit("admin")
    answer = page.goto(NEW)
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    nonce = re.search(r"style-src 'self' 'nonce-([\w-]{22})'", policy)
    assert nonce is not None
    assert page.locator("[data-script-editor]").get_attribute("data-nonce") == nonce[1]
    use_editor(page)
    nonces = page.evaluate("[...document.querySelectorAll('style')].map((each) => each.nonce)")
    assert nonces  # made by the editor
    assert set(nonces) == {nonce[1]}
    again = page.goto(NEW)
    assert again is not None
    assert nonce[1] not in again.headers["content-security-policy"]
