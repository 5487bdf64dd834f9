"""A PostgreSQL of a test's own, on a port that it keeps: it may be restarted and stopped."""

import getpass
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import free_port

PATIENCE = 60
UNPRIVILEGED = "postgres"
"""Who runs it if the tests are run by root, as whom it refuses to run."""


class Postgres:
    """A cluster in `folder`, which is made by `initdb`."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._log = folder / "log"
        self._port = free_port()
        self._user = UNPRIVILEGED if os.getuid() == 0 else getpass.getuser()
        if os.getuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        self._run("initdb", "--auth=trust", "--username=tests", "--encoding=UTF8", "--no-sync")
        settings = {"port": self._port, "listen_addresses": "'127.0.0.1'", "fsync": "off"}
        settings |= {"unix_socket_directories": f"'{folder}'", "max_connections": 200}
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())

    @property
    def url(self) -> str:
        return f"postgres://tests@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        self._control("start", "--log", str(self._log))

    def restart(self, mode: str) -> None:
        self._control("restart", "--mode", mode, "--log", str(self._log))

    def stop(self, mode: str = "fast") -> None:
        self._control("stop", "--mode", mode)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        stopped = self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    def _signal(self, what: signal.Signals) -> list[int]:
        """To the postmaster first, so that it makes no more processes, and to all its processes."""
        postmaster = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, what)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        pids = [postmaster, *map(int, children)]
        for pid in pids[1:]:
            os.kill(pid, what)
        return pids

    def lives(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def _control(self, *arguments: str) -> None:
        self._run("pg_ctl", *arguments, "--wait", "--silent", f"--timeout={PATIENCE}")

    def _run(self, program: str, *arguments: str) -> None:
        argv = [str(binaries() / program), "--pgdata", str(self._data), *arguments]
        user = self._user if os.getuid() == 0 else None
        done = subprocess.run(
            argv, cwd="/", user=user, stdout=subprocess.DEVNULL, timeout=2 * PATIENCE, check=False
        )
        assert done.returncode == 0, argv


def binaries() -> Path:
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).parent
    of_debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    assert of_debian, "there is no pg_ctl"
    return of_debian[-1].parent


@contextmanager
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="mcphost-postgres-"))
    try:
        made = Postgres(folder)
        made.start()
        try:
            yield made
        finally:
            if made.lives():
                made.stop("immediate")
    finally:
        shutil.rmtree(folder)
