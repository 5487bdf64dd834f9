"""A new tenant in a real browser, from nothing to the first call of a client, which arrives by itself."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.mcp import ask
from tests.e2e.processes import Server

SLUG = "first-steps"
TENANT = f"/admin/t/{SLUG}/"


def make_tenant(page: Page) -> None:
    page.goto("/admin/tenants/new/")
    page.get_by_label("Slug").fill(SLUG)
    page.get_by_label("Title").fill("First steps")
    page.get_by_role("button", name="Create tenant").click()
    page.get_by_label("User name").fill("admin")
    page.get_by_role("button", name="Appoint").click()
    expect(page.get_by_role("row", name="admin")).to_contain_text("owner")
    page.goto(f"{TENANT}functions/")
    page.get_by_role("button", name="Grant demo.echo").click()


def test_the_first_steps_lead_to_a_first_call_that_appears_without_a_reload(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    make_tenant(page)
    page.goto(TENANT)
    steps = page.locator("#first-steps")
    expect(steps).to_contain_text("0 of 4 done")

    steps.get_by_role("link", name="New tool").click()
    page.get_by_label("Function").select_option("demo.echo")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="echo")).to_be_visible()
    page.goto(TENANT)
    expect(steps).to_contain_text("1 of 4 done")

    steps.get_by_role("link", name="New token").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#token").inner_text()
    page.goto(TENANT)
    expect(steps).to_contain_text("2 of 4 done")

    page.evaluate("window.sameDocument = true")
    url = f"{server.base}/t/{SLUG}/mcp"
    call = {"name": "echo", "arguments": {"text": "hello"}}
    assert ask(url, token, "tools/call", **call)[0] == 200
    expect(steps).to_contain_text("The first call has arrived")
    expect(steps).to_contain_text("echo by browser-tests")
    assert page.evaluate("window.sameDocument")
    steps.get_by_role("link", name="View call").click()
    expect(page).to_have_url(re.compile(f"{TENANT}calls/[0-9a-f-]{{36}}/"))
    page.goto(TENANT)
    expect(steps).to_have_count(0)
    expect(page.locator(".c-tiles")).to_be_visible()
