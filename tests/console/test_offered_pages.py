"""A page offers nothing that is not there: each user can follow every link of every page that links lead to."""

from collections import deque
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import resolve

from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.tenant_data import Things, asking, told

pytestmark = pytest.mark.django_db

STAYS = {"logout", "status_json"}
"""Pages that are not followed: they end the session, or say that a server without its loops is not well."""


class Offers(HTMLParser):
    """The links of a page, and where its forms are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.actions: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if tag == "form" and values.get("action"):
            self.actions.append(str(values["action"]))


def walk(client: Client, start: str) -> tuple[set[str], list[str]]:
    """Follow the links from a page on, one to each page with a filter and one without; return the names of the pages, and
    what was offered and is not there."""
    names, missing = set[str](), list[str]()
    paths = deque([(start, "")])
    while paths:
        url, shown_on = paths.popleft()
        parts = urlsplit(url)
        if parts.netloc or not parts.path.startswith("/admin/"):
            continue
        name = resolve(parts.path).url_name or parts.path
        key = f"{name}?" if parts.query else name
        if name in STAYS or key in names:
            continue
        names.add(key)
        response = client.get(url, follow=True)
        if response.status_code not in (200, 405):
            missing.append(f"{shown_on} offers {url}: {response.status_code}")
            continue
        if "text/html" not in response["Content-Type"]:
            continue
        offers = Offers()
        offers.feed(response.content.decode())
        here = response.request["PATH_INFO"]
        paths.extend((urljoin(here, link.partition("#")[0]), here) for link in offers.links)
        paths.extend((urljoin(here, action), here) for action in offers.actions)
    return names, missing


@pytest.mark.parametrize("who", ["owner", "operator", "auditor", "staff", "member"])
def test_each_user_can_follow_every_link_and_form(
    cast: Cast, acme: Things, globex: Things, browse: Browser, who: str
) -> None:
    story = asking(acme)
    told(story)
    names, missing = walk(browse(getattr(cast, who)), "/admin/")
    assert missing == []
    assert len(names) > (3 if who == "member" else 20)
