"""The PostgreSQL that the benchmark may use: TEST_DATABASE_URL's, or this machine's if it lets us in."""

import getpass
import os
from contextlib import closing
from urllib.parse import urlsplit

import psycopg

VARIABLE = "TEST_DATABASE_URL"
PATIENCE = 5


def find() -> None:
    """Put this machine's own into TEST_DATABASE_URL, if nothing is in there and it lets us in."""
    here = f"postgres://{getpass.getuser()}@127.0.0.1:5432/postgres"
    if not os.environ.get(VARIABLE) and not _refusal(here):
        os.environ[VARIABLE] = here


def missing() -> str:
    """Why there is no PostgreSQL, for people; empty if there is one."""
    address = os.environ.get(VARIABLE)
    return _refusal(address) if address else f"{VARIABLE} names no PostgreSQL"


def _refusal(address: str) -> str:
    server = urlsplit(address)._replace(scheme="postgresql").geturl()
    try:
        with closing(psycopg.connect(server, connect_timeout=PATIENCE)):
            return ""
    except psycopg.Error as error:
        return f"PostgreSQL refuses the connection: {error}"
