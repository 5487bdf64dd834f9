"""PostgreSQL starts late, stops and returns: no server process ends or hangs."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e import raw, shared_services
from tests.e2e.closable_port import Gate
from tests.e2e.processes import Server, _start, free_port, stop

ECHO = raw.call("echo", {"text": "still there"})
PATIENCE = 40
TOKEN = "a-token-for-monitoring"


def _becomes(test: Callable[[], bool]) -> bool:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if test():
            return True
        time.sleep(0.1)  # between looks at another process
    return False


def _says(server: Server, status: int, word: str) -> bool:
    try:
        reply = raw.send(server, "GET", "/readyz", Authorization=f"Bearer {TOKEN}")
    except OSError:
        return False
    return reply.status == status and word in reply.body.decode()


def _calls(server: Server, status: int) -> bool:
    return raw.post(server, ECHO, server.token).status == status


@pytest.fixture
def gate(machine: None) -> Iterator[Gate]:
    at = urlsplit(os.environ["TEST_DATABASE_URL"])
    made = Gate(at.hostname or "127.0.0.1", at.port or 5432)
    yield made
    made.shut()


@contextmanager
def _serving(home: Path, shared: Mapping[str, str]) -> Iterator[Server]:
    settings = {
        **shared,
        "MCPHOST_DATABASE_WAIT_SECONDS": "1",
        "MCPHOST_METRICS_TOKEN": TOKEN,
    }
    server, process = _start("serve", free_port(), home, home.parent, settings)
    try:
        yield server
    finally:
        stop(process, signal.SIGTERM)


def test_a_server_waits_for_its_database_and_serves_while_it_is_available(
    gate: Gate, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with shared_services.initialized(home) as shared:
        at = urlsplit(shared["DATABASE_URL"])
        host, user = f"127.0.0.1:{gate.port}", at.netloc.rpartition("@")[0]
        url = at._replace(netloc=f"{user}@{host}" if user else host).geturl()
        with _serving(home, {**shared, "DATABASE_URL": url}) as server:
            assert _becomes(lambda: _says(server, 503, "database has not been reached"))
            assert _calls(server, 503)
            gate.open()
            assert _becomes(lambda: _says(server, 200, "ready"))
            assert _calls(server, 200)
            gate.shut()
            assert _becomes(lambda: _says(server, 503, "unready"))
            assert _calls(server, 503)
