"""A real server on loopback: started over a throw-away home, waited for, ended by pid."""

import atexit
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.plugins.starts import note_start

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
START_SECONDS = 60
STOP_SECONDS = 40
COMMAND_SECONDS = 120
OWN = frozenset({"DATABASE_URL", "MCPHOST_MASTER_KEY", "MCPHOST_SECRET_KEY"})
ABSENT = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "HOST", "PORT")


@dataclass(frozen=True)
class Server:
    """A server that answers. `pid` leads a process group of its own.

    `token` is the demo's, or the one of a client that has signed in.
    """

    pid: int
    port: int
    home: Path
    output: Path
    log: Path
    access_token: str = ""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.base}/t/demo/mcp"

    @property
    def token(self) -> str:
        return self.access_token or (self.home / "demo-token").read_text().strip()


def environment(home: Path, **more: str) -> dict[str, str]:
    mine = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MCPHOST_", "OTEL_")) and name not in ABSENT
    }
    ours = {"MCPHOST_HOME": str(home), "MCPHOST_NOTICE_SECONDS": "0", "PYTHONUNBUFFERED": "1"}
    return {**mine, **ours, **more}


def manage(
    home: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    note_start("command")
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        cwd=ROOT,
        env=environment(home, **(env or {})),
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def initialize(home: Path, settings: Mapping[str, str]) -> None:
    made = manage(home, "init", "--demo", env=settings)
    assert made.returncode == 0, made.stderr


def temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mcphost-e2e-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def copy_initialized(home: Path) -> None:
    """Make a data folder with the demo tenant in SQLite: a copy, because creating tables, accounts
    and a tenant takes as long as starting a server."""
    shutil.copytree(_initialized(), home)


@cache
def _initialized() -> Path:
    home = temporary() / "home"
    initialize(home, {})
    return home


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _argv(kind: str, port: int) -> list[str]:
    python = [sys.executable, str(ROOT / "manage.py")]
    daphne = [str(BIN / "daphne"), "-b", "127.0.0.1", "-p", str(port)]
    return {
        "uvicorn": [*python, "up"],
        "daphne": [*daphne, "mcphost.asgi:application"],
        "serve": [*python, "serve"],
        "runserver": [*python, "runserver", "--noreload", f"127.0.0.1:{port}"],
    }[kind]


class Life:
    """A server that has been started and is ready, until `end`."""

    def __init__(self, kind: str, home: Path, port: int, more: Mapping[str, str]) -> None:
        self._kind = kind
        self.server, self._process = _start(kind, port, home, home.parent, more)
        try:
            _wait_until_ready(self.server, self._process)
        except BaseException:
            self.abandon()
            raise

    def end(self, ending: signal.Signals) -> None:
        log, killed = self.server.log, ending is signal.SIGKILL
        status = stop(self._process, ending)
        assert status is not None, f"{ending.name} did not end it: {log.read_text()}"
        expected = -signal.SIGKILL if killed else 0
        assert status == expected or self._kind != "uvicorn", f"status {status}: {log.read_text()}"
        assert not group_lives(self._process.pid), "a process is left"
        _look_at_log(self.server)

    def abandon(self) -> None:
        _kill(self._process)


@contextmanager
def serving(
    kind: str,
    home: Path,
    ending: signal.Signals = signal.SIGTERM,
    port: int | None = None,
    fresh: bool = False,
    **more: str,
) -> Iterator[Server]:
    """A server of one kind over `home`, ready; afterwards nothing is left of it (see `Life.end`)."""
    if not (fresh or home.exists() or OWN.intersection(more)):
        copy_initialized(home)
    if kind != "uvicorn" and not (home / "demo-token").exists():
        initialize(home, more)
    life = Life(kind, home, port or free_port(), more)
    try:
        yield life.server
    except BaseException:
        life.abandon()
        raise
    life.end(ending)


def _start(
    kind: str, port: int, home: Path, folder: Path, more: Mapping[str, str]
) -> tuple[Server, subprocess.Popen[bytes]]:
    output, log = folder / f"{kind}-{port}.out", folder / f"{kind}-{port}.log"
    note_start(kind)
    with output.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            _argv(kind, port),
            cwd=ROOT,
            env=environment(home, HOST="127.0.0.1", PORT=str(port), **more),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    return Server(process.pid, port, home, output, log), process


def _wait_until_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"it ended: {server.log.read_text()}"
        if is_ready(server.port):
            return
        time.sleep(0.05)  # between looks at another process; nothing it does could wake us
    raise AssertionError(f"not ready within {START_SECONDS} s: {server.log.read_text()}")


def is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes], ending: signal.Signals) -> int | None:
    process.send_signal(ending)
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def _look_at_log(server: Server) -> None:
    log = server.log.read_text(errors="replace")
    assert "Traceback" not in log, log
    assert server.token not in log, "the log holds a token"
