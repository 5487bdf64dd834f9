"""How people and programs come into a tenant, and what its records say of them, in a real browser."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.browser.conftest import PATIENCE_MS, WIDE, Visit
from tests.e2e.browser.mcp import ask
from tests.e2e.processes import Server

PASSWORD = "a-password-of-their-own"
TENANT = "/admin/t/demo/"


def make_account(page: Page, name: str) -> None:
    page.goto("/admin/users/new/")
    page.get_by_label("User name").fill(name)
    page.get_by_role("button", name="Create user and get link").click()
    expect(page.get_by_role("heading", name=f"For {name}")).to_be_visible()
    person = window(page)
    person.goto(page.locator("#account-link").inner_text())
    choose_password(person, "Set the password")
    expect(person.locator("#main")).to_contain_text("Your password is set.")
    person.context.close()


def choose_password(page: Page, button: str) -> None:
    for name in ("password", "again"):
        page.locator(f"[name={name}]").fill(PASSWORD)
    page.get_by_role("button", name=button).click()


def invite(page: Page, name: str, role: str, *, sets_up: bool = False) -> str:
    page.goto(f"{TENANT}members/")
    page.get_by_role("link", name="Invite a user").click()
    page.get_by_label("User name").fill(name)
    page.get_by_label("Role", exact=True).select_option(role)
    page.get_by_label("The person has no account yet").set_checked(sets_up)
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("heading", name=f"For {name}")).to_be_visible()
    link = page.locator("#invitation").inner_text()
    page.locator("#invitation").evaluate("node => node.textContent = 'https://…/shown-once'")
    return link


def window(page: Page) -> Page:
    browser = page.context.browser
    assert browser is not None
    fresh: BrowserContext = browser.new_context(
        base_url=page.url.partition("/admin/")[0],
        viewport=WIDE,  # type: ignore[arg-type]
        color_scheme="light",
    )
    fresh.set_default_timeout(PATIENCE_MS)
    return fresh.new_page()


def sign_in(page: Page, name: str) -> None:
    page.fill("[name=username]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("button[type=submit]")


def accept(page: Page, link: str, name: str) -> None:
    page.goto(link)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(page, name)
    expect(page.locator("#content")).to_contain_text(
        f"admin invites you, {name}, to join the tenant Demo as member"
    )
    page.get_by_role("button", name="Accept").click()
    expect(page.locator("#main")).to_contain_text("You accepted the invitation.")
    expect(page.get_by_title("You were invited by admin and accepted")).to_be_visible()


def test_a_user_accepts_an_invitation_and_the_record_names_the_users_own_token(
    visit: Visit, server: Server
) -> None:
    owner = visit("admin")
    make_account(owner, "olga")
    link = invite(owner, "olga", "member")
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="olga")).to_contain_text("open")
    assert owner.goto(link).status == 404  # type: ignore[union-attr]
    expect(owner.get_by_role("heading")).to_have_text("This invitation does not work")

    olga = window(owner)
    accept(olga, link, "olga")
    olga.get_by_role("link", name="New token for demo").click()
    olga.get_by_label("Name").fill("Olga's laptop")
    olga.get_by_role("button", name="Issue token").click()
    token = olga.locator("#token").inner_text()
    called = ask(server.url, token, "tools/call", name="echo", arguments={"text": "hi"})
    assert called[0] == 200
    olga.goto("/admin/you/")
    olga.goto("/admin/")
    expect(olga.locator(".c-note-warn")).to_contain_text("has no access to the console")
    olga.context.close()

    owner.goto(f"{TENANT}calls/")
    first = owner.locator("tbody tr").first
    expect(first).to_contain_text("olga “Olga's laptop”")
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="olga").first).to_contain_text("accepted an invitation")
    owner.goto(f"{TENANT}audit-log/")
    expect(owner.locator("#content")).to_contain_text("Invitation accepted")


def test_a_person_without_an_account_sets_one_up_by_the_link(visit: Visit) -> None:
    owner = visit("admin")
    link = invite(owner, "nora", "operator", sets_up=True)
    nora = window(owner)
    nora.goto(link)
    expect(nora.get_by_role("heading", name="Set up your account")).to_be_visible()
    expect(nora.locator("main")).to_contain_text("admin invites you to join the tenant")
    nora.get_by_label("First name").fill("Nora")
    choose_password(nora, "Create the account and join")
    expect(nora.locator("#main")).to_contain_text("Your account is set up")
    nora.goto(f"{TENANT}tools/")
    expect(nora.get_by_role("heading", level=1)).to_have_text("Tools")
    nora.context.close()
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="nora").first).to_contain_text("accepted an invitation")


def test_calls_of_a_service_account_are_recorded_under_its_name(
    visit: Visit, server: Server
) -> None:
    owner = visit("admin")
    owner.goto(f"{TENANT}service-accounts/")
    owner.get_by_role("link", name="New service account").click()
    owner.get_by_label("Name").fill("Nightly")
    owner.get_by_role("button", name="Create").click()
    expect(owner.locator("[data-field=name] .c-error")).to_be_visible()
    owner.get_by_label("Name").fill("nightly")
    owner.get_by_label("Description").fill("Counts things at night.")
    owner.get_by_role("button", name="Create").click()
    expect(owner.locator("#main")).to_contain_text("Service account nightly was created.")
    owner.get_by_role("link", name="New token for nightly").click()
    expect(owner.get_by_label("Owner")).to_contain_text("service account nightly")
    owner.get_by_label("Name").fill("cron")
    owner.get_by_role("button", name="Issue token").click()
    token = owner.locator("#token").inner_text()
    call = {"name": "echo", "arguments": {"text": "at night"}}
    assert ask(server.url, token, "tools/call", **call)[0] == 200

    name, token_name = "service account nightly", "“cron”, issued by admin"
    owner.goto(f"{TENANT}calls/")
    expect(owner.locator("tbody tr").first).to_contain_text(f"{name} {token_name}")
    owner.locator("tbody tr").first.get_by_role("link").first.click()
    expect(owner.locator("#content")).to_contain_text(f"{name} ({token_name})")
    owner.goto(f"{TENANT}tokens/")

    owner.goto(f"{TENANT}service-accounts/")
    owner.get_by_role("link", name="Disable nightly").click()
    expect(owner.locator("#main")).to_contain_text("Its tokens will work again once it is enabled.")
    owner.get_by_role("button", name="Disable the service account “nightly”").click()
    expect(owner.get_by_role("row", name="nightly")).to_contain_text("disabled")
    assert ask(server.url, token, "tools/call", **call)[0] == 401
    owner.get_by_role("button", name="Enable nightly").click()
    expect(owner.get_by_role("row", name="nightly")).to_contain_text("active")
    assert ask(server.url, token, "tools/call", **call)[0] == 200
