"""Every page of the console: axe finds nothing on it, in light, dark and on a phone, and no text from outside
runs on it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import mcp
from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.test_input_requests import REQUESTS, TOOL, leg
from tests.e2e.browser.test_invitations import invite, window
from tests.e2e.handmade_calls import wait_until
from tests.e2e.node_client import install
from tests.e2e.processes import Server

pytestmark = pytest.mark.usefixtures("ended_rows")

RULES = {
    "light": '["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]',
    "dark": '{type: "rule", values: ["color-contrast", "link-in-text-block"]}',
}
"""What is looked for in each theme: all of it once, and the colours again. On phones: all of it."""
TENANT = "/admin/t/demo/"
FORMS = (
    "tools/new/?kind=python",
    "tools/new/?kind=script",
    "tools/new/?kind=http",
    "tools/import/",
    "file/",
    "prompts/new/",
    "resources/new/",
    "templates/new/",
    "secrets/new/",
    "tokens/new/",
    "refusals/",
    "close/",
    "salt/",
)
PLATFORM = ("tenants/new/", "users/new/", "keys/rotate/", "keys/compromised/", "password/", "none/")
HOSTILE: Final = "\"'><img src=x onerror=canary=1>\u202e"
"""Short: no table gets wider than its page by it."""
PLANTED: Final = {
    "catalogue_primitive": ("title", "description"),
    "catalogue_primitiveversion": ("note", "published_by"),
    "tenants_tenant": ("title", "instructions"),
    "identity_token": ("name", "issued_by"),
    "audit_entry": ("actor_label", "target", "client_name", "client_version", "reason", "source"),
    "auth_user": ("first_name", "last_name"),
}
"""Columns of what comes from outside, by their table."""
LISTEN: Final = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@pytest.fixture(scope="session")
def axe() -> str:
    folder: Path = install().folder
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def pages_of(page: Page) -> list[str]:
    """The pages of the menu, one of each list, and those that only a button leads to."""
    listed = page.locator("#nav-sidebar a[href^='/admin/']")
    menu = listed.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    own = [path for path in menu if path.replace("/admin/", TENANT, 1) not in menu]
    one = []
    for name in ("tools", "prompts", "resources", "templates"):
        page.goto(f"{TENANT}{name}/")
        first = page.locator("tbody a").first.get_attribute("href")
        one += [f"{first}", f"{first}edit/", f"{first}disable/"] if name == "tools" else [first]
    forms = [*(TENANT + path for path in FORMS), *(f"/admin/{path}" for path in PLATFORM)]
    return [*dict.fromkeys(["/admin/", *own, *one, *forms])]


def violations_of(page: Page, axe: str, rules: str) -> list[dict[str, Any]]:
    page.wait_for_load_state()  # after a click: with its style sheets
    page.evaluate(axe)
    found = page.evaluate(f"axe.run({{runOnly: {rules}}})")["violations"]
    return [
        {"page": page.url, "rule": each["id"], "first": each["nodes"][0]["html"][:200]}
        for each in found
    ]


@contextmanager
def _planted(server: Server) -> Iterator[None]:
    """Make these columns hostile in all rows, and undo it: other tests have the same server."""
    with closing(sqlite3.connect(server.home / "db.sqlite3", timeout=20)) as database:
        undo = [
            (table, column, row)
            for table, columns in PLANTED.items()
            for column in columns
            for row in database.execute(f"SELECT {column}, rowid FROM {table}")
        ]
        with database:
            for table, column in {each[:2] for each in undo}:
                database.execute(f"UPDATE {table} SET {column} = ?", (HOSTILE,))
        try:
            yield
        finally:
            with database:
                for table, column, row in undo:
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", row)


def test_no_page_has_accessibility_violations_or_runs_hostile_text(
    visit: Visit, server: Server, axe: str
) -> None:
    page = visit("admin")
    page.add_init_script(LISTEN)
    pages = pages_of(page)
    assert len(pages) > 30
    wrong: list[Any] = []
    shown = 0
    with _planted(server):
        for path in pages:
            page.goto(path)
            wrong += page.evaluate("[...(window.canary ? ['it ran'] : []), ...window.violations]")
            wrong += violations_of(page, axe, RULES["light"])
            shown += "⟨U+202E⟩" in page.content()
    assert wrong == []
    assert shown > 10


def test_pages_in_dark_mode_have_no_accessibility_violations(visit: Visit, axe: str) -> None:
    page = visit("admin", theme="dark")
    wrong: list[Any] = []
    for path in pages_of(page):
        page.goto(path)
        wrong += violations_of(page, axe, RULES["dark"])
    assert wrong == []


@pytest.mark.parametrize("theme", RULES)
def test_the_call_page_and_open_dialogs_have_no_accessibility_violations(
    visit: Visit, server: Server, axe: str, theme: str
) -> None:
    mcp.ask(server.url, server.token, "tools/call", name="add", arguments={"a": 1, "b": 2})
    page = visit("auditor", theme=theme)
    page.goto(f"{TENANT}calls/?tool=add")
    page.locator("tbody a").first.click()
    page.wait_for_url("**/calls/*-*/")
    page.goto(f"{page.url}payloads/")
    page.evaluate(
        "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
    )
    page.keyboard.press("?")
    assert violations_of(page, axe, RULES[theme]) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.locator(".c-palette [role=combobox]").fill("demo")
    page.locator(".c-palette [role=option][aria-selected=true]").wait_for()
    assert violations_of(page, axe, RULES[theme]) == []
    page.locator(".c-palette [role=combobox]").fill("nothing has this name")
    page.locator(".c-palette [role=status]").wait_for()
    assert violations_of(page, axe, RULES[theme]) == []


def test_input_request_and_cancellation_pages_have_no_accessibility_violations(
    visit: Visit, server: Server, axe: str
) -> None:
    leg(server)
    page = visit("admin")
    page.goto(REQUESTS)
    row = page.get_by_role("row", name=TOOL).first
    expect(row).to_be_visible()
    assert violations_of(page, axe, RULES["light"]) == []
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Cancel selected…").click()
    page.get_by_label("Reason").fill("it is looked at")
    assert violations_of(page, axe, RULES["light"]) == []
    page.goto(REQUESTS)
    row.get_by_role("link").first.click()
    assert violations_of(page, axe, RULES["light"]) == []
    page.get_by_role("link", name="Cancel the call…").click()
    page.get_by_label("Reason").fill("it is looked at")
    assert violations_of(page, axe, RULES["light"]) == []
    page.get_by_role("button", name="Cancel the call").click()
    expect(page.locator(".c-page")).to_contain_text("The call was cancelled by admin")
    # Its numbers follow the record. The page's policy allows no function that is looked at again.
    wait_until(lambda: TOOL in page.request.get(f"{server.base}{REQUESTS}funnel/").text())
    page.goto(f"{REQUESTS}funnel/")
    expect(page.get_by_role("row", name=TOOL).first).to_be_visible()
    assert violations_of(page, axe, RULES["light"]) == []


def test_the_search_in_questions_has_no_accessibility_violations(
    visit: Visit, server: Server, axe: str
) -> None:
    leg(server)
    page = visit("auditor")
    page.goto(f"{REQUESTS}search/")
    page.get_by_label("Words in the question or in the answer").fill("work item")
    page.locator("[data-text-search-start]").click()
    expect(page.locator("[data-text-search-state]")).to_contain_text("in all ")
    assert violations_of(page, axe, RULES["light"]) == []
    page.goto(f"{REQUESTS}payloads/")
    assert violations_of(page, axe, RULES["light"]) == []


def test_filter_menus_and_the_export_page_have_no_accessibility_violations(
    visit: Visit, server: Server, axe: str
) -> None:
    mcp.ask(server.url, server.token, "tools/call", name="add", arguments={"a": 1, "b": 2})
    page = visit("admin")
    page.goto(f"{TENANT}calls/filters/new/?tool=add")
    page.get_by_label("Name", exact=True).fill("Additions")
    page.get_by_role("button", name="Save filter").click()
    page.wait_for_url("**/calls/?tool=add")
    page.locator(".c-pill-saved summary").click()
    expect(page.get_by_role("link", name="Additions", exact=True)).to_be_visible()
    page.locator(".c-pill summary", has_text="Period").click()
    expect(page.get_by_role("button", name="Apply")).to_be_visible()
    assert violations_of(page, axe, RULES["light"]) == []
    page.goto(f"{TENANT}calls/export/?tool=add")
    with page.expect_download():
        page.get_by_role("button", name="Export CSV").click()
    assert violations_of(page, axe, RULES["light"]) == []


@pytest.mark.parametrize("theme", RULES)
def test_pages_of_links_to_accounts_have_no_accessibility_violations(
    visit: Visit, axe: str, theme: str
) -> None:
    page = visit("admin", theme=theme)
    page.goto("/admin/users/new/")
    page.get_by_label("User name").fill(f"lou-{theme}")
    page.get_by_role("button", name="Create user and get link").click()
    link = page.locator("#account-link").inner_text()
    assert violations_of(page, axe, RULES[theme]) == []
    invitation = invite(page, f"mia-{theme}", "member", sets_up=True)
    assert violations_of(page, axe, RULES[theme]) == []
    person = window(page)
    person.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    for url in (link, invitation):
        person.goto(url)
        person.locator("main button.c-primary").click()
        expect(person.locator("[role=alert]")).to_be_visible()
        assert violations_of(person, axe, RULES[theme]) == []
    person.context.close()
