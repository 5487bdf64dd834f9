"""Try it in a real browser: run a script before it is saved, answer it, publish it, and call it."""

from playwright.sync_api import FrameLocator, Page, expect

from tests.e2e.browser.conftest import PHONE, WIDE, Visit, generated_password
from tests.e2e.browser.mcp import META, ask
from tests.e2e.browser.test_editor import open_editor, use_editor, write
from tests.e2e.processes import Server

SCRIPT = '''\
def brew(drink: str, cups: int = 1) -> str:
    """Brew a drink, after asking.

    Args:
        drink: What is brewed.
    """
    progress(1, 2, "boiling water")
    answer = elicit("sugar", f"Sugar for {cups} of {drink}?", {"lumps": int})
    if drink == "mud":
        return {}["mud"]
    return f"{cups} of {drink} with {answer['lumps']} lumps <b>each</b>"
'''


def trial(page: Page) -> FrameLocator:
    return page.frame_locator("iframe[name=trial]")


def run(frame: FrameLocator, drink: str) -> None:
    frame.get_by_label("drink", exact=True).fill(drink)
    frame.get_by_role("button", name="Run", exact=True).click()


def answer(frame: FrameLocator, lumps: str) -> None:
    frame.get_by_label("lumps", exact=True).fill(lumps)
    frame.get_by_role("button", name="Accept").click()


def test_a_trial_of_a_script_asks_for_input_and_the_script_is_published_unchanged(
    visit: Visit, server: Server
) -> None:
    page = visit("admin", size={**WIDE, "width": 1600})
    open_editor(page)
    write(page, SCRIPT)
    page.get_by_role("button", name="Try it").click()
    frame = trial(page)
    expect(frame.get_by_role("heading", name="Arguments")).to_be_visible()
    assert page.url.endswith("kind=script"), "the form stays where it is"
    run(frame, "tea")
    expect(frame.get_by_text("Sugar for 1 of tea?", exact=True)).to_be_visible()
    expect(frame.get_by_text("1 of 2 boiling water")).to_be_visible()
    answer(frame, "many")
    expect(frame.locator(".c-error")).to_contain_text("Enter a")
    answer(frame, "2")
    expect(frame.locator("pre").first).to_have_text("1 of tea with 2 lumps <b>each</b>")
    expect(frame.get_by_text('"resultType": "complete"')).to_be_visible()
    _, listed = ask(server.url, server.token, "tools/list")
    assert "brew" not in [tool["name"] for tool in listed["result"]["tools"]]

    page.get_by_label("Name", exact=True).fill("brew")
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name="brew")).to_be_visible()
    able = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    coffee = {"name": "brew", "arguments": {"drink": "coffee"}, "_meta": able}
    _, called = ask(server.url, server.token, "tools/call", **coffee)
    assert list(called["result"]["inputRequests"]) == ["sugar"]
    run(trial(page), "cocoa")
    expect(trial(page).get_by_text("Sugar for 1 of cocoa?", exact=True)).to_be_visible()
    trial(page).get_by_role("button", name="Decline").click()
    expect(trial(page).get_by_role("heading", name="Result")).to_be_visible()
    page.goto("/admin/t/demo/calls/")
    page.get_by_role("row", name="brew").first.get_by_role("link").first.click()
    expect(
        page.get_by_text("in a trial, answers come from the user who runs it").first
    ).to_be_visible()


def test_a_failing_line_is_named_and_the_trial_fits_a_phone_in_dark_mode(visit: Visit) -> None:
    page = visit("admin", size=PHONE, theme="dark")
    open_editor(page)
    write(page, SCRIPT)
    page.get_by_role("button", name="Try it").click()
    frame = trial(page)
    run(frame, "mud")
    answer(frame, "1")
    expect(frame.get_by_text("line 10 in brew")).to_be_visible()
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    assert frame.locator("html").evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_a_session_that_ends_inside_the_trial_frame_leads_to_the_sign_in(
    visit: Visit, server: Server
) -> None:
    page = visit("admin")
    page.goto("/admin/t/demo/tools/")
    page.get_by_role("link", name="echo", exact=True).click()
    tool = page.url
    frame = trial(page)
    frame.get_by_label("text", exact=True).fill("hello")
    page.context.clear_cookies(name="mcphost_session")
    frame.get_by_role("button", name="Run", exact=True).click()
    expect(frame.get_by_role("heading", name="Your session has ended")).to_be_visible()
    frame.get_by_role("link", name="Sign in again").click()
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", generated_password(server, "admin"))
    page.click("button[type=submit]")
    page.wait_for_url(tool)
    expect(trial(page).get_by_role("button", name="Run", exact=True)).to_be_visible()


