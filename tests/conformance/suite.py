"""The official conformance suite: installed from its lockfile, run by the Node of the environment."""

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.node_client import NODE, NPM
from tests.e2e.processes import ROOT

SOURCE = Path(__file__).parent
FOLDER = ROOT / "build" / "conformance"
SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS = ("2026-07-28", "2025-11-25")
AUTHORIZATION = "authorization"
"""The suite's command for authorization servers, which has scenarios of its own."""
INSTALL_SECONDS = 300
RUN_SECONDS = 300
AUTHORIZATION_SECONDS = 60


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
    """The folder that says what is expected of the scenarios of a revision, or of AUTHORIZATION."""
    return SOURCE / revision


def run(url: str, revision: str, output: Path) -> str:
    """Run every scenario of the revision against `url`; the checks are left in `output`.

    Gives back what the suite printed. Raises SuiteError if it found what is not expected.
    """
    shutil.rmtree(output, ignore_errors=True)
    failures = str(tables(revision) / "expected-failures.yaml")
    where = ("--url", url, "--requirements", revision, "-o", str(output))
    return _run([str(SUITE), "server", *where, "--expected-failures", failures], RUN_SECONDS)


def run_authorization(
    issuer: str,
    client_id: str,
    resource: str,
    port: int,
    output: Path,
    sign_in: Callable[[str], None],
) -> str:
    """Run every scenario for an authorization server; the checks are left in `output`.

    `sign_in` gets the authorization URL that the suite prints for a person. It brings the answer to
    the suite, which listens at `port` meanwhile. Gives back what the suite printed. Raises SuiteError
    if a check failed, and what `sign_in` raises.
    """
    shutil.rmtree(output, ignore_errors=True)
    client = ("--client-id", client_id, "--resource", resource, "-p", str(port))
    arguments = [str(SUITE), AUTHORIZATION, "--url", issuer, *client, "-o", str(output)]
    with subprocess.Popen([str(NODE), *arguments], **_OPTIONS) as process:
        # The suite itself would wait for the person for five minutes.
        deadline = threading.Timer(AUTHORIZATION_SECONDS, process.kill)
        deadline.start()
        try:
            assert process.stdout is not None
            printed = []
            for line in process.stdout:
                printed.append(line)
                if line.startswith(f"{issuer}/authorize?"):
                    sign_in(line.strip())
            process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            deadline.cancel()
    return _checked(process.returncode, "".join(printed))


_OPTIONS: Mapping[str, Any] = {
    "cwd": FOLDER,
    "env": {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.STDOUT,
    "text": True,
}


def _run(arguments: list[str], seconds: float) -> str:
    done = subprocess.run([str(NODE), *arguments], **_OPTIONS, timeout=seconds, check=False)
    return _checked(done.returncode, done.stdout)


def _checked(status: int, printed: str) -> str:
    if status:
        raise SuiteError(f"status {status}:\n{printed}")
    return printed
