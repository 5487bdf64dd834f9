"""How people and programs come into a tenant, and what its records say of them, in a real browser."""

from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.browser.conftest import PATIENCE_MS, PHONE, WIDE, Visit, shoot
from tests.e2e.browser.mcp import ask
from tests.e2e.processes import Server

PASSWORD = "a-password-to-hand-over"
TENANT = "/admin/t/demo/"


def make_account(page: Page, name: str) -> None:
    """Staff make an account that has no role."""
    page.goto("/admin/users/new/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create user").click()
    expect(page.locator("#main")).to_contain_text(f"The account {name} was created.")


def invite(page: Page, name: str, role: str) -> str:
    """An owner invites; the link that is shown once."""
    page.goto(f"{TENANT}members/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Role", exact=True).select_option(role)
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("heading", name=f"For {name}")).to_be_visible()
    link = page.locator("#invitation").inner_text()
    page.locator("#invitation").evaluate("node => node.textContent = 'https://…/shown-once'")
    shoot(page, f"invitation-issued-{role}")
    return link


def window(page: Page) -> Page:
    """A window of a browser in which no account is signed in."""
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
    """Open the link, sign in, read, and accept."""
    page.goto(link)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    shoot(page, "sign-in-any-account")
    sign_in(page, name)
    expect(page.locator("#content")).to_contain_text(
        f"admin invites you, {name}, to join the tenant demo as member"
    )
    shoot(page, "invitation")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    shoot(page, "phone-invitation")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.get_by_role("button", name="Accept").click()
    expect(page.locator("#main")).to_contain_text("You accepted the invitation.")
    expect(page.locator("#content")).to_contain_text("invited by admin and accepted")
    shoot(page, "your-access-member")


def test_an_invited_person_accepts_and_their_own_token_is_named_in_the_record(
    visit: Visit, server: Server
) -> None:
    owner = visit("admin")
    make_account(owner, "olga")
    link = invite(owner, "olga", "member")
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="olga")).to_contain_text("open")
    shoot(owner, "members-invited")
    assert owner.goto(link).status == 404  # type: ignore[union-attr]
    expect(owner.get_by_role("heading")).to_have_text("This invitation does not work")
    shoot(owner, "invitation-of-another")

    olga = window(owner)
    accept(olga, link, "olga")
    olga.get_by_role("link", name="New token for demo").click()
    olga.get_by_label("Name").fill("Olga's laptop")
    shoot(olga, "own-token-form")
    olga.get_by_role("button", name="Issue token").click()
    token = olga.locator("#token").inner_text()
    called = ask(server.url, token, "tools/call", name="echo", arguments={"text": "hi"})
    assert called[0] == 200
    olga.goto("/admin/you/")
    shoot(olga, "your-access-with-token")
    olga.goto("/admin/")
    expect(olga.locator(".c-note-warn")).to_contain_text("has no access to this page")
    olga.context.close()

    owner.goto(f"{TENANT}calls/")
    first = owner.locator("tbody tr").first
    expect(first).to_contain_text("olga “Olga's laptop”, issued by olga")
    owner.goto(f"{TENANT}members/")
    shoot(owner, "members-accepted")
    expect(owner.get_by_role("row", name="olga").first).to_contain_text("accepted an invitation")
    owner.goto(f"{TENANT}audit-log/")
    expect(owner.locator("#content")).to_contain_text("Invitation accepted")
    shoot(owner, "changes-invited")


def test_an_invited_person_declines_in_a_browser(visit: Visit, server: Server) -> None:
    owner = visit("admin")
    make_account(owner, "denis")
    link = invite(owner, "denis", "operator")
    denis = window(owner)
    denis.goto(link)
    sign_in(denis, "denis")
    denis.get_by_role("button", name="Decline").click()
    expect(denis.locator("#main")).to_contain_text("You declined the invitation.")
    shoot(denis, "your-access-without-a-role")
    denis.context.close()
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="denis")).to_contain_text("declined")


def test_a_program_calls_as_a_service_account_and_every_record_says_so(
    visit: Visit, server: Server
) -> None:
    owner = visit("admin")
    owner.goto(f"{TENANT}service-accounts/")
    shoot(owner, "service-accounts-empty")
    owner.get_by_label("Name").fill("Nightly")
    owner.get_by_role("button", name="Create").click()
    expect(owner.locator("[data-field=name] .c-error")).to_be_visible()
    owner.get_by_label("Name").fill("nightly")
    owner.get_by_label("Description").fill("Counts things at night.")
    owner.get_by_role("button", name="Create").click()
    expect(owner.locator("#main")).to_contain_text("Service account nightly was created.")
    owner.get_by_role("link", name="Issue a token for nightly").click()
    expect(owner.get_by_label("Owner")).to_contain_text("service account nightly")
    owner.get_by_label("Name").fill("cron")
    shoot(owner, "service-token-form")
    owner.get_by_role("button", name="Issue token").click()
    token = owner.locator("#token").inner_text()
    call = {"name": "echo", "arguments": {"text": "at night"}}
    assert ask(server.url, token, "tools/call", **call)[0] == 200

    name, token_name = "service account nightly", "“cron”, issued by admin"
    owner.goto(f"{TENANT}calls/")
    expect(owner.locator("tbody tr").first).to_contain_text(f"{name} {token_name}")
    shoot(owner, "records-service-account")
    owner.locator("tbody tr").first.get_by_role("link").first.click()
    expect(owner.locator("#content")).to_contain_text(f"{name} ({token_name})")
    shoot(owner, "call-service-account")
    owner.goto(f"{TENANT}tokens/")
    shoot(owner, "tokens-service-account")

    owner.goto(f"{TENANT}service-accounts/")
    shoot(owner, "service-accounts")
    owner.get_by_role("button", name="Disable nightly").click()
    expect(owner.get_by_role("row", name="nightly")).to_contain_text("disabled")
    assert ask(server.url, token, "tools/call", **call)[0] == 401
    owner.get_by_role("button", name="Enable nightly").click()
    expect(owner.get_by_role("row", name="nightly")).to_contain_text("active")
    assert ask(server.url, token, "tools/call", **call)[0] == 200


def test_the_last_owner_and_ones_own_role_are_refused_in_words(
    visit: Visit, server: Server
) -> None:
    owner = visit("admin")
    owner.goto(f"{TENANT}members/")
    expect(owner.get_by_role("row", name="admin").first).to_contain_text("you; another owner")
    owner.get_by_role("link", name="Remove admin").click()
    owner.get_by_role("button", name="Remove").click()
    expect(owner.locator("#main")).to_contain_text("This is the last owner of the tenant.")
    shoot(owner, "last-owner")
