"""FastMCP's own environment, outside the lock: made once, then kept under `build/`."""

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
    """The interpreter that has what `bench/fastmcp.lock` names, made now if need be.

    Raises EnvironmentMissingError, for example without a network.
    """
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    folder = ROOT / "build" / "bench-fastmcp"
    python = folder / "bin" / "python"
    stamp = folder / "complete"
    if not (stamp.exists() and stamp.read_text() == wanted):
        _make(folder, python)
        stamp.write_text(wanted)
    return python


def _make(folder: Path, python: Path) -> None:
    print(f"making FastMCP's environment in {folder} ...", file=sys.stderr, flush=True)
    venv.create(folder, clear=True, with_pip=True)
    # The lock is complete, so pip has nothing to resolve (see fastmcp-override.in).
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(LOCK)]
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
