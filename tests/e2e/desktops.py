"""The desktop of a person who uses clients: a home folder, and a browser that clients open."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from tests.e2e.admin import Admin
from tests.e2e.node_client import NODE
from tests.e2e.processes import Server

PATIENCE: Final = 60
_END: Final = "the desktop is closed"
_SCRIPT: Final = """#!/bin/sh
printf '%s\\n' "$1" > {urls}
"""

Person = Callable[[str], None]
"""Someone who is shown the page at a URL, and does what the page is for."""


class Desktop:
    """`environment` is that of the clients which run on it. Each page that they open is shown to `person`, one after
    the other; `pages` has their URLs, and `faults` what went wrong on them."""

    def __init__(self, home: Path, person: Person) -> None:
        self.home = home
        self.person = person
        self.pages: list[str] = []
        self.faults: list[str] = []
        programs = home / "bin"
        programs.mkdir()
        self._urls = home / "urls"
        os.mkfifo(self._urls)
        browser = programs / "xdg-open"
        browser.write_text(_SCRIPT.format(urls=self._urls))
        browser.chmod(0o700)
        (programs / "x-www-browser").symlink_to(browser)
        self.environment = {
            "HOME": str(home),
            "PATH": f"{programs}:{NODE.parent}:/usr/bin:/bin",
            "BROWSER": str(browser),
            "DISPLAY": ":0",
            "TERM": "xterm",
            "MCP_AUTO_OPEN_ENABLED": "true",
        }
        self._thread = threading.Thread(target=self._show_pages, name="browser")
        self._thread.start()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that starts a client here, in nothing but this environment."""
        return [
            "env",
            "-i",
            *(f"{name}={value}" for name, value in self.environment.items()),
            *argv,
        ]

    def close(self) -> None:
        self._urls.write_text(f"{_END}\n")
        self._thread.join(PATIENCE)

    def _show_pages(self) -> None:
        while (url := self._urls.read_text().strip()) != _END:
            self.pages.append(url)
            try:
                self.person(url)
            except (AssertionError, OSError) as error:
                self.faults.append(f"{type(error).__name__}: {error}")


@contextmanager
def desktop(home: Path, person: Person) -> Iterator[Desktop]:
    home.mkdir(parents=True)
    opened = Desktop(home, person)
    try:
        yield opened
    finally:
        opened.close()


class Consenter:
    """A person who signs in, allows each client what it asks for, and returns to it; without a browser.

    `texts` are the pages that they read.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.admin = admin_of(server)
        self.texts: list[str] = []

    def __call__(self, url: str) -> None:
        with urlopen(self.allow(url), timeout=PATIENCE) as page:
            page.read()

    def allow(self, url: str) -> str:
        """Return where the page sends the browser."""
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}"
        page = self.admin.get(path)
        self.texts.append(page)
        membership = page.partition('name="tenant" value="')[2].partition('"')[0]
        self.admin.post(path, _allow="1", tenant=membership)
        assert "code" in parse_qs(urlsplit(self.admin.location).query), self.admin.location
        return self.admin.location


def admin_of(server: Server) -> Admin:
    """Return the administrator, who owns the demo, signed in at the port of `server`."""
    return Admin(server.port, (server.home / "admin-password").read_text().strip())
