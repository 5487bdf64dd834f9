"""A member connects a client by signing in, in a real browser, and disconnects it."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, Locator, expect

from tests.e2e import raw
from tests.e2e.browser.conftest import PATIENCE_MS, WIDE, Visit, generated_password
from tests.e2e.processes import Server
from tests.oauth import CHALLENGE, VERIFIER

PATIENCE = 30


@contextmanager
def callback() -> Iterator[tuple[str, "Queue[dict[str, list[str]]]"]]:
    """The client's own server on this computer, to which the browser comes back."""
    came_back: Queue[dict[str, list[str]]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/callback?"):
                came_back.put(parse_qs(urlsplit(self.path).query))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>Back</title><h1>You may close this window</h1>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/callback", came_back
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


def post(url: str, body: bytes, media_type: str) -> dict[str, Any]:
    request = Request(url, body, {"Content-Type": media_type})
    with urlopen(request, timeout=PATIENCE) as response:
        answer: dict[str, Any] = json.loads(response.read())
    return answer


def register(server: Server, name: str, redirect_uri: str) -> dict[str, Any]:
    registration = json.dumps({"client_name": name, "redirect_uris": [redirect_uri]})
    return post(f"{server.base}/register", registration.encode(), "application/json")


def expect_connected(log: Locator, tool: str) -> None:
    """Expect all steps. The last ones are written by housekeeping, after the page was opened."""
    expect(log).to_contain_text(f"first call: {tool}")
    expect(log.locator(".c-badge")).to_have_text("connected")
    texts = ("registered", "signed in", "allowed", "code redeemed", "token presented", "first call")
    expect(log.locator("li")).to_have_text([re.compile(f"^{text}") for text in texts])


def test_a_client_is_connected_by_signing_in_and_disconnected(
    browser: Browser, server: Server
) -> None:
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    with callback() as (redirect_uri, came_back):
        client = register(server, "Night owl", redirect_uri)
        authorization = {
            "response_type": "code",
            "client_id": client["client_id"],
            "redirect_uri": redirect_uri,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "owl",
            "resource": server.url,
        }
        page = context.new_page()
        page.goto(f"{server.base}/authorize?{urlencode(authorization)}")
        page.fill("[name=username]", "admin")
        page.fill("[name=password]", generated_password(server, "admin"))
        page.click("button[type=submit]")
        expect(page.get_by_role("heading", name="Connect Night owl?")).to_be_visible()
        expect(page.get_by_text("Not verified")).to_be_visible()
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("heading", name="You may close this window")).to_be_visible()
        parameters = came_back.get(timeout=PATIENCE)
    assert parameters["state"] == ["owl"]
    assert parameters["iss"] == [server.base]
    redeemed = {
        "grant_type": "authorization_code",
        "client_id": client["client_id"],
        "code": parameters["code"][0],
        "redirect_uri": redirect_uri,
        "code_verifier": VERIFIER,
    }
    form = "application/x-www-form-urlencoded"
    pair = post(f"{server.base}/token", urlencode(redeemed).encode(), form)
    call = raw.call("echo", {"text": "by sign-in"})
    result = raw.post(server, call, pair["access_token"]).message["result"]
    assert result["content"][0]["text"] == "by sign-in"
    owner = context.new_page()
    owner.goto(f"{server.base}/admin/t/demo/connect/")
    log = owner.locator(".c-attempt").filter(has_text="Night owl for admin")
    owner.evaluate("window.sameDocument = true")
    expect_connected(log, "echo")
    page.goto(f"{server.base}/admin/you/")
    row = page.get_by_role("row").filter(has_text="Night owl")
    row.get_by_role("link", name="Disconnect").click()
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Night owl").first).to_be_visible()
    refused = raw.post(server, call, pair["access_token"])
    assert refused.status == 401
    assert "sign in with a browser again" in refused.message["error"]["message"]
    expect(log).to_contain_text("ended: revoked")
    expect(log.locator(".c-badge")).to_have_text("not connected")
    assert owner.evaluate("window.sameDocument")
    context.close()


def test_an_owner_runs_doctor_and_every_step_is_ok(visit: Visit) -> None:
    page = visit("admin")
    page.goto("/admin/t/demo/connect/")
    page.get_by_role("button", name="Run Doctor").click()
    steps = page.get_by_role("list", name="What Doctor found").get_by_role("listitem")
    expect(steps).to_have_count(14)
    expect(steps.filter(has=page.locator(".c-good"))).to_have_count(14)
    expect(page.locator("#doctor").get_by_role("status")).to_have_text("All 14 checks passed.")
    expect(page.locator(".c-sections [aria-current]")).to_have_text("Doctor")
    # What it was connected as has left nothing to look at.
    expect(page.locator(".c-attempt").filter(has_text="Doctor for admin")).to_have_count(0)
    page.goto("/admin/t/demo/connected-apps/")
    expect(page.get_by_text("Doctor")).to_have_count(0)


def test_the_anchor_of_a_client_opens_its_set_up(visit: Visit) -> None:
    page = visit("admin")
    page.goto("/admin/t/demo/connect/#codex")
    expect(page.get_by_text("codex mcp add demo --url").first).to_be_visible()
    expect(page.get_by_text("claude mcp add").first).to_be_hidden()
