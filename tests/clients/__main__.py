"""Run the matrix of clients: `python -m tests.clients [--sign-in] [name ...]`. See the package's docstring."""

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.pages import write
from tests.clients import scenario, sign_ins
from tests.clients.environments import ClientMissingError, node_with, python_with
from tests.clients.sign_in_versions import SIGN_INS
from tests.clients.table import Row, judge, render
from tests.clients.versions import CLIENTS, Client
from tests.e2e.node_client import NODE
from tests.e2e.nodes import service
from tests.e2e.processes import ROOT, Server, serving

PROGRAMS: Final = ROOT / "tests" / "e2e" / "clients"
PAGE: Final = ROOT / "docs" / "clients.md"

Run = Callable[[str, Client], Row]


def main() -> None:
    """Run the clients that are named, or all, and write the table of all. The status is 1 if one failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sign-in", action="store_true", help="without a token, by browser")
    options.add_argument("names", nargs="*", metavar="name", help=", ".join(CLIENTS))
    given = options.parse_args()
    clients = SIGN_INS if given.sign_in else CLIENTS
    if unknown := set(given.names) - set(clients):
        options.error(f"unknown: {', '.join(sorted(unknown))}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="mcphost-clients-") as folder:
        started = _signing_in if given.sign_in else _with_tokens
        with started(Path(folder)) as run:
            for name in given.names or clients:
                row = run(name, clients[name])
                print(name, "failed" if row.failed else "done", file=sys.stderr, flush=True)
                rows.append(row)
        table = render(rows)
        print(table)
        if not given.names:
            write("sign-in matrix" if given.sign_in else "client matrix", table, PAGE)
    if any(row.failed for row in rows):
        sys.exit(1)


@contextmanager
def _with_tokens(folder: Path) -> Iterator[Run]:
    """A server, and what runs a client against it with a token, in a home folder of its own."""
    with serving("uvicorn", folder / "home") as server:

        def run(name: str, client: Client) -> Row:
            home = folder / name
            home.mkdir()
            try:
                argv, asked = _start(client, server)
            except ClientMissingError as error:
                return judge(client, "", dict.fromkeys(scenario.STEPS, str(error)))
            asked["token"] = server.token
            before = _last_entry(server)
            isolated = ("env", f"HOME={home}", f"PATH={NODE.parent}:/usr/bin:/bin")
            problems = scenario.run((*isolated, *argv), home, asked)
            return judge(client, _revisions(server, before), problems)

        yield run


@contextmanager
def _signing_in(folder: Path) -> Iterator[Run]:
    """Two processes behind a proxy, and what runs a client against them that has the browser only."""
    with service(folder / "service") as two:

        def run(name: str, client: Client) -> Row:
            server, home = two.server, folder / name
            try:
                argv, asked = _start(client, server)
            except ClientMissingError as error:
                return judge(client, "", dict.fromkeys(sign_ins.STEPS, str(error)))
            start = sign_ins.Start(argv, asked)
            if not client.command:
                asked["tokens"] = str(home / "tokens.json")
            if client.login is not None:
                script = asked["command"][:2]
                start = replace(
                    start, login=(*script, *client.login.arguments), lines=client.login.lines
                )
            files = {name: text.replace("{url}", server.url) for name, text in client.files.items()}
            before = sign_ins.last_entry(two)
            problems = sign_ins.run(start, two, home, files, client.environment)
            return judge(client, sign_ins.revisions(two, before), problems)

        yield run


def _start(client: Client, server: Server) -> tuple[list[str], dict[str, Any]]:
    """Return the command that starts a client, and what it reads first. Raises ClientMissingError."""
    asked: dict[str, Any] = {"url": server.url}
    if client.revision:
        asked["revision"] = client.revision
    if client.command:
        asked["command"] = _command(client, server)
    return _argv(client), asked


def _argv(client: Client) -> list[str]:
    if client.program.endswith(".mjs"):
        return [str(NODE), str(node_with(client.node) / client.program)]
    python = python_with(client.python) if client.python else Path(sys.executable)
    return [str(python), str(PROGRAMS / client.program)]


def _command(client: Client, server: Server) -> list[str]:
    script, *arguments = client.command
    values = {"{url}": server.url, "{token}": server.token}
    for name, value in values.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    return [str(NODE), str(node_with(client.node) / "node_modules" / script), *arguments]


def _last_entry(server: Server) -> int:
    with closing(_database(server)) as database:
        number: int = database.execute("SELECT max(rowid) FROM audit_entry").fetchone()[0]
    return number


def _revisions(server: Server, before: int) -> str:
    """The revisions of the requests that the server has recorded since: what it negotiated, whatever stands
    between it and the client."""
    query = "SELECT DISTINCT revision FROM audit_entry WHERE rowid > ? AND method != ''"
    with closing(_database(server)) as database:
        return ", ".join(row[0] for row in database.execute(query, (before,)))


def _database(server: Server) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{server.home / 'db.sqlite3'}?mode=ro", uri=True)


if __name__ == "__main__":
    main()
