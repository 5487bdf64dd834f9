"""Every page of the console on a phone: it is legible, its lists are compact, axe finds nothing, and a first visit
loads few bytes."""

from typing import Any, Final

import pytest
from playwright.sync_api import Page

from tests.e2e.browser.conftest import PHONE, Visit
from tests.e2e.browser.test_axe import RULES, axe, pages_of, violations_of

__all__ = ["axe"]

pytestmark = pytest.mark.usefixtures("ended_rows")

MAX_BYTES: Final = 200 * 1024
"""What a first visit of a page may load, as it is sent."""
MAX_ROW_HEIGHT: Final = 240
"""Pixels that a row of a list takes on average."""
MIN_CHARACTERS: Final = 9
"""The characters that a line of a longer text has at least."""
NARROW_TEXTS: Final = """(least) => {
  const narrow = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const text = node.textContent.trim(), element = node.parentElement;
    if (text.length < 2 * least || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest(".c-unseen, script, style, pre, textarea, svg, option")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = new Set([...range.getClientRects()].filter((box) => box.width > 1).map((box) => Math.round(box.top)));
    if (lines.size && text.length / lines.size < least) narrow.push(`${text.slice(0, 60)} (${lines.size} lines)`);
  }
  return narrow;
}"""
ROW_HEIGHTS: Final = """() => [...document.querySelectorAll("main .c-flush .c-table")].map((table) => {
  const heights = [...table.querySelectorAll("tbody tr")].map((row) => row.offsetHeight).filter((height) => height);
  return heights.length ? heights.reduce((sum, height) => sum + height) / heights.length : 0;
})"""
UNKNOWN_ICONS: Final = """async () => {
  await document.fonts.ready;
  return [...document.querySelectorAll(".material-symbols-outlined")]
    .filter((icon) => icon.checkVisibility() && icon.scrollWidth > 1.2 * parseFloat(getComputedStyle(icon).fontSize))
    .map((icon) => icon.textContent);
}"""


class LoadedBytes:
    """The bytes that a page loads with an empty cache, counted where they arrive."""

    def __init__(self, page: Page) -> None:
        self.count = 0
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        network.on("Network.loadingFinished", self._add)

    def _add(self, event: dict[str, Any]) -> None:
        self.count += int(event["encodedDataLength"])


def test_each_page_is_legible_compact_and_accessible_on_a_phone_and_light_to_load(
    visit: Visit, axe: str
) -> None:
    pages = pages_of(visit("admin"))
    page = visit("admin", size=PHONE)
    loaded = LoadedBytes(page)
    wrong: list[Any] = []
    for path in pages:
        loaded.count = 0
        page.goto(path, wait_until="networkidle")
        if loaded.count > MAX_BYTES:
            wrong.append(f"{path} loads {loaded.count} bytes")
        narrow = page.evaluate(NARROW_TEXTS, MIN_CHARACTERS)
        wrong += [f"{path}: narrow text: {text}" for text in narrow]
        heights = page.evaluate(ROW_HEIGHTS)
        wrong += [f"{path}: rows of {height} px" for height in heights if height > MAX_ROW_HEIGHT]
        wrong += [f"{path}: no icon {name}" for name in page.evaluate(UNKNOWN_ICONS)]
        wrong += violations_of(page, axe, RULES["light"])
    assert wrong == []
    assert len(pages) > 30
