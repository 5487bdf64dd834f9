"""The virtual environment in `.venv`: made from a hashed lock, complete only when its stamp is written.

The stamp holds the digests of the locks that were installed. It is removed before anything is
touched and written last, so whatever interrupts an installation leaves an environment that the
next run knows to be incomplete and makes again. What `tools/requirements.txt` names is installed
besides, in versions that agree with the lock.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

LOCKS = {
    "runtime": ("requirements.lock",),
    # The second lock holds everything of the first, in the same versions.
    "dev": ("requirements.lock", "requirements-dev.lock"),
}
TOOLS = "tools/requirements.txt"
_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(==[^\s;\\]+)")


class SetupError(Exception):
    """The environment could not be made; the message says what would help."""


class Environment:
    """The virtual environment of the checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".venv"
        self.stamp = self.path / "mcphost-stamp.json"
        self.python = self.path / "bin" / "python"

    def wanted(self, profile: str) -> "dict[str, str]":
        """The digests that a complete environment of this profile has, by file."""
        names = (*LOCKS[profile], *([TOOLS] if (self.root / TOOLS).exists() else []))
        return {name: hashlib.sha256((self.root / name).read_bytes()).hexdigest() for name in names}

    def installed(self) -> "dict[str, str]":
        """The digests that were installed, by file; empty if nothing was ever completed."""
        try:
            found = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def is_complete(self, profile: str) -> bool:
        installed = self.installed()
        wanted = self.wanted(profile)
        return (
            all(installed.get(name) == digest for name, digest in wanted.items())
            and (TOOLS in wanted or TOOLS not in installed)
            and self._runs()
        )

    def make(self, profile: str, interpreter: str) -> None:
        """Bring the environment to `profile`. What the runtime lock gave is kept for `dev`.

        Raises SetupError.
        """
        wanted = self.wanted(profile)
        is_new = not self.is_complete("runtime")
        if is_new:
            self._start_anew(interpreter)
        if self.stamp.exists():
            self.stamp.unlink()
        self._install(LOCKS[profile][-1])
        if is_new and TOOLS in wanted:
            self._install_for_tools()
        part = self.stamp.with_suffix(".part")
        part.write_text(json.dumps(wanted, indent=1) + "\n")
        part.replace(self.stamp)

    def _start_anew(self, interpreter: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._run([interpreter, "-m", "venv", str(self.path)], "the virtual environment failed")

    def _install(self, lock: str) -> None:
        # A lock is complete, so pip resolves nothing: older versions of pip look for a newer release
        # of what another package wants with an extra, and then refuse it for lack of a hash.
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        pip.append("--no-deps")
        self._run(
            [*pip, "--require-hashes", "--requirement", str(self.root / lock)],
            "pip could not install {0} (is the package index reachable from here?)".format(lock),
        )

    def _install_for_tools(self) -> None:
        """Install what the tools need. No version of the lock changes: pip fails where they disagree."""
        named = self.root / TOOLS
        hashed = "--hash=" in named.read_text()
        print(
            "Installing {0}, {1}.".format(TOOLS, "by its hashes" if hashed else "without hashes"),
            flush=True,
        )
        constraints = self.path / "constraints.txt"
        pins = _PIN.findall((self.root / LOCKS["runtime"][0]).read_text())
        constraints.write_text("".join("".join(pin) + "\n" for pin in pins))
        pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        if hashed:  # such a file is complete
            pip += ["--require-hashes", "--no-deps"]
        else:
            pip += ["--constraint", str(constraints)]
        self._run(
            [*pip, "--requirement", str(named)],
            "pip could not install {0} beside the server's own packages".format(TOOLS),
        )

    def _run(self, command: "list[str]", complaint: str) -> None:
        # Neither an active environment nor PYTHONPATH may leak into the one being made.
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        try:
            done = subprocess.run(command, cwd=str(self.root), env=clean, check=False)
        except OSError as error:
            raise SetupError("{0}: {1}".format(complaint, error.strerror)) from None
        if done.returncode:
            raise SetupError("{0}; what it said is above".format(complaint))

    def _runs(self) -> bool:
        """Whether the environment's Python still starts: the one it was made from may be gone."""
        try:
            done = subprocess.run(
                [str(self.python), "-c", ""], stderr=subprocess.DEVNULL, check=False
            )
        except OSError:
            return False
        return done.returncode == 0