def test_a_trial_ends_when_its_page_is_left_or_another_trial_starts(visit: Visit) -> None:
    page = visit("admin", size={**WIDE, "width": 1600})
    open_editor(page)
    write(page, SCRIPT)
    page.get_by_label("Name", exact=True).fill("brew_often")
    frame = trial(page)
    for drink in ("tea", "milk"):
        page.get_by_role("button", name="Try it").click()
        expect(frame.get_by_role("heading", name="Arguments")).to_be_visible()
        run(frame, drink)
        expect(frame.get_by_text(f"Sugar for 1 of {drink}?", exact=True)).to_be_visible()
    page.goto("/admin/t/demo/input-requests/")
    page.goto("/admin/t/demo/calls/?tool=brew_often")
    rows = page.locator("main tbody tr")
    expect(rows.filter(has_text="cancelled")).to_have_count(2)
    rows.first.get_by_role("link").first.click()
    expect(page.get_by_text("The page of the trial was left.").first).to_be_visible()


def waiting(page: Page, name: str) -> FrameLocator:
    open_editor(page)
    write(page, SCRIPT)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save and publish").click()
    frame = trial(page)
    run(frame, "tea")
    expect(frame.get_by_text("Sugar for 1 of tea?", exact=True)).to_be_visible()
    return frame


def test_a_trial_ends_when_its_operator_signs_out(visit: Visit) -> None:
    page = visit("admin", size={**WIDE, "width": 1600})
    waiting(page, "brew_till_late")
    page.locator("[popovertarget=account-menu]").click()
    page.get_by_role("button", name="Sign out").click()
    page = visit("admin", size=WIDE)
    page.goto("/admin/t/demo/calls/?tool=brew_till_late")
    expect(page.locator("main tbody tr").filter(has_text="cancelled")).to_have_count(1)


def published(page: Page, name: str) -> FrameLocator:
    """Publish the script under a name; return the trial on its page."""
    open_editor(page)
    write(page, SCRIPT)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    return trial(page)


def test_a_trial_plays_other_clients_and_its_call_is_copied(visit: Visit) -> None:
    page = visit("admin", size={**WIDE, "width": 1600})
    frame = published(page, "brew_for_others")
    frame.get_by_label("The client that calls").select_option("nothing")
    run(frame, "tea")
    expect(frame.get_by_text("needs a client with the capability").first).to_be_visible()
    frame.get_by_label("The client that calls").select_option("custom")
    frame.get_by_label("Protocol revision").select_option("2025-06-18")
    frame.get_by_label("Forms (elicitation)").check()
    run(frame, "tea")
    expect(frame.get_by_text("The client begins a session.")).to_be_visible()
    expect(frame.get_by_text("In a session the server keeps it.")).to_be_visible()
    answer(frame, "2")
    expect(frame.get_by_text("The call is complete.")).to_be_visible()
    frame.locator(".c-snippet summary").first.click()
    button = frame.get_by_role("button", name="Copy the lines for curl")
    button.click()
    expect(button).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "MCP-Protocol-Version: 2025-06-18" in copied
    assert "YOUR_TOKEN" in copied


def test_a_call_is_saved_and_run_again_after_an_edit(visit: Visit) -> None:
    page = visit("admin", size={**WIDE, "width": 1600})
    frame = published(page, "brew_again")
    run(frame, "tea")
    answer(frame, "2")
    frame.get_by_text("Save this call, to run it again").click()
    frame.get_by_label("Name", exact=True).fill("sweet tea")
    frame.get_by_label("The result contains").fill("2 lumps")
    frame.get_by_role("button", name="Save", exact=True).click()
    expect(frame.get_by_role("heading", name="Saved")).to_be_visible()
    page.reload()
    saved = page.get_by_role("region", name="Saved calls")
    saved.get_by_role("button", name="Run all").click()
    expect(saved.get_by_text("1 of 1 passed")).to_be_visible()
    page.get_by_role("link", name="Edit", exact=True).click()
    use_editor(page)
    write(page, SCRIPT.replace("lumps <b>", "cubes <b>"))
    page.get_by_role("button", name="Save working copy").click()
    expect(page.get_by_role("heading", name="brew_again", exact=True)).to_be_visible()
    saved.get_by_role("button", name="Run sweet tea").click()
    expect(saved.get_by_text("0 of 1 passed")).to_be_visible()
    expect(saved.get_by_text("The result does not contain “2 lumps”.")).to_be_visible()
    expect(saved.locator("pre")).to_have_text("1 of tea with 2 cubes <b>each</b>")
    saved.get_by_role("link", name="Delete sweet tea").click()
    page.get_by_role("button", name="Delete").click()
    expect(saved.get_by_text("None yet.")).to_be_visible()
