"""Environments of other makers' software, outside the lock: made once, then kept under `build/`."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.processes import ROOT
from tests.e2e.installing import one_at_a_time
from tests.e2e.node_client import NODE, NPM

LOCKS = ROOT / "bench"
INSTALL_SECONDS = 600


class EnvironmentMissingError(Exception):
    """The environment could not be made; the message has the installer's last words."""


def fastmcp_python() -> Path:
    """The interpreter that has FastMCP. Raises EnvironmentMissingError."""
    return python_with(LOCKS / "fastmcp.lock", "bench-fastmcp")


def fastmcp_tasks_python() -> Path:
    """The interpreter that has FastMCP with its tasks. Raises EnvironmentMissingError."""
    return python_with(LOCKS / "fastmcp-tasks.lock", "bench-fastmcp-tasks")


def sdk_python() -> Path:
    """The interpreter that has the Python SDK and nothing else. Raises EnvironmentMissingError."""
    return python_with(LOCKS / "sdk.lock", "bench-sdk")


def python_with(lock: Path, name: str) -> Path:
    """The interpreter that has what the lock names, under `build/<name>`, made now if need be.

    Raises EnvironmentMissingError, for example without a network.
    """
    return _interpreter(_kept(lock, name, lambda folder: _make_python(folder, lock)))


def node_folder(source: Path) -> Path:
    """A copy of `source` under `build/`, with the packages that its lock names (see python_with)."""
    lock = source / "package-lock.json"
    folder = _kept(lock, f"bench-{source.name}", lambda place: _make_node(place, source))
    for program in source.glob("*.mjs"):
        shutil.copy(program, folder)
    return folder


def _kept(lock: Path, name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` under `build/`, made again whenever the lock is another."""
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    folder = ROOT / "build" / name
    stamp = folder / "complete"
    with one_at_a_time(folder):
        if not (stamp.exists() and stamp.read_text() == wanted):
            print(f"making an environment in {folder} ...", file=sys.stderr, flush=True)
            make(folder)
            stamp.write_text(wanted)
    return folder


def _interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def _make_python(folder: Path, lock: Path) -> None:
    # Our own pip installs: to install another one first takes as long as most of these locks.
    venv.create(folder, clear=True, with_pip=False)
    into = [sys.executable, "-m", "pip", "--python", str(_interpreter(folder)), "install"]
    # The lock is complete, so pip has nothing to resolve (see fastmcp-override.in).
    complete = ["--quiet", "--no-deps", "--require-hashes", "-r", str(lock)]
    _install([*into, *complete, "--retries", "1", "--timeout", "20"], folder)


def _make_node(folder: Path, source: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, folder)
    _install([str(NODE), str(NPM), "ci"], folder)


def _install(command: Sequence[str], folder: Path) -> None:
    try:
        finished = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentMissingError(f"its environment takes too long: {error}") from error
    if finished.returncode != 0:
        words = finished.stderr.strip().splitlines()[-1:] or ["the installer gave no reason"]
        raise EnvironmentMissingError(f"its environment cannot be made: {words[0]}")
