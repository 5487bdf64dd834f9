"""One server and one browser for all journeys; nothing may come from elsewhere."""

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    StorageState,
    expect,
    sync_playwright,
)

from tests.e2e.processes import Server, manage, serving

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
"""Debian's. The one without windows takes a third less CPU."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MS = 30_000
"""Bounds every wait for a page: on a busy machine it may take long."""
WIDE = {"width": 1360, "height": 860}
PHONE = {"width": 390, "height": 844}

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
invited = invitations.invite(demo, "nobody-yet", Role.MEMBER, actor=Actor.person(admin.pk, admin.username))
invitations.withdraw(demo, invited.id, actor=actor)
"""
"""Makes a revoked token, a disabled service account and a withdrawn invitation: their rows look different."""

Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("uvicorn", tmp_path_factory.mktemp("browser") / "home") as started:
        yield started


@pytest.fixture(scope="session")
def ended_rows(server: Server) -> None:
    """Rows of what has ended, which look different."""
    made = manage(server.home, "shell", "-c", ENDED)
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
    yield started
    started.close()


def generated_password(server: Server, name: str) -> str:
    return (server.home / f"{name}-password").read_text().strip()


class Watch:
    """What went wrong in a browser: requests that left the machine, errors in pages."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.wrong: list[str] = []

    def request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.base}/", "data:", "blob:")):
            self.wrong.append(f"a request to {request.url}")

    def console(self, message: ConsoleMessage) -> None:
        # A refusal that a journey asks for is no error of the page.
        if message.type == "error" and "status of 4" not in message.text:
            self.wrong.append(f"on {message.page.url if message.page else '?'}: {message.text}")

    def error(self, error: Exception) -> None:
        self.wrong.append(str(error))


@pytest.fixture(scope="session")
def signed_in() -> dict[tuple[str, str], StorageState]:
    """The cookies of users who have signed in: each signs in once, and again after they have signed out."""
    return {}


@pytest.fixture
def visit(
    browser: Browser, server: Server, signed_in: dict[tuple[str, str], StorageState]
) -> Iterator[Visit]:
    """`visit("admin")`: somebody signed in, on the dashboard, in a window of their own."""
    watch = Watch(server.base)
    contexts = []

    def open_window(
        name: str, secret: str = "", size: dict[str, int] = WIDE, theme: str = "light"
    ) -> Page:
        context = browser.new_context(
            base_url=server.base,
            viewport=size,  # type: ignore[arg-type]
            color_scheme=theme,  # type: ignore[arg-type]
            permissions=["clipboard-read", "clipboard-write"],
            storage_state=signed_in.get((server.base, name)),
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("request", watch.request)
        page.on("console", watch.console)
        page.on("pageerror", watch.error)
        page.goto("/")
        if page.locator("[name=password]").count():
            page.fill("[name=username]", name)
            page.fill("[name=password]", secret or generated_password(server, name))
            page.click("button[type=submit]")
            page.wait_for_url("**/admin/")
            signed_in[server.base, name] = context.storage_state()
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert watch.wrong == []
