"""What every client does that signs in with a browser, and what has to come of it.

There are two processes behind a proxy. One of them is killed while the first page is open.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.clients import chromium, terminal
from tests.clients.scenario import TEXT, exchange, problem
from tests.e2e.client_process import conversing
from tests.e2e.desktops import Desktop, admin_of, desktop
from tests.e2e.nodes import Service
from tests.e2e.test_python_client import DEMO_TOOLS

STEPS: Final = ("sign in", "list", "call", "restart", "refresh", "disconnect")
EXPIRE: Final = """
from datetime import timedelta
from django.db import transaction
from django.utils import timezone
from mcphost.feed.services import announce
from mcphost.identity.models import Connection, Token
with transaction.atomic():
    for connection in Connection.objects.filter(ended_at=None).select_related("membership"):
        tokens = Token.objects.filter(connection=connection)
        tokens.update(expires_at=timezone.now() - timedelta(seconds=1))
        announce("token", tenant=connection.membership.tenant_id, object_id=str(connection.pk))
"""
"""A program that lets the access tokens of all connections expire."""
_ASKS: Final = "asks the person again"
_APPS: Final = "/admin/t/demo/connected-apps/"


@dataclass(frozen=True)
class Start:
    """How a client is started: its program, and what this reads first. `login` is the command in a terminal by which
    a person signs in, if the client does not open the browser when it connects; `lines` is what they type."""

    argv: Sequence[str]
    asked: Mapping[str, Any]
    login: Sequence[str] = ()
    lines: Sequence[tuple[str, str]] = ()


def run(
    start: Start,
    service: Service,
    home: Path,
    files: Mapping[str, str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return what went wrong at each step, in one line; an empty text if nothing did."""

    def consent(url: str) -> None:
        if len(person.pages) == 1:
            service.first.kill()
            service.proxy.wait_for(service.second.port)
        chromium.sign_in_and_allow(service.server, url)

    with desktop(home, consent) as person:
        person.environment |= environment
        for name, text in files.items():
            path = home / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        problems = dict.fromkeys(STEPS, "not reached")
        for step, prepare, asks in (
            ("sign in", _nothing, True),
            ("restart", _nothing, False),
            ("refresh", _expire, False),
            ("disconnect", disconnect_all, True),
        ):
            prepare(service)
            try:
                problems |= _connect(step, start, person, asks=asks)
            except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
                problems[step] = _last_line(error, home)
            if not service.first.lives:
                service.first.start()
                service.proxy.wait_for(service.first.port, service.second.port)
    return problems


def _connect(step: str, start: Start, person: Desktop, *, asks: bool) -> dict[str, str]:
    """Start the client; return the problems of this step and, of the first one, of listing and calling."""
    seen = len(person.pages)
    if start.login and asks:
        terminal.converse(person.command(start.login), person.home, start.lines)
    with conversing(person.command(start.argv), person.home, **start.asked) as talk:
        tools = talk.hear("met")["tools"]
        called = exchange(talk, {"call": "echo", "arguments": {"text": TEXT}})
        talk.end()
    assert not person.faults, person.faults.pop()
    has_asked = len(person.pages) > seen
    wrong = _ASKS if has_asked else "asks no person"
    problems = {step: "" if has_asked is asks else wrong}
    if step == "sign in":
        missing = sorted(DEMO_TOOLS - set(tools))
        problems["list"] = f"missing: {', '.join(missing)}" if missing else ""
        problems["call"] = problem("call", called, TEXT)
    return problems


def _last_line(error: Exception, home: Path) -> str:
    errors = home / "client.err"
    text = errors.read_text(errors="replace").strip() if errors.exists() else ""
    lines = (str(error) or text or type(error).__name__).splitlines()
    # Tracebacks and screens end with lines that are drawn.
    return next((line for line in reversed(lines) if re.search("[a-z]", line)), "").strip()


def _nothing(_: Service) -> None:
    """Prepare nothing."""


def _expire(service: Service) -> None:
    service.manage("shell", "-c", EXPIRE)


def last_entry(service: Service) -> datetime:
    """Return the time of the latest entry that was recorded."""
    with psycopg.connect(service.settings["DATABASE_URL"]) as link:
        row = link.execute("SELECT max(at) FROM audit_entry").fetchone()
    assert row
    latest: datetime = row[0]
    return latest


def revisions(service: Service, since: datetime) -> str:
    """Return the revisions of the calls that were recorded since: what was negotiated."""
    query = "SELECT DISTINCT revision FROM audit_entry WHERE method != '' AND at > %s"
    with psycopg.connect(service.settings["DATABASE_URL"]) as link:
        return ", ".join(row[0] for row in link.execute(query, [since]).fetchall())


def disconnect_all(service: Service) -> None:
    """Disconnect all clients, as an owner."""
    admin = admin_of(service.server)
    for path in re.findall(rf'"({_APPS}[0-9a-f-]{{36}}/disconnect/)"', admin.get(_APPS)):
        admin.post(path)
