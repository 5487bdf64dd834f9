"""Environments of other makers' software, outside the lock: made once, then kept under `build/`."""

import hashlib
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from bench.processes import ROOT
from tests.e2e.node_client import InstallError, installed
from tests.e2e.shared_builds import one_at_a_time

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
    return _interpreter(_python_folder(lock, name))


def node_folder(source: Path) -> Path:
    """A copy of `source` under `build/`, with the packages that its lock names (see python_with)."""
    try:
        return installed(source, ROOT / "build" / f"bench-{source.name}")
    except InstallError as error:
        raise EnvironmentMissingError(f"its environment cannot be made: {error}") from error


def _python_folder(lock: Path, name: str) -> Path:
    """The folder `name` under `build/`, made again whenever the lock is another."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    folder = ROOT / "build" / name
    stamp = folder / "complete"
    with one_at_a_time(folder):
        if not (stamp.exists() and stamp.read_text() == digest):
            print(f"making an environment in {folder} ...", file=sys.stderr, flush=True)
            _make_python(folder, lock)
            stamp.write_text(digest)
    return folder


def _interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"


def _make_python(folder: Path, lock: Path) -> None:
    # Our own pip installs: to install another one first takes as long as most of these locks.
    venv.create(folder, clear=True, with_pip=False)
    into = [sys.executable, "-m", "pip", "--python", str(_interpreter(folder)), "install"]
    # The lock is complete, so pip has nothing to resolve (see fastmcp-override.in).
    # Most of it is never imported: what is, is compiled then.
    complete = ["--quiet", "--no-compile", "--no-deps", "--require-hashes", "-r", str(lock)]
    _install([*into, *complete, "--retries", "1", "--timeout", "20"], folder)


def _install(command: Sequence[str], folder: Path) -> None:
    try:
        finished = subprocess.run(
            command,
            cwd=folder,
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
