"""What several nodes share: a database on the PostgreSQL of TEST_DATABASE_URL, a Redis of its own."""

import atexit
import base64
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from tests.e2e.processes import OWN, initialize, temporary
from tests.redis import Redis


def missing() -> str:
    """What several nodes need and this machine has not, for people; empty if all is there."""
    if not os.environ.get("TEST_DATABASE_URL"):
        return "TEST_DATABASE_URL names no PostgreSQL"
    return "" if shutil.which("redis-server") else "there is no redis-server"


@contextmanager
def database(like: str = "") -> Iterator[str]:
    """The URL of a database that is gone afterwards: empty, or a copy of the database `like`."""
    url = create(like)
    try:
        yield url
    finally:
        drop(url)


@dataclass(frozen=True)
class _Original:
    """A data folder, the name of its database on a PostgreSQL, and the secrets that belong to both."""

    home: Path
    database: str
    secrets: Mapping[str, str]


@contextmanager
def initialized(home: Path, **more: str) -> Iterator[dict[str, str]]:
    """Make the data folder `home`, and a database of its own with the demo tenant, which is gone afterwards."""
    if OWN.intersection(more):
        with database() as url:
            shared = {"DATABASE_URL": url, **more}
            initialize(home, shared)
            yield shared
        return
    made = _initialized(server())
    with database(made.database) as url:
        shutil.copytree(made.home, home)
        yield {"DATABASE_URL": url, **made.secrets, **more}


@cache
def _initialized(server: str) -> _Original:
    master_key = base64.b64encode(secrets.token_bytes(32)).decode()
    shared = {"MCPHOST_MASTER_KEY": master_key, "MCPHOST_SECRET_KEY": secrets.token_urlsafe(48)}
    home, url = temporary() / "home", create()
    atexit.register(_drop_if_there, url)
    initialize(home, {"DATABASE_URL": url, **shared})
    return _Original(home, name_of(url), shared)


def write_key(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(base64.b64encode(secrets.token_bytes(32)).decode())
    path.chmod(0o600)
    return path


def _drop_if_there(url: str) -> None:
    with suppress(psycopg.OperationalError):
        drop(url)


def create(like: str = "") -> str:
    name = f"mcphost_e2e_{uuid4().hex[:12]}"
    copied = SQL(" TEMPLATE {}").format(Identifier(like)) if like else SQL("")
    _execute(server(), SQL("CREATE DATABASE {}{}").format(Identifier(name), copied))
    return urlsplit(server())._replace(scheme="postgres", path=f"/{name}").geturl()


def drop(url: str) -> None:
    at = urlsplit(url)
    statement = SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name_of(url)))
    _execute(at._replace(scheme="postgresql", path="/postgres").geturl(), statement)


def name_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def server() -> str:
    at = urlsplit(os.environ["TEST_DATABASE_URL"])
    return at._replace(scheme="postgresql", path="/postgres").geturl()


def _execute(server: str, statement: Composed | SQL) -> None:
    """Over a connection of its own: the server may be restarted between two statements."""
    with closing(psycopg.connect(server, autocommit=True)) as link:
        link.execute(statement)


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    started = Redis(folder)
    try:
        started.start()
        yield started
    finally:
        started.stop()
