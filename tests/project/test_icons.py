"""Every icon that a template or a list of pages names is in the font that is served."""

import re
from pathlib import Path

from mcphost.console.navigation import PLATFORM_PAGES, TENANT_PAGES
from mcphost.console.primitive_words import WORDS

ROOT = Path(__file__).parents[2]
SPAN = re.compile(r"material-symbols-outlined[^>]*>([^<]+)<")
NAME = re.compile(r"^[a-z0-9_]+$")


def _names_in_templates() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "templates").rglob("*.html")]
    contents = [re.sub(r"\{%.*?%\}", " ", match) for text in texts for match in SPAN.findall(text)]
    return {word for content in contents for word in content.split() if NAME.match(word)}


def test_every_named_icon_is_served() -> None:
    served = set((ROOT / "fonts" / "icons.txt").read_text().split())
    in_templates = _names_in_templates()
    assert {"search", "check_circle", "radio_button_unchecked"} <= in_templates
    of_pages = {page[1] for page in (*TENANT_PAGES, *PLATFORM_PAGES)}
    missing = (in_templates | of_pages | {words.icon for words in WORDS.values()}) - served
    assert not missing, "add them to fonts/icons.txt, and run `make fonts`"


def test_the_list_of_icons_is_sorted_and_has_each_once() -> None:
    names = (ROOT / "fonts" / "icons.txt").read_text().split()
    assert names == sorted(set(names))
