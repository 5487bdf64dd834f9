"""The official conformance suite: installed from its lockfile, run by the Node of the environment."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.e2e.node_client import NODE, NPM
from tests.e2e.processes import ROOT

SOURCE = Path(__file__).parent
FOLDER = ROOT / "build" / "conformance"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS = ("2026-07-28", "2025-11-25")
INSTALL_SECONDS = 300
RUN_SECONDS = 300


class SuiteError(Exception):
    """The suite could not be installed or run; the message says what it said."""


def install() -> None:
    """Install the suite, unless the one of this lockfile is there. Raises SuiteError."""
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    stamp = FOLDER / "complete"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(SOURCE / name, FOLDER)
    _run([str(NPM), "ci"], INSTALL_SECONDS)
    stamp.write_text(wanted)


def tables(revision: str) -> Path:
    """The folder that says what is expected of a revision's scenarios."""
    return SOURCE / revision


def run(url: str, revision: str, output: Path) -> str:
    """Run every scenario of the revision against `url`; the checks are left in `output`.

    Gives back what the suite printed. Raises SuiteError if it found what is not expected.
    """
    shutil.rmtree(output, ignore_errors=True)
    failures = str(tables(revision) / "expected-failures.yaml")
    where = ("--url", url, "--requirements", revision, "-o", str(output))
    return _run([str(SUITE), "server", *where, "--expected-failures", failures], RUN_SECONDS)


def _run(arguments: list[str], seconds: float) -> str:
    done = subprocess.run(
        [str(NODE), *arguments],
        cwd=FOLDER,
        env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise SuiteError(f"status {done.returncode}:\n{done.stdout}")
    return done.stdout
