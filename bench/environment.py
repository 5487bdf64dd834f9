"""Environments of other makers' software, outside the lock: made once, then kept under `build/`."""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from bench.processes import ROOT

LOCK = ROOT / "bench" / "fastmcp.lock"
INSTALL_SECONDS = 600


class EnvironmentMissingError(Exception):
    """The environment could not be made; the message has pip's last words."""


def fastmcp_python() -> Path:
    """The interpreter that has FastMCP. Raises EnvironmentMissingError."""
    return python_with(LOCK, "bench-fastmcp")


def python_with(lock: Path, name: str) -> Path:
    """The interpreter that has what the lock names, under `build/<name>`, made now if need be.

    Raises EnvironmentMissingError, for example without a network.
    """
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    folder = ROOT / "build" / name
    python = folder / "bin" / "python"
    stamp = folder / "complete"
    if not (stamp.exists() and stamp.read_text() == wanted):
        _make(folder, python, lock)
        stamp.write_text(wanted)
    return python


def _make(folder: Path, python: Path, lock: Path) -> None:
    print(f"making an environment in {folder} ...", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, with_pip=True)
    # The lock is complete, so pip has nothing to resolve (see fastmcp-override.in).
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(lock)]
    finished = subprocess.run(
        [str(python), *install, "--retries", "1", "--timeout", "20"],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        words = finished.stderr.strip().splitlines()[-1:] or ["pip gave no reason"]
        raise EnvironmentMissingError(f"its environment cannot be made: {words[0]}")
