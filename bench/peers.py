"""Who is measured: how each server is started, and where its echo tool answers."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import environment, verify
from bench.load import Target
from bench.processes import ROOT, Command, free_port, running, tail

SERVERS = ROOT / "bench" / "servers"


class UnavailableError(Exception):
    """A peer cannot run here; the message says why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A server to measure. `command` and `target` get a folder of its own and its port."""

    name: str
    label: str
    command: Callable[[Path, int], Command]
    target: Callable[[Path, int], Target]


@contextmanager
def serving(peer: Peer, folder: Path) -> Iterator[Target]:
    """Where `peer` answers, once it has shown that it answers rightly. Raises UnavailableError."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = peer.command(folder, port)
    with running(command):
        target = peer.target(folder, port)
        try:
            verify.verify(target)
        except verify.WrongAnswerError as error:
            raise verify.WrongAnswerError(f"{error}\n{tail(command.log)}") from None
        yield target


def _mcphost(folder: Path, port: int) -> Command:
    return ours(folder, port)


def ours(folder: Path, port: int, log: str = "log", **settings: str) -> Command:
    """Our server as `make up` starts it, over the data folder in `folder`."""
    home = {
        "MCPHOST_HOME": str(folder / "home"),
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "MCPHOST_NOTICE_SECONDS": "0",
        **settings,
    }
    argv = [sys.executable, str(ROOT / "manage.py"), "up"]
    return Command(argv, folder / log, port, ready="/readyz", env=home)


def _mcphost_target(folder: Path, port: int) -> Target:
    token = (folder / "home" / "demo-token").read_text().strip()
    return Target(f"http://127.0.0.1:{port}/t/demo/mcp", token)


def _sdk(folder: Path, port: int) -> Command:
    return Command(
        [sys.executable, str(SERVERS / "sdk_server.py"), str(port)], folder / "log", port
    )


def _bare(folder: Path, port: int) -> Command:
    return Command(
        [sys.executable, str(SERVERS / "bare_server.py"), str(port)], folder / "log", port
    )


def _fastmcp(folder: Path, port: int) -> Command:
    try:
        python = environment.fastmcp_python()
    except (environment.EnvironmentMissingError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(str(error)) from error
    return Command(
        [str(python), str(SERVERS / "fastmcp_server.py"), str(port)], folder / "log", port
    )


def _plain_target(_folder: Path, port: int) -> Target:
    # The peers ignore the credential; they get one of the same length, so that each reads the same.
    return Target(f"http://127.0.0.1:{port}/mcp", "x" * 64)


MCPHOST = Peer("mcphost", "mcphost", _mcphost, _mcphost_target)
SDK = Peer("sdk", "MCP Python SDK 2.3", _sdk, _plain_target)
FASTMCP = Peer("fastmcp", "FastMCP 4.1.6", _fastmcp, _plain_target)
BARE = Peer("bare", "bare ASGI app", _bare, _plain_target)
ALL = (MCPHOST, SDK, FASTMCP, BARE)
