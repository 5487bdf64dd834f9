"""What people do in the console, from beginning to end, in a real browser."""

from playwright.sync_api import Page, expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit, shoot
from tests.e2e.browser.mcp import META, ask, tools
from tests.e2e.processes import Server

TENANT = "/admin/t/demo/"


def menu(page: Page, name: str) -> None:
    """Go somewhere by the sidebar."""
    if "/t/" not in page.url:  # several tenants: the pages of one are in its own menu
        page.goto(TENANT)
    page.locator("#nav-sidebar").get_by_text(name, exact=True).click()


def test_a_wrong_password_is_told_and_the_right_one_lets_in(visit: Visit, server: Server) -> None:
    page = visit("admin")
    expect(page.get_by_role("heading", name="Welcome, admin")).to_be_visible()
    shoot(page, "dashboard")
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/admin/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "wrong")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert")).to_contain_text("password is wrong")
    shoot(page, "sign-in-refused")


def test_a_locked_sign_in_says_how_long_to_wait(visit: Visit, server: Server) -> None:
    page = visit("admin")
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/admin/")
    for _ in range(9):
        page.fill("[name=username]", "larissa")
        page.fill("[name=password]", "wrong")
        with page.expect_navigation():
            page.click("button[type=submit]")
    expect(page.get_by_role("alert")).to_contain_text("Wait 15 minutes, then try again.")
    shoot(page, "sign-in-locked")
    page.set_viewport_size(PHONE)
    shoot(page, "phone-sign-in-locked")


def test_a_tool_is_registered_seen_by_clients_and_disabled_again(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    menu(page, "Tools")
    shoot(page, "tools")
    page.get_by_role("link", name="New tool").click()
    page.get_by_label("Function").select_option("demo.echo")
    name = page.get_by_label("Name", exact=True)
    expect(name).to_have_value("echo")
    name.fill("say it again")
    page.get_by_label("Title").fill("Say it again")
    page.get_by_role("button", name="Save and publish").click()
    wrong = page.locator("[data-field=name]")
    expect(wrong.locator(".c-error")).to_be_visible()
    expect(page.locator(".c-error")).to_have_count(1)
    expect(page.get_by_label("Title")).to_have_value("Say it again")
    shoot(page, "tool-wrong-name")
    assert "say_again" not in tools(server.url, server.token)

    name.fill("say_again")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="say_again")).to_be_visible()
    assert "say_again" in tools(server.url, server.token)
    shoot(page, "tool-published")

    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Say it once more")
    page.get_by_role("button", name="Save working copy").click()
    expect(page.get_by_role("heading", name="Unpublished changes")).to_be_visible()
    shoot(page, "tool-edited")
    page.get_by_role("button", name="Publish again").click()
    expect(page.get_by_role("heading", name="Unpublished changes")).to_have_count(0)

    page.get_by_role("link", name="Disable…").click()
    shoot(page, "tool-disable")
    page.get_by_role("button", name="Disable").click()
    expect(page.locator(".c-heading .c-badge")).to_have_text("disabled")
    assert "say_again" not in tools(server.url, server.token)
    page.get_by_role("button", name="Enable").click()
    expect(page.locator(".c-heading .c-badge")).to_have_text("published")
    assert "say_again" in tools(server.url, server.token)


