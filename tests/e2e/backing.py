"""What several nodes share: a database on the PostgreSQL of TEST_DATABASE_URL, a Redis of its own."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier

from tests.e2e.processes import free_port

PATIENCE = 20


def missing() -> str:
    """What several nodes need and this machine has not, for people; empty if all is there."""
    if not os.environ.get("TEST_DATABASE_URL"):
        return "TEST_DATABASE_URL names no PostgreSQL"
    return "" if shutil.which("redis-server") else "there is no redis-server"


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database that is gone afterwards."""
    name = Identifier(f"mcphost_e2e_{uuid4().hex[:12]}")
    at = urlsplit(os.environ["TEST_DATABASE_URL"])._replace(scheme="postgresql")
    with closing(psycopg.connect(at._replace(path="/postgres").geturl(), autocommit=True)) as link:
        link.execute(SQL("CREATE DATABASE {}").format(name))
        try:
            yield at._replace(scheme="postgres", path=f"/{name._obj[0]}").geturl()
        finally:
            link.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(name))


class Redis:
    """A Redis that keeps nothing, on a port that it keeps from life to life."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        loose = ("--save", "", "--appendonly", "no", "--dir", str(folder))
        self._argv = ("redis-server", "--port", str(self._port), "--bind", "127.0.0.1", *loose)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL)
        _wait_for(self._port)

    def stop(self) -> None:
        """End it, if it runs; what was in it is gone."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    """A Redis that answers."""
    started = Redis(folder)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def _wait_for(port: int) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            create_connection(("127.0.0.1", port), PATIENCE).close()
        except OSError:
            assert time.monotonic() < ends, "Redis did not start"
            time.sleep(0.05)  # between looks at another process
        else:
            return
