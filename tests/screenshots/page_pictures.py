"""Take the pictures of all pages in each mode, and check each page meanwhile.

A page is opened once: it is taken in light, then in dark mode, then at the width of a phone.
"""

import base64
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, FloatRect, Page, StorageState, sync_playwright

from tests.e2e.browser.conftest import ARGUMENTS, CHROMIUM, PHONE, Watch, generated_password
from tests.e2e.processes import Server
from tests.screenshots.pages import DOCUMENT, MODES, PAGES, PAGES_FOLDER, ConsolePage, page_list
from tests.screenshots.pictures import PATIENCE, WIDTH, stay

HEIGHT: Final = 900
CWEBP: Final = shutil.which("cwebp") or "/usr/bin/cwebp"
"""Debian's package webp has it."""
MAX_HEIGHT: Final = 1000
"""Longer pages are cut."""
COLORS, FREQUENT_COLORS, COLOR_DISTANCE = 44, 12, 1200
OVERFLOW: Final = "document.scrollingElement.scrollWidth - window.innerWidth"
PAGE_SIZE: Final = "[window.innerWidth, document.scrollingElement.scrollHeight]"
LOWER_BUTTONS: Final = """height => {
    for (const bar of document.querySelectorAll(".c-form > .c-buttons"))
        bar.style.bottom = `${Math.min(0, innerHeight - height)}px`;
}"""
"""A picture is higher than the window, at whose edge the save buttons of a form stick."""
REDUCE: Final = """async ([png, count, frequent, apart]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const lossy = canvas.toDataURL("image/webp", 0.6);
  const data = context.getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Uint32Array(data.data.buffer), uses = new Map();
  for (const pixel of pixels) uses.set(pixel, (uses.get(pixel) || 0) + 1);
  const differences = (a, b) => [0, 8, 16].map((bits) => ((a >> bits) & 255) - ((b >> bits) & 255));
  const distance = (a, b) => {
    const [red, green, blue] = differences(a, b);
    return red ** 2 + green ** 2 + blue ** 2 + (red - green) ** 2 + (green - blue) ** 2;
  };
  const palette = [];
  for (const color of [...uses.keys()].sort((a, b) => uses.get(b) - uses.get(a))) {
    if (palette.length === count) break;
    if (palette.length < frequent || palette.every((each) => distance(each, color) > apart)) palette.push(color);
  }
  const nearest = (color) => palette.reduce((best, each) => (distance(color, each) < distance(color, best) ? each : best));
  const shown = new Map([...uses.keys()].map((color) => [color, nearest(color)]));
  for (let at = 0; at < pixels.length; at++) pixels[at] = shown.get(pixels[at]);
  context.putImageData(data, 0, 0);
  return [canvas.toDataURL("image/png"), lossy];
}"""
"""Returns a picture in fewer colors: the most frequent ones, and others that differ from them."""


