"""What is on the pictures, and how Chromium takes them: WebP, 1440 pixels wide."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.browser.conftest import ARGUMENTS, CHROMIUM, generated_password
from tests.e2e.processes import ROOT, Server

FOLDER = ROOT / "docs" / "images"
WIDTH = 1440
QUALITY = 0.86
PATIENCE = 60_000
ENCODE = """async ([png, quality]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}"""
"""Chromium writes PNG and JPEG only; its canvas writes WebP."""


def stay(page: Page) -> None:
    """Show the page as it is."""


ANSWERED = re.compile("2 accepted")


def write_tool(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("order_status")
    page.get_by_label("Title", exact=True).fill("Status of an order")
    page.get_by_label("Description", exact=True).fill(
        "Say where an order is and when it arrives. Use it when a customer asks for a parcel."
    )


FILE = """format: 1
tenant:
  title: Customer support
tools:
  read_order:
    kind: http
    description: Reads an order with its positions.
    config:
      input_schema:
        type: object
        properties:
          id:
            type: string
        required:
          - id
      request:
        method: GET
        url: https://orders.example.com/orders/{arguments.id}
        headers:
          - name: X-Api-Key
            value: "{secrets.orders_key}"
secrets:
  orders_key:
    hosts:
      - orders.example.com
    places:
      - header
"""


def compare_file(page: Page) -> None:
    page.get_by_label("Or paste it").fill(FILE)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_load_state("networkidle")


def _open(name: str | re.Pattern[str]) -> Callable[[Page], None]:
    def follow(page: Page) -> None:
        page.get_by_role("row", name=name).first.get_by_role("link").first.click()
        page.wait_for_load_state("networkidle")

    return follow


def _payloads(page: Page) -> None:
    _open(ANSWERED)(page)
    page.get_by_role("button", name=re.compile("Show payloads")).or_(
        page.get_by_role("link", name=re.compile("Show payloads"))
    ).first.click()
    page.wait_for_load_state("networkidle")


@dataclass(frozen=True)
class Picture:
    """A page, seen by a user, in one theme. `way` leads on from the page at `address`."""

    name: str
    address: str
    way: Callable[[Page], None] = stay
    user: str = "admin"
    theme: str = "light"
    height: int = 900


PICTURES: Sequence[Picture] = (
    Picture("dashboard", ""),
    Picture("dashboard-dark", "", theme="dark"),
    Picture("tenant", "t/support/"),
    Picture("new-tool", "t/support/tools/new/?kind=http", write_tool),
    Picture("tool", "t/support/tools/", _open("refund_order"), height=1240),
    Picture("connect", "t/support/connect/"),
    Picture("input-requests", "input-requests/"),
    Picture("calls", "t/support/calls/"),
    Picture("calls-dark", "calls/", theme="dark"),
    Picture("call", "t/support/calls/?tool=resolve_ticket", _open(ANSWERED), height=1240),
    Picture(
        "call-payloads",
        "t/support/calls/?tool=resolve_ticket",
        _payloads,
        user="auditor",
        height=1900,
    ),
    Picture("tenant-file", "t/support/file/", compare_file, height=1000),
    Picture("keys", "keys/"),
    Picture("status", "status/"),
)


def take(server: Server, names: Sequence[str] = ()) -> None:
    unknown = set(names) - {each.name for each in PICTURES}
    assert not unknown, f"there are no such pictures: {unknown}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        for picture in PICTURES:
            if not names or picture.name in names:
                try:
                    size = _take(browser, server, picture)
                    print(f"{picture.name}: {size / 1024:.0f} KiB", flush=True)
                except Exception as error:  # noqa: BLE001 - the others are taken all the same
                    print(f"{picture.name}: NOT TAKEN: {error}", flush=True)
        browser.close()


def _take(browser: Browser, server: Server, picture: Picture) -> int:
    with _signed_in(browser, server, picture) as page:
        page.goto(f"/admin/{picture.address}")
        page.wait_for_load_state("load")
        picture.way(page)
        page.evaluate("document.activeElement && document.activeElement.blur()")
        page.mouse.move(0, 0)
        png = page.screenshot(animations="disabled")
    plain = browser.new_page()
    url: str = plain.evaluate(ENCODE, [base64.b64encode(png).decode(), QUALITY])
    plain.close()
    webp = base64.b64decode(url.partition(",")[2])
    Path(FOLDER / f"{picture.name}.webp").write_bytes(webp)
    return len(webp)


@contextmanager
def _signed_in(browser: Browser, server: Server, picture: Picture) -> Iterator[Page]:
    context = browser.new_context(
        base_url=server.base,
        viewport={"width": WIDTH, "height": picture.height},
        color_scheme="dark" if picture.theme == "dark" else "light",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    page.fill("[name=username]", picture.user)
    page.fill("[name=password]", generated_password(server, picture.user))
    page.click("button[type=submit]")
    page.wait_for_url("**/admin/")
    yield page
    context.close()
