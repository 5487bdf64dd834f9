"""The official conformance suite: installed from its lockfile, run by the Node of the environment."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.e2e.node_client import NODE, installed
from tests.e2e.processes import ROOT

SOURCE = Path(__file__).parent
FOLDER = ROOT / "build" / "conformance"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS = ("2026-07-28", "2025-11-25")
RUN_SECONDS = 300


class SuiteError(Exception):
    """The suite could not be run; the message says what it said."""


def install() -> None:
    """Install the suite, unless the one of this lockfile is there. Raises InstallError."""
    installed(SOURCE, FOLDER)


def tables(revision: str) -> Path:
    return SOURCE / revision


def run(url: str, revision: str, output: Path) -> str:
    """Run every scenario of the revision against `url`; the checks are left in `output`."""
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
