"""Whose turn it is, among processes that share a database."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_SETTING_UP = 0x6D6370686F7374
"""The number of the lock; all who set a database up know it."""


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Nobody else sets the same database up meanwhile; whoever tries waits.

    PostgreSQL keeps the lock for this connection and drops it with it. SQLite has no machine but
    ours, where the data folder is locked already.
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
