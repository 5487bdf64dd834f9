"""Servers as processes on loopback: started, waited for, ended by pid."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 90
STOP_SECONDS = 30


class StartError(Exception):
    """A server did not come up; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a server, and the path that answers (with any status below 500) once it serves."""

    argv: Sequence[str]
    log: Path
    port: int
    ready: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: Command) -> Iterator[int]:
    """The pid of the started server, which serves by now; it is ended on the way out."""
    with command.log.open("wb") as log:
        process = subprocess.Popen(
            command.argv, cwd=ROOT, env=_environment(command), stdout=log, stderr=log
        )
    try:
        _wait_until_ready(command, process)
        yield process.pid
    finally:
        _stop(process)


def _environment(command: Command) -> dict[str, str]:
    """Ours without what would change the server under test: it runs on its defaults."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MCPHOST_")
        and name not in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    }
    return {**kept, **command.env}


def _wait_until_ready(command: Command, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StartError(f"it ended with {process.returncode}:\n{tail(command.log)}")
        if _answers(command.port, command.ready):
            return
        time.sleep(0.1)
    raise StartError(f"it did not answer within {START_SECONDS} s:\n{tail(command.log)}")


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


def tail(log: Path, lines: int = 20) -> str:
    """The end of a server's log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
