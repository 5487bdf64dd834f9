"""Environments of clients, outside the project's lock files: made once, then kept in the cache's folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.e2e.node_client import NODE, NPM, SOURCE
from tests.e2e.processes import ROOT
from tests.e2e.shared_builds import copy_changed, one_at_a_time

CACHE: Final = Path(os.environ.get("CLIENTS_CACHE", ROOT / "build" / "clients")).absolute()
INSTALL_SECONDS: Final = 600


class ClientMissingError(Exception):
    """The packages of a client cannot be installed; the message has the installer's last line."""


def python_with(packages: Sequence[str]) -> Path:
    """Return an interpreter with exactly these packages and what they need. Raises ClientMissingError."""
    folder = _folder("python", packages)
    python = folder / "bin" / "python"
    with one_at_a_time(folder):
        if not (folder / "complete").exists():
            venv.create(folder, clear=True, with_pip=False)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
            _install([*pip, "--no-compile", *packages], folder)
    return python


def node_with(packages: Sequence[str]) -> Path:
    """Return a folder with these packages and the programs of tests/e2e/node. Raises ClientMissingError."""
    folder = _folder("node", packages)
    with one_at_a_time(folder):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
            npm = [str(NODE), str(NPM), "install", "--ignore-scripts", "--no-audit", "--no-fund"]
            _install([*npm, "--save-exact", *packages], folder)
        for program in SOURCE.glob("*.mjs"):
            copy_changed(program, folder)
    return folder


def _folder(kind: str, packages: Sequence[str]) -> Path:
    return CACHE / re.sub(r"[^A-Za-z0-9.]+", "-", "-".join((kind, *packages)))


def _install(command: Sequence[str], folder: Path) -> None:
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    try:
        finished = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ClientMissingError(f"not installed within {INSTALL_SECONDS} s") from error
    if finished.returncode != 0:
        lines = finished.stderr.strip().splitlines()[-1:] or ["the installer gave no reason"]
        raise ClientMissingError(f"not installed: {lines[0]}")
    (folder / "complete").touch()
