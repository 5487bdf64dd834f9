"""Run the matrix of clients: `python -m tests.clients [name ...]`. See the package's docstring."""

import argparse
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.pages import write
from tests.clients import scenario
from tests.clients.environments import ClientMissingError, node_with, python_with
from tests.clients.table import Row, judge, render
from tests.clients.versions import CLIENTS, Client
from tests.e2e.node_client import NODE
from tests.e2e.processes import ROOT, Server, serving

PROGRAMS = ROOT / "tests" / "e2e" / "clients"
PAGE = ROOT / "docs" / "clients.md"


def main() -> None:
    """Run the clients that are named, or all, and write the table of all. The status is 1 if one failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="name", help=", ".join(CLIENTS))
    names = options.parse_args().names
    if unknown := set(names) - set(CLIENTS):
        options.error(f"unknown: {', '.join(sorted(unknown))}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="mcphost-clients-") as folder:
        with serving("uvicorn", Path(folder) / "home") as server:
            for name in names or CLIENTS:
                row = run(name, server, Path(folder))
                print(name, "failed" if row.failed else "done", file=sys.stderr, flush=True)
                rows.append(row)
        table = render(rows)
        print(table)
        if not names:
            write("client matrix", table, PAGE)
    if any(row.failed for row in rows):
        sys.exit(1)


def run(name: str, server: Server, folder: Path) -> Row:
    """Let a client do the scenario, in a home folder of its own."""
    client = CLIENTS[name]
    home = folder / name
    home.mkdir()
    asked: dict[str, Any] = {"url": server.url, "token": server.token}
    if client.revision:
        asked["revision"] = client.revision
    try:
        argv = _argv(client)
        if client.command:
            asked["command"] = _command(client, server)
    except ClientMissingError as error:
        return judge(client, "", dict.fromkeys(scenario.STEPS, str(error)))
    before = _last_entry(server)
    isolated = ("env", f"HOME={home}", f"PATH={NODE.parent}:/usr/bin:/bin")
    problems = scenario.run((*isolated, *argv), home, asked)
    return judge(client, _revisions(server, before), problems)


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
