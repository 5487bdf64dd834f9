"""The whole way of a person without an account, from the owner's link to an answered question of a tool."""

from pathlib import Path
from queue import Queue

from playwright.sync_api import Page, expect

from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.test_invitations import choose_password, invite, window
from tests.e2e.browser.test_sign_in import PATIENCE, expect_connected
from tests.e2e.callers import command
from tests.e2e.client_process import Talk, conversing
from tests.e2e.demo_responses import HOW, RESOLVE, ended
from tests.e2e.desktops import desktop
from tests.e2e.handmade_calls import accept
from tests.e2e.processes import Server
from tests.e2e.test_python_client import DEMO_TOOLS

TENANT = "/admin/t/demo/"
NAME, CLIENT = "mira", "A client in Python"
TOOL: str = RESOLVE["call"]
ASKED_OF = 3
"""The column of the list of questions that says who was asked."""


def join(page: Page, link: str) -> str:
    """Set the account up; return the address that the person then finds."""
    page.goto(link)
    choose_password(page, "Create the account and join")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your access")
    expect(page.locator("#main")).to_contain_text("Your account is set up")
    expect(page.get_by_role("row", name="demo")).to_contain_text("member")
    addresses = page.locator("#addresses")
    expect(addresses.get_by_role("button", name="Copy the address of demo")).to_be_visible()
    return addresses.locator("code").inner_text()


def allow(page: Page, url: str) -> None:
    """Show the person the page that the client opens, up to the client's own page."""
    page.goto(url)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Connect {CLIENT}?")
    expect(page.locator("main")).to_contain_text(f"wants to act for you, {NAME}")
    page.get_by_role("button", name="Allow").click()
    expect(page.locator("body")).to_have_text("Done")


def answer(talk: Talk, owner: Page) -> None:
    """Call, and answer what is asked; the owner's list of questions has the question, and then its answer."""
    talk.say(RESOLVE)
    assert talk.hear("asked")["message"] == HOW
    owner.goto(f"{TENANT}input-requests/")
    question = owner.get_by_role("row", name=NAME)
    expect(question).to_contain_text(TOOL)
    expect(question).to_contain_text("open")
    expect(question.get_by_role("cell").nth(ASKED_OF)).to_contain_text(NAME)
    talk.say(accept(resolution="Fixed"))
    said, is_error = ended(talk)
    assert "resolved as Fixed" in said
    assert not is_error
    expect(question).to_contain_text("accepted")  # without a reload


def test_a_newcomer_joins_connects_a_client_and_answers_a_question(
    visit: Visit, server: Server, tmp_path: Path
) -> None:
    owner = visit("admin")
    link = invite(owner, NAME, "member", sets_up=True)
    newcomer = window(owner)
    address = join(newcomer, link)
    assert address == server.url

    opened: Queue[str] = Queue()
    with desktop(tmp_path / "home", opened.put) as computer:
        started = computer.command(command("python"))
        tokens = str(computer.home / "tokens.json")
        with conversing(started, computer.home, url=address, tokens=tokens) as talk:
            allow(newcomer, opened.get(timeout=PATIENCE))
            assert set(talk.hear("met")["tools"]) >= DEMO_TOOLS
            answer(talk, owner)
            assert talk.end() == 0
    assert len(computer.pages) == 1
    assert computer.faults == []

    newcomer.goto("/admin/you/")
    app = newcomer.get_by_role("row").filter(has_text=CLIENT)
    expect(app).to_contain_text("live")
    expect(app).to_contain_text("Demo")
    owner.goto(f"{TENANT}connect/")
    log = owner.locator(".c-attempt").filter(has_text=f"{CLIENT} for {NAME}")
    expect_connected(log, TOOL)
    newcomer.context.close()
