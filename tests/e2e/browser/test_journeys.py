"""What people do in the console, from beginning to end, in a real browser."""

import re

from playwright.sync_api import Page, expect

from tests.e2e.browser.conftest import PHONE, Visit
from tests.e2e.browser.mcp import able, ask, tools
from tests.e2e.processes import Server

TENANT = "/admin/t/demo/"


def menu(page: Page, name: str) -> None:
    if "/t/" not in page.url:  # several tenants: the pages of one are in its own menu
        page.goto(TENANT)
    page.locator("#nav-sidebar").get_by_text(name, exact=True).click()


def test_a_wrong_password_is_refused_with_a_message(visit: Visit, server: Server) -> None:
    page = visit("admin")
    expect(page.get_by_role("heading", name="Welcome, admin")).to_be_visible()
    page.locator(".c-account-button").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/admin/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", "wrong")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert")).to_contain_text("password is wrong")


def test_a_tool_is_registered_listed_by_clients_and_disabled_again(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    menu(page, "Tools")
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
    assert "say_again" not in tools(server.url, server.token)

    name.fill("say_again")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="say_again")).to_be_visible()
    assert "say_again" in tools(server.url, server.token)

    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Say it once more")
    page.get_by_role("button", name="Save working copy").click()
    expect(page.get_by_role("heading", name="Unpublished changes")).to_be_visible()
    page.get_by_role("button", name="Publish again").click()
    expect(page.get_by_role("heading", name="Unpublished changes")).to_have_count(0)

    page.get_by_role("link", name="Disable…").click()
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
    page.go_back()
    page.get_by_role("link", name="Roll back… to version 1").click()
    page.get_by_label("Note").fill("The new title is wrong.")
    page.get_by_role("button", name=re.compile("to version 1$")).click()
    expect(page.locator(".c-heading")).to_contain_text("v1")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Note").fill("Right after all.")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("row", name="Right after all.")).to_contain_text("v3")


def test_a_token_is_issued_copied_used_and_revoked(visit: Visit, server: Server) -> None:
    page = visit("admin")
    menu(page, "Tokens")
    page.get_by_role("link", name="New token").click()
    page.get_by_role("button", name="Issue token").click()
    expect(page.locator("[data-field=name] .c-error")).to_be_visible()
    page.get_by_label("Name").fill("Journey")
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

    status, answer = ask(server.url, token, "tools/call", name="echo", arguments={"text": "hi"})
    assert (status, answer["result"]["content"][0]["text"]) == (200, "hi")

    page.reload()
    expect(page.get_by_role("heading", name="Tokens")).to_be_visible()
    assert token not in page.content()
    page.get_by_role("link", name="Revoke Journey").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="Journey")).to_contain_text("revoked")
    assert ask(server.url, token, "tools/list")[0] == 401


def test_only_auditors_can_review_the_payload_of_a_call(visit: Visit, server: Server) -> None:
    said = "what only an auditor may read"
    status, _ = ask(server.url, server.token, "tools/call", name="echo", arguments={"text": said})
    assert status == 200
    auditor = visit("auditor")
    menu(auditor, "Calls")
    auditor.locator("tbody tr").first.get_by_role("link").first.click()
    auditor.get_by_role("link", name="Show", exact=True).click()
    expect(auditor.locator("#content")).to_contain_text(said)
    call = auditor.url

    owner = visit("admin")
    menu(owner, "Calls")
    owner.locator("tbody tr").first.get_by_role("link").first.click()
    expect(owner.locator("#content")).to_contain_text("auditors can read it")
    expect(owner.get_by_role("link", name="Show")).to_have_count(0)
    assert said not in owner.content()
    assert owner.goto(call).status == 403  # type: ignore[union-attr]
    owner.goto(f"{TENANT}audit-log/")
    expect(owner.locator("tbody tr").first).to_contain_text("Payload viewed")


def test_an_input_request_is_shown_while_it_waits_and_after_its_response(
    visit: Visit, server: Server
) -> None:
    call = {
        "name": "update_work_item",
        "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
        "_meta": able(elicitation={"form": {}}),
    }
    _, asked = ask(server.url, server.token, "tools/call", **call)
    owner, auditor = visit("admin"), visit("auditor")
    owner.get_by_role("link", name="Resolution").last.click()
    expect(owner.locator("#content")).to_contain_text("waiting for an answer to Resolution")

    answers = {"resolution": {"action": "accept", "content": {"resolution": "By Design"}}}
    state = asked["result"]["requestState"]
    ask(server.url, server.token, "tools/call", **call, requestState=state, inputResponses=answers)
    owner.reload()
    expect(owner.locator("#content")).to_contain_text("accepted by")
    expect(owner.locator("#content")).not_to_contain_text("By Design")

    auditor.goto(owner.url)
    auditor.get_by_role("link", name="Show payloads").click()
    expect(auditor.locator("#content")).to_contain_text("By Design")


PAGES = (
    "/admin/",
    "/admin/you/",
    "/admin/users/",
    "/admin/keys/",
    "/admin/status/",
    *(
        f"{TENANT}{path}"
        for path in (
            "tools/",
            "tools/new/",
            "tools/new/?template=approval",
            "tools/new/?kind=http",
            "tools/new/?kind=script",
            "tools/import/",
            "prompts/new/",
            "resources/new/",
            "templates/new/",
            "tokens/",
            "calls/",
            "input-requests/funnel/",
            "refusals/",
            "audit-log/",
            "members/",
            "secrets/",
            "settings/",
        )
    ),
)


def test_pages_fit_a_phone(visit: Visit) -> None:
    page = visit("admin", size=PHONE)
    for path in PAGES:
        page.goto(path)
        for button in page.get_by_role("button", name=re.compile("^Add a")).all():
            button.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
