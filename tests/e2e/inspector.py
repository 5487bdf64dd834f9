"""The MCP Inspector's command line: one command at a time, or on a connection that a process of its own
keeps (`mcpdo`)."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.node_client import FOLDER, NODE
from tests.e2e.processes import Server

CLIENTS = FOLDER / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients"
ONCE = CLIENTS / "launcher" / "build" / "index.js"
KEPT = CLIENTS / "mcpdo" / "build" / "mcp-bin.js"
PATIENCE = 60


def once(server: Server, folder: Path, method: str, *options: str) -> dict[str, Any]:
    """What one command gives, in a session of its own."""
    to = ("--server-url", server.url, "--transport", "http", "--protocol-era", "legacy")
    how = ("--method", method, "--format", "json", "-q", *options)
    told = _run(folder, ONCE, "--cli", *to, *_credential(server), *how)
    result: dict[str, Any] = told["result"]
    return result


class Connection:
    """A connection that is kept from command to command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_tools(self) -> list[str]:
        told = self._run("--connection", "it", "tools/list")
        return [tool["name"] for tool in told["tools"]]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result, or what is asked instead."""
        given = [f"{name}:={json.dumps(value)}" for name, value in arguments.items()]
        return self._run("--connection", "it", "tools/call", tool, *given)

    def answer(self, asked: Mapping[str, Any], *answer: str) -> dict[str, Any]:
        """Answer what was asked: a JSON object, `--decline` or `--cancel`."""
        id = asked["elicitationPending"]["elicitationId"]
        return self._run("elicitation/respond", id, *answer)

    def _run(self, *words: str) -> dict[str, Any]:
        return _run(self._folder, KEPT, "--format", "json", *words)


@contextmanager
def connected(server: Server, folder: Path, era: str) -> Iterator[Connection]:
    """A connection; whoever keeps it is gone afterwards."""
    (folder / "daemon-token").write_text(secrets.token_urlsafe(24))
    to = ("--server-url", server.url, "--transport", "http", "--era", era, "--connection", "it")
    _run(folder, KEPT, "--format", "json", "connect", *to, *_credential(server))
    try:
        yield Connection(folder)
    finally:
        _run(folder, KEPT, "--format", "json", "daemon", "stop")


def _credential(server: Server) -> tuple[str, str]:
    return ("--header", f"Authorization: Bearer {server.token}")


def _run(folder: Path, program: Path, *words: str) -> dict[str, Any]:
    """What a command prints. Its status says whether a tool's result is an error, which is one to us, too."""
    done = subprocess.run(
        [str(NODE), str(program), *words],
        cwd=folder,
        env={**os.environ, **_environment(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout, f"{words}: {done.returncode} {done.stderr}"
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of whoever runs the tests is read or written."""
    token = folder / "daemon-token"
    return {
        "HOME": str(folder),
        "MCP_INSPECTOR_DAEMON_DIR": str(folder),
        "MCP_INSPECTOR_SECRET_STORE": "memory",
        "MCP_INSPECTOR_DAEMON_TOKEN": token.read_text() if token.exists() else "",
    }