@dataclass
class Camera:
    """Takes pages of one server. `copies` gets the pictures as PNG, too, if it is set.

    `problems` are what is wrong with the pages.
    """

    browser: Browser
    server: Server
    addresses: Mapping[str, str]
    copies: Path | None = None
    problems: list[str] = field(default_factory=list)
    _sessions: dict[str, StorageState] = field(default_factory=dict)

    def take(self, shown: ConsolePage) -> None:
        """Open a page, check it, and take it in each mode."""
        context = self.browser.new_context(
            base_url=self.server.base,
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="light",
            timezone_id="UTC",
            reduced_motion="reduce",
            storage_state=self._session_of(shown.user) if shown.user else None,
        )
        context.set_default_timeout(PATIENCE)
        page, watch = context.new_page(), Watch(self.server.base)
        page.on("request", watch.request)
        page.on("console", watch.console)
        page.on("pageerror", watch.error)
        try:
            self._open(page, shown)
            for mode in MODES:
                self._take_mode(page, shown, mode)
        finally:
            self.problems += [f"{shown.name}: {wrong}" for wrong in watch.wrong]
            context.close()
            if shown.name == "signed-out":
                self._sessions.pop(shown.user)

    def _session_of(self, user: str) -> StorageState:
        if user not in self._sessions:
            page = self.browser.new_page(base_url=self.server.base)
            page.goto("/")
            page.fill("[name=username]", user)
            page.fill("[name=password]", generated_password(self.server, user))
            page.click("button[type=submit]")
            page.wait_for_url("**/admin/")
            self._sessions[user] = page.context.storage_state()
            page.close()
        return self._sessions[user]

    def _open(self, page: Page, shown: ConsolePage) -> None:
        path = shown.address
        if not path.startswith("/"):
            path = self.addresses[shown.address]
        # One after the other: of a page that is idle before it is loaded, Playwright says only once that it is idle.
        response = page.goto(f"{path}{shown.query}", wait_until="networkidle")
        assert response is not None
        if response.status != shown.status:
            self.problems.append(f"{shown.name}: status {response.status} of {response.url}")
        if response.request.redirected_from is not None:
            self.problems.append(f"{shown.name}: {path} redirects to {response.url}")
        page.wait_for_load_state()
        shown.way(page)
        page.evaluate("document.activeElement && document.activeElement.blur()")
        page.mouse.move(0, 0)

    def _take_mode(self, page: Page, shown: ConsolePage, mode: str) -> None:
        page.emulate_media(color_scheme="dark" if mode == "dark" else "light")
        if mode == "phone":
            self._narrow(page, shown)
        png = _part(page, shown) if shown.part else _whole(page)
        _write(PAGES_FOLDER / mode / f"{shown.name}.webp", encode_small(self.browser, png))
        if self.copies is not None:
            _write(self.copies / mode / f"{shown.name}.png", png)

    def _narrow(self, page: Page, shown: ConsolePage) -> None:
        """Show the page as a phone does; report a page that is wider."""
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        network = page.context.new_cdp_session(page)
        network.send(
            "Emulation.setDeviceMetricsOverride",
            {**PHONE, "deviceScaleFactor": 1, "mobile": True},
        )
        if shown.way is stay:
            page.reload(wait_until="networkidle")
        overflow = page.evaluate(OVERFLOW)
        if overflow > 0:
            self.problems.append(f"{shown.name}: {overflow} px wider than a phone")


def _whole(page: Page) -> bytes:
    page.evaluate("window.scrollTo(0, 0)")
    width, height = page.evaluate(PAGE_SIZE)
    page.evaluate(LOWER_BUTTONS, min(height, MAX_HEIGHT))
    clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": min(height, MAX_HEIGHT)}
    return page.screenshot(animations="disabled", full_page=True, clip=clip)


def _part(page: Page, shown: ConsolePage) -> bytes:
    page.locator(shown.part).first.evaluate("node => node.scrollIntoView()")
    return page.screenshot(animations="disabled")


def encode_small(browser: Browser, png: bytes) -> bytes:
    """Return a picture as WebP: without loss in few colors, or with loss if that is smaller.

    Pages are areas of one color and text, which are sharper and smaller in few colors; only some have a gradient.
    Chromium writes WebP without loss in haste: cwebp makes it a third smaller.
    """
    page = browser.new_page()
    options = [base64.b64encode(png).decode(), COLORS, FREQUENT_COLORS, COLOR_DISTANCE]
    urls: list[str] = page.evaluate(REDUCE, options)
    page.close()
    reduced, lossy = (base64.b64decode(url.partition(",")[2]) for url in urls)
    command = [CWEBP, "-quiet", "-lossless", "-z", "9", "-o", "-", "--", "-"]
    lossless = subprocess.run(command, input=reduced, capture_output=True, check=True).stdout
    return min(lossless, lossy, key=len)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def take_pages(
    server: Server,
    addresses: Mapping[str, str],
    names: Sequence[str] = (),
    copies: Path | None = None,
) -> list[str]:
    """Take all pages, or those with these names; return what is wrong with them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        camera = Camera(browser, server, addresses, copies)
        for shown in PAGES:
            if not names or shown.name in names:
                try:
                    camera.take(shown)
                    print(shown.name, flush=True)
                except Exception as error:  # noqa: BLE001 - the others are taken all the same
                    camera.problems.append(f"{shown.name}: NOT TAKEN: {error}")
        browser.close()
    if not names:
        _remove_former()
        DOCUMENT.write_text(page_list())
    return camera.problems


def _remove_former() -> None:
    """Remove pictures of pages that are not in the list any more."""
    for path in PAGES_FOLDER.glob("*/*.webp"):
        if path.stem not in {shown.name for shown in PAGES}:
            path.unlink()
