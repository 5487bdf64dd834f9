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
import pytest
from psycopg.sql import SQL, Identifier

from tests.e2e.processes import free_port

PATIENCE = 20


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database that is gone afterwards."""
    given = os.environ.get("TEST_DATABASE_URL", "")
    if not given:
        pytest.skip("TEST_DATABASE_URL names no PostgreSQL")
    name = Identifier(f"mcphost_e2e_{uuid4().hex[:12]}")
    at = urlsplit(given)._replace(scheme="postgresql")
    with closing(psycopg.connect(at._replace(path="/postgres").geturl(), autocommit=True)) as link:
        link.execute(SQL("CREATE DATABASE {}").format(name))
        try:
            yield at._replace(scheme="postgres", path=f"/{name._obj[0]}").geturl()
        finally:
            link.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The URL of a Redis that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server")
    port = free_port()
    process = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(PATIENCE)


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
