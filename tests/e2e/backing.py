"""What several nodes share: a database on the PostgreSQL of TEST_DATABASE_URL, a Redis of its own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from tests.redis import Redis


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
    server = at._replace(path="/postgres").geturl()
    _execute(server, SQL("CREATE DATABASE {}").format(name))
    try:
        yield at._replace(scheme="postgres", path=f"/{name._obj[0]}").geturl()
    finally:
        _execute(server, SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _execute(server: str, statement: Composed) -> None:
    """Over a connection of its own: the server may be restarted between two statements."""
    with closing(psycopg.connect(server, autocommit=True)) as link:
        link.execute(statement)


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    """A Redis that answers."""
    started = Redis(folder)
    try:
        started.start()
        yield started
    finally:
        started.stop()
