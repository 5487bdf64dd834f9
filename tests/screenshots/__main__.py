"""`python -m tests.screenshots [NAME…]`: take the pictures of README and docs/tour.md again, or only some.

With the name `pages` it takes those of all pages for docs/pages.md instead, with `pages/NAME` only some of them; `--png`
names a folder for copies as PNG. A server is started over a throw-away data folder with a month of calls, and
Chromium visits its console. Names, numbers and waits are the same each time; times are relative to now.
"""

import argparse
import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.handmade_calls import accept
from tests.e2e.processes import ROOT, Server, environment, manage, serving
from tests.screenshots.client import (
    CANCELLED,
    DECLINED,
    PATTERNS,
    Talk,
    talk,
)
from tests.screenshots.page_calls import make_calls
from tests.screenshots.page_pictures import take_pages
from tests.screenshots.pictures import take

TOOLS = Path(__file__).parent / "tools"
PORT = 8000
CHECKOUT = {"service": "checkout", "version": "v2.4.1"}
DUPLICATE = {
    "resolution": accept(resolution="Duplicate"),
    "duplicate_of": accept(original=4301),
}
HISTORY_SECONDS = 600
BEHIND = """
SELECT count(DISTINCT call) FROM audit_entry
WHERE action = 'round.finished' AND call NOT IN (SELECT call FROM audit_call)
"""
PEOPLE = {
    "mara": ("support", "claude-code"),
    "jonas": ("support", "Visual Studio Code"),
    "tomas": ("platform", "claude-code"),
}
LATEST: tuple[tuple[str, Talk], ...] = (
    ("mara", Talk("find_customer", {"name": "Ada Lovelace"})),
    ("jonas", Talk("summarize_thread", {"ticket": 4522})),
    ("tomas", Talk("service_status", {"service": "checkout"})),
    ("jonas", Talk("refund_order", {"order": 4711}, {"confirm": DECLINED})),
    ("mara", Talk("resolve_ticket", {"ticket": 4522}, DUPLICATE)),
    ("tomas", Talk("deploy", CHECKOUT, {"confirm": accept(deploy=True)})),
    ("tomas", Talk("service_status", {"service": "billing"})),
    ("jonas", Talk("resolve_ticket", {"ticket": 4529}, {"resolution": CANCELLED})),
    ("mara", Talk("find_customer", {"name": "Grace Hopper"})),
    ("tomas", Talk("deploy", {"service": "search", "version": "v5.0.0"})),
    ("mara", Talk("resolve_ticket", {"ticket": 4301})),
    ("jonas", Talk("refund_order", {"order": 4729})),
)
"""The latest calls, made on the running server. Those without an answer are open questions."""


def main(names: list[str], copies: Path | None = None) -> int:
    pages = [name for name in names if name.partition("/")[0] == "pages"]
    with tempfile.TemporaryDirectory(prefix="mcphost-screenshots-") as folder:
        patterns = _patterns(Path(folder) / "patterns")
        home = Path(folder) / "home"
        settings: dict[str, Any] = {"MCPHOST_TOOLS_PATH": str(_tools(Path(folder) / "tools"))}
        made = manage(home, "init", "--demo", env=settings)
        assert made.returncode == 0, made.stderr
        _run("history", home, settings, str(patterns))
        if pages:
            _run("page_data", home, settings, "create", folder)
            settings["MCPHOST_DRAIN_SECONDS"] = "1"  # a task is at work until the end
        with serving("uvicorn", home, port=_usual_port(), **settings) as server:
            _call(server)
            called = make_calls(server) if pages else {}
            _wait_for_summaries(server)
            if not pages:
                take(server, names)
                return 0
            _run("page_data", home, settings, "addresses", folder)
            addresses = json.loads((Path(folder) / "addresses.json").read_text()) | called
            some = [name.partition("/")[2] for name in pages if "/" in name]
            problems = take_pages(server, addresses, some, copies)
    print(*problems, sep="\n")
    return 1 if problems else 0


def _patterns(folder: Path) -> Path:
    """Make one call of each course on a server of its own; a copy of its database."""
    folder.mkdir()
    with serving("uvicorn", folder / "home") as server:
        for about in PATTERNS.values():
            talk(server, server.token, about)
    return Path(shutil.copy(folder / "home" / "db.sqlite3", folder / "patterns.sqlite3"))


def _usual_port() -> int | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return None
    return PORT


def _tools(folder: Path) -> Path:
    shutil.copytree(ROOT / "tools", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TOOLS, folder, dirs_exist_ok=True)
    return folder


def _run(module: str, home: Path, settings: Mapping[str, str], *arguments: str) -> None:
    """Run a module of this package over the data, in a process of its own."""
    subprocess.run(
        [sys.executable, "-m", f"tests.screenshots.{module}", *arguments],
        cwd=ROOT,
        env={**environment(home, **settings), "DJANGO_SETTINGS_MODULE": "mcphost.settings"},
        timeout=HISTORY_SECONDS,
        check=True,
    )


def _call(server: Server) -> None:
    """Make the latest calls; between a question and its answer a user thinks for a moment."""
    for person, about in LATEST:
        tenant, client = PEOPLE[person]
        token = (server.home / f"token-{tenant}-{person}").read_text().strip()
        talk(server, token, about, tenant, client, pause=threading.Event().wait)


def _wait_for_summaries(server: Server) -> None:
    """Wait until lists and numbers have all calls: they are written a moment after the record."""
    look = threading.Event()
    with closing(sqlite3.connect(server.home / "db.sqlite3")) as link:
        for _ in range(HISTORY_SECONDS):
            if link.execute(BEHIND).fetchone()[0] == 0:
                return
            look.wait(1)  # between looks at another process
    raise AssertionError("the summaries are still behind")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--png", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    sys.exit(main(options.names, options.png))
