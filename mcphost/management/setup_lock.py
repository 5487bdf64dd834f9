"""A lock between processes that share a database."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_SETTING_UP = 0x6D6370686F7374
"""The number of the advisory lock, the same in all processes that set up a database."""


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Keep other processes from setting up the same database meanwhile; they wait.

    In PostgreSQL the lock belongs to this connection and ends with it. SQLite is used on one
    machine only, where the data folder is locked already.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_SETTING_UP])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_SETTING_UP])