def test_a_version_is_compared_rolled_back_and_published_again(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    menu(page, "Tools")
    page.get_by_role("link", name="New tool").click()
    page.get_by_label("Function").select_option("demo.echo")
    page.get_by_label("Name", exact=True).fill("say_versions")
    page.get_by_label("Title").fill("Say it again")
    page.get_by_role("button", name="Save and publish").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Say it once more")
    page.get_by_role("button", name="Save and publish").click()

    page.get_by_role("link", name="Changes of version 2").click()
    expect(page.get_by_role("region", name="Title")).to_contain_text("Say it once more")
    expect(page.locator("del")).to_have_text("Say it again")
    shoot(page, "tool-version")
    page.go_back()
    page.get_by_role("link", name="Roll back… to version 1").click()
    page.get_by_label("Note").fill("The new title is wrong.")
    shoot(page, "tool-roll-back")
    page.get_by_role("button", name="Serve version 1 again").click()
    expect(page.locator(".c-heading code")).to_contain_text("1+")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Note").fill("Right after all.")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("row", name="Right after all.")).to_contain_text("3+")
    shoot(page, "tool-versions")
    page.set_viewport_size(PHONE)
    shoot(page, "phone-tool-versions")
    page.set_viewport_size(WIDE)


def test_a_token_is_issued_copied_used_and_revoked(visit: Visit, server: Server) -> None:
    page = visit("admin")
    menu(page, "Tokens")
    page.get_by_role("link", name="New token").click()
    page.get_by_role("button", name="Issue token").click()
    expect(page.locator("[data-field=name] .c-error")).to_be_visible()
    page.get_by_label("Name").fill("Journey")
    shoot(page, "token-form")
    page.get_by_role("button", name="Issue token").click()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copy the token")).to_have_text("Copied")
    token = page.evaluate("navigator.clipboard.readText()")
    assert token == page.locator("#token").inner_text()
    page.locator("#token").evaluate("node => node.textContent = 'mcph_shown_once'")
    page.locator("pre code").evaluate_all(
        "(nodes, token) => nodes.forEach(n => n.textContent = n.textContent.replaceAll(token, 'mcph_shown_once'))",
        token,
    )
    shoot(page, "token-issued")

    status, answer = ask(server.url, token, "tools/call", name="echo", arguments={"text": "hi"})
    assert (status, answer["result"]["content"][0]["text"]) == (200, "hi")

    page.reload()
    expect(page.get_by_role("heading", name="Tokens")).to_be_visible()
    assert token not in page.content()
    shoot(page, "tokens")
    page.get_by_role("link", name="Revoke Journey").click()
    shoot(page, "token-revoke")
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="Journey")).to_contain_text("revoked")
    assert ask(server.url, token, "tools/list")[0] == 401


def test_a_call_is_reviewed_with_what_was_said_by_auditors_alone(
    visit: Visit, server: Server
) -> None:
    said = "what only an auditor may read"
    status, _ = ask(server.url, server.token, "tools/call", name="echo", arguments={"text": said})
    assert status == 200
    auditor = visit("auditor")
    menu(auditor, "Calls")
    shoot(auditor, "calls")
    auditor.locator("tbody tr").first.get_by_role("link").first.click()
    shoot(auditor, "call-as-auditor")
    auditor.get_by_role("link", name="Show", exact=True).click()
    expect(auditor.locator("#content")).to_contain_text(said)
    shoot(auditor, "payload")
    call = auditor.url

    owner = visit("admin")
    menu(owner, "Calls")
    owner.locator("tbody tr").first.get_by_role("link").first.click()
    expect(owner.locator("#content")).to_contain_text("auditors can read it")
    expect(owner.get_by_role("link", name="Show")).to_have_count(0)
    assert said not in owner.content()
    assert owner.goto(call).status == 403  # type: ignore[union-attr]
    shoot(owner, "refused")
    owner.goto(f"{TENANT}audit-log/")
    expect(owner.locator("tbody tr").first).to_contain_text("Payload viewed")
    shoot(owner, "audit-log")


