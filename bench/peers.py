"""Who is measured: how each server is started, and where its echo tool answers."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bench import environment, postgresql, verify
from bench.load import CONNECTIONS, Sample, Target, measure
from bench.proc import family_cpu_seconds
from bench.processes import ROOT, Command, free_port, running, tail
from tests.e2e import shared_services
from tests.e2e.node_client import NODE

SERVERS = ROOT / "bench" / "servers"
IDLE = 0.03
"""Up to so much CPU in a second a server is idle: it looks after its leases and timers."""
IDLE_PATIENCE = 60


class UnavailableError(Exception):
    """A peer cannot run here; the message says why."""


def _nothing() -> AbstractContextManager[Mapping[str, str]]:
    return nullcontext({})


@dataclass(frozen=True, slots=True)
class Peer:
    """A server to measure. `command` and `target` get a folder of its own and its port.

    `backing` is what it stands on as long as it runs, as settings in its environment.
    """

    name: str
    label: str
    command: Callable[[Path, int], Command]
    target: Callable[[Path, int], Target]
    backing: Callable[[], AbstractContextManager[Mapping[str, str]]] = _nothing


@dataclass(frozen=True, slots=True)
class Served:
    """A process that serves, and where it answers."""

    pid: int
    target: Target

    def measure(self, seconds: int, connections: int = CONNECTIONS) -> Sample:
        """Load it for `seconds`; what it spends of the CPU meanwhile is part of the sample."""
        before = family_cpu_seconds(self.pid)
        sample = measure(self.target, seconds, connections)
        return replace(sample, cpu=family_cpu_seconds(self.pid) - before)

    def settle(self) -> float:
        """Wait until it is idle, for IDLE_PATIENCE seconds at most; return the CPU seconds that it spends until then."""
        before = at = family_cpu_seconds(self.pid)
        for _ in range(IDLE_PATIENCE):
            time.sleep(1)
            last, at = at, family_cpu_seconds(self.pid)
            if at - last <= IDLE:
                break
        return at - before


@contextmanager
def serving(peer: Peer, folder: Path) -> Iterator[Served]:
    """`peer`, once it has shown that it answers rightly. Raises UnavailableError."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with peer.backing() as settings:
        command = peer.command(folder, port)
        command = replace(command, env={**command.env, **settings})
        with running(command) as pid:
            target = peer.target(folder, port)
            try:
                verify.verify(target)
            except verify.WrongAnswerError as error:
                raise verify.WrongAnswerError(f"{error}\n{tail(command.log)}") from None
            yield Served(pid, target)


def _mcphost(folder: Path, port: int) -> Command:
    return mcphost_command(folder, port)


def mcphost_command(folder: Path, port: int, log: str = "log", **settings: str) -> Command:
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


@contextmanager
def _database() -> Iterator[Mapping[str, str]]:
    if reason := postgresql.missing():
        raise UnavailableError(reason)
    with shared_services.database() as url:
        yield {"DATABASE_URL": url}


def script(name: str, *more: str) -> Callable[[Path, int], Command]:
    """A server of this folder, in our own environment; `more` are arguments behind its port."""

    def command(folder: Path, port: int) -> Command:
        argv = [sys.executable, str(SERVERS / name), str(port), *more]
        return Command(argv, folder / "log", port)

    return command


def _apart(name: str, python: Callable[[], Path]) -> Callable[[Path, int], Command]:
    """A server of this folder, in an environment of its own."""

    def command(folder: Path, port: int) -> Command:
        try:
            argv = [str(python()), str(SERVERS / name), str(port)]
        except environment.EnvironmentMissingError as error:
            raise UnavailableError(str(error)) from error
        return Command(argv, folder / "log", port)

    return command


def _typescript(folder: Path, port: int) -> Command:
    try:
        programs = environment.node_folder(SERVERS / "typescript")
    except environment.EnvironmentMissingError as error:
        raise UnavailableError(str(error)) from error
    return Command([str(NODE), str(programs / "server.mjs"), str(port)], folder / "log", port)


def _plain_target(_folder: Path, port: int) -> Target:
    # The peers ignore the credential; they get one of the same length, so that each reads the same.
    return Target(f"http://127.0.0.1:{port}/mcp", "x" * 64)


MCPHOST = Peer("mcphost", "mcphost on SQLite", _mcphost, _mcphost_target)
ON_POSTGRESQL = Peer(
    "mcphost-postgresql", "mcphost on PostgreSQL", _mcphost, _mcphost_target, _database
)
SDK = Peer("sdk", "MCP Python SDK 2.3, tuned", script("sdk_server.py"), _plain_target)
INSTALLED_SDK = Peer(
    "sdk-installed",
    "MCP Python SDK 2.3, as installed",
    _apart("sdk_installed_server.py", environment.sdk_python),
    _plain_target,
)
FASTMCP = Peer(
    "fastmcp",
    "FastMCP 4.1.6, tuned",
    _apart("fastmcp_server.py", environment.fastmcp_python),
    _plain_target,
)
TYPESCRIPT = Peer("typescript", "MCP TypeScript SDK 2.4", _typescript, _plain_target)
BARE = Peer("bare", "bare ASGI app", script("bare_server.py"), _plain_target)
ALL = (MCPHOST, ON_POSTGRESQL, SDK, INSTALLED_SDK, FASTMCP, TYPESCRIPT, BARE)
