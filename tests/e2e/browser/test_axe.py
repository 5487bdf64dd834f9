"""Accessibility: axe finds nothing on any page of the console, in light and dark."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import mcp
from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.test_input_requests import REQUESTS, TOOL, leg
from tests.e2e.node_client import install
from tests.e2e.processes import Server, manage

RULES = {
    "light": '["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]',
    "dark": '{type: "rule", values: ["color-contrast", "link-in-text-block"]}',
}
"""What is looked for in each theme: all of it once, and the colours again."""
TENANT = "/admin/t/demo/"
ENDED = """
from django.contrib.auth.models import User
from mcphost.audit.records import Actor
from mcphost.identity import service_accounts, services
from mcphost.tenants import invitations
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
actor, admin, demo = Actor.system("tests"), User.objects.get(username="admin"), Tenant.objects.get(slug="demo").id
token = services.issue(demo, admin, services.TokenRequest("former", ("mcp:list",)), actor=actor)
services.revoke(demo, token.id, actor=actor)
service_accounts.disable(demo, service_accounts.create(demo, "former", actor=actor), actor=actor)
invited = invitations.invite(demo, "nobody-yet", Role.MEMBER, inviter=admin)
invitations.withdraw(demo, invited.id, actor=actor)
"""
"""Makes a revoked token, a disabled service account and a withdrawn invitation: their rows look different."""
FORMS = (
    "tools/new/?kind=python",
    "tools/new/?kind=script",
    "tools/new/?kind=http",
    "tools/import/",
    "prompts/new/",
    "resources/new/",
    "templates/new/",
    "secrets/new/",
    "tokens/new/",
    "refusals/",
    "calls/export/",
    "calls/filters/new/?tool=add",
    "input-requests/funnel/",
    "close/",
    "salt/",
)
PLATFORM = (
    "tenants/new/",
    "users/new/",
    "keys/rotate/",
    "keys/compromised/",
    "password/",
    "none/",
    "calls/export/",
    "input-requests/funnel/",
)


@pytest.fixture(scope="module", autouse=True)
def _ended_rows(server: Server) -> None:
    made = manage(server.home, "shell", "-c", ENDED)
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="session")
def axe() -> str:
    """The program that is run on each page; npm has it."""
    folder: Path = install().folder
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def _pages(page: Page) -> list[str]:
    """The pages of the menu, one of each list, and those that only a button leads to."""
    listed = page.locator("#nav-sidebar a[href^='/admin/']")
    menu = listed.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    one = []
    for name in ("tools", "prompts", "resources", "templates"):
        page.goto(f"{TENANT}{name}/")
        first = page.locator("tbody a").first.get_attribute("href")
        one += [f"{first}", f"{first}edit/", f"{first}disable/"]
    forms = [*(TENANT + path for path in FORMS), *(f"/admin/{path}" for path in PLATFORM)]
    return [*dict.fromkeys([*menu, *one, *forms])]


def _violations(page: Page, path: str, axe: str, rules: str) -> list[dict[str, Any]]:
    page.goto(path)
    return _found(page, axe, rules)


def _found(page: Page, axe: str, rules: str) -> list[dict[str, Any]]:
    page.evaluate(axe)
    found = page.evaluate(f"axe.run({{runOnly: {rules}}})")["violations"]
    return [
        {"page": page.url, "rule": each["id"], "first": each["nodes"][0]["html"][:200]}
        for each in found
    ]


@pytest.mark.parametrize("theme", RULES)
def test_axe_finds_nothing_on_any_page(visit: Visit, axe: str, theme: str) -> None:
    page = visit("admin", theme=theme)
    pages = _pages(page)
    assert len(pages) > 40
    assert [each for path in pages for each in _violations(page, path, axe, RULES[theme])] == []


@pytest.mark.parametrize("theme", RULES)
def test_axe_finds_nothing_on_a_call_and_in_open_dialogs(
    visit: Visit, server: Server, axe: str, theme: str
) -> None:
    status, _ = mcp.ask(
        server.url, server.token, "tools/call", name="add", arguments={"a": 1, "b": 2}
    )
    assert status == 200
    page = visit("auditor", theme=theme)
    page.goto(f"{TENANT}calls/?tool=add")
    page.locator("tbody a").first.click()
    page.wait_for_url("**/calls/*-*/")
    page.goto(f"{page.url}payloads/")
    page.evaluate(
        "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
    )
    assert _found(page, axe, RULES[theme]) == []
    page.keyboard.press("?")
    assert _found(page, axe, RULES[theme]) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.locator(".c-palette [role=combobox]").fill("demo")
    page.locator(".c-palette [role=option][aria-selected=true]").wait_for()
    assert _found(page, axe, RULES[theme]) == []
    page.locator(".c-palette [role=combobox]").fill("nothing has this name")
    page.locator(".c-palette [role=status]").wait_for()
    assert _found(page, axe, RULES[theme]) == []
    page.goto("/admin/search/?q=demo")
    assert _found(page, axe, RULES[theme]) == []


@pytest.mark.parametrize("theme", RULES)
def test_axe_finds_nothing_on_input_requests_and_their_ends(
    visit: Visit, server: Server, axe: str, theme: str
) -> None:
    leg(server)
    page = visit("admin", theme=theme)
    page.goto(REQUESTS)
    row = page.get_by_role("row", name=TOOL).first
    expect(row).to_be_visible()
    assert _found(page, axe, RULES[theme]) == []
    row.get_by_role("link", name="Cancel the call of").click()
    page.get_by_label("Reason").fill("it is looked at")
    assert _found(page, axe, RULES[theme]) == []
    page.get_by_role("button", name="Cancel the call").click()
    expect(page.locator(".c-page")).to_contain_text("The call was cancelled by admin")
    assert _found(page, axe, RULES[theme]) == []
    page.goto(f"{REQUESTS}funnel/")
    _until_counted(page, TOOL)
    assert _found(page, axe, RULES[theme]) == []
    page.goto("/admin/input-requests/funnel/?period=30d")
    expect(page.get_by_role("row", name=TOOL).first).to_be_visible()
    assert _found(page, axe, RULES[theme]) == []


def _until_counted(page: Page, name: str) -> None:
    """Load the page until its numbers, which follow the record, have the row."""
    page.wait_for_function(
        """async (name) => {
            const page = await (await fetch(location.href)).text();
            return page.includes(name);
        }""",
        arg=name,
    )
    page.reload()
    expect(page.get_by_role("row", name=name).first).to_be_visible()


@pytest.mark.parametrize("theme", RULES)
def test_axe_finds_nothing_in_the_menu_of_saved_filters_and_in_an_export(
    visit: Visit, server: Server, axe: str, theme: str
) -> None:
    mcp.ask(server.url, server.token, "tools/call", name="add", arguments={"a": 1, "b": 2})
    page = visit("admin", theme=theme)
    page.goto(f"{TENANT}calls/filters/new/?tool=add")
    page.get_by_label("Name", exact=True).fill(f"Additions, {theme}")
    page.get_by_role("button", name="Save filter").click()
    page.wait_for_url("**/calls/?tool=add")
    page.locator(".c-pill-saved summary").click()
    expect(page.get_by_role("link", name=f"Additions, {theme}", exact=True)).to_be_visible()
    assert _found(page, axe, RULES[theme]) == []
    page.keyboard.press("Escape")
    page.locator(".c-pill summary", has_text="Dates").click()
    expect(page.get_by_role("button", name="Apply")).to_be_visible()
    assert _found(page, axe, RULES[theme]) == []
    page.goto(f"{TENANT}calls/export/?tool=add")
    with page.expect_download():
        page.get_by_role("button", name="Export CSV").click()
    assert _found(page, axe, RULES[theme]) == []