def test_a_question_is_watched_while_it_waits_and_reviewed_when_it_was_answered(
    visit: Visit, server: Server
) -> None:
    able = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    call = {
        "name": "update_work_item",
        "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
        "_meta": able,
    }
    _, asked = ask(server.url, server.token, "tools/call", **call)
    owner, auditor = visit("admin"), visit("auditor")
    shoot(owner, "dashboard-open-question")
    owner.get_by_role("link", name="resolution").last.click()
    expect(owner.locator("#content")).to_contain_text("waiting for a response to resolution")
    shoot(owner, "call-that-waits")

    answers = {"resolution": {"action": "accept", "content": {"resolution": "By Design"}}}
    state = asked["result"]["requestState"]
    ask(server.url, server.token, "tools/call", **call, requestState=state, inputResponses=answers)
    owner.reload()
    expect(owner.locator("#content")).to_contain_text("accepted by")
    expect(owner.locator("#content")).not_to_contain_text("By Design")

    auditor.goto(owner.url)
    auditor.get_by_role("link", name="Show payloads").click()
    expect(auditor.locator("#content")).to_contain_text("By Design")
    shoot(auditor, "call-as-it-was-said")
    auditor.set_viewport_size(PHONE)
    shoot(auditor, "phone-call-as-it-was-said")


def test_staff_open_a_tenant_and_give_it_what_it_needs(visit: Visit, server: Server) -> None:
    page = visit("admin")
    page.get_by_role("link", name="New tenant").click()
    page.get_by_label("Slug").fill("Initech!")
    page.get_by_role("button", name="Create tenant").click()
    expect(page.locator("[data-field=slug] .c-error")).to_be_visible()
    page.get_by_label("Slug").fill("initech")
    page.get_by_label("Title").fill("Initech")
    page.get_by_role("button", name="Create tenant").click()
    page.get_by_label("User name").fill("admin")
    shoot(page, "first-owner")
    page.get_by_role("button", name="Appoint").click()
    expect(page.locator("#main")).to_contain_text("admin is now an owner")
    shoot(page, "members")
    menu(page, "Overview")
    shoot(page, "first-steps")
    menu(page, "Python functions")
    page.get_by_role("button", name="Grant demo.add").click()
    expect(page.get_by_role("button", name="Revoke demo.add")).to_be_visible()
    shoot(page, "functions")
    menu(page, "Settings")
    shoot(page, "settings")
    page.get_by_role("link", name="Close…").click()
    page.get_by_label("Type the slug").fill("initech")
    page.get_by_role("button", name="Close permanently").click()
    expect(page.locator("#content")).to_contain_text("its calls and audit log can still be read")
    shoot(page, "closed")


PAGES = {
    "dashboard": "/admin/",
    "tools": f"{TENANT}tools/",
    "tool-form": f"{TENANT}tools/new/",
    "http-form": f"{TENANT}tools/new/?kind=http",
    "script-form": f"{TENANT}tools/new/?kind=script",
    "import": f"{TENANT}tools/import/",
    "tokens": f"{TENANT}tokens/",
    "calls": f"{TENANT}calls/",
    "refusals": f"{TENANT}refusals/",
    "audit-log": f"{TENANT}audit-log/",
    "members": f"{TENANT}members/",
    "service-accounts": f"{TENANT}service-accounts/",
    "you": "/admin/you/",
    "settings": f"{TENANT}settings/",
    "users": "/admin/users/",
    "all-functions": "/admin/functions/",
    "all-calls": "/admin/calls/",
}


DARK = ("dashboard", "tools", "tool-form", "http-form", "script-form", "calls", "members")
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def test_pages_fit_a_phone(visit: Visit) -> None:
    page = visit("admin", size=PHONE)
    for name, path in PAGES.items():
        page.goto(path)
        shoot(page, f"phone-{name}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], name


def test_pages_are_dark_where_people_like_it_dark(visit: Visit) -> None:
    dark, light = visit("admin", theme="dark"), visit("admin")
    for name in DARK:
        dark.goto(PAGES[name])
        light.goto(PAGES[name])
        shoot(dark, f"dark-{name}")
        assert dark.evaluate(BACKGROUND) != light.evaluate(BACKGROUND), name


def test_the_menu_of_a_phone_opens_and_leads_on(visit: Visit) -> None:
    page = visit("admin", size=PHONE)
    page.goto(TENANT)
    page.get_by_role("button", name="Show the menu").click()
    shoot(page, "phone-menu")
    menu(page, "Tokens")
    expect(page.get_by_role("heading", name="Tokens")).to_be_visible()
