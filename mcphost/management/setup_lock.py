"""A lock between processes that share a database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_SETTING_UP = 0x6D6370686F7374
"""The number of the advisory lock, the same in all processes that set up a database."""

_AGAIN_SECONDS = 0.2


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Keep other processes from setting up the same database meanwhile; they wait.

    In PostgreSQL the lock belongs to this connection and ends with it. SQLite is used on one
    machine only, where the data folder is locked already.
    """
    if connection.vendor != "postgresql":
        yield
        return
    # A statement that waits for the lock has a snapshot, for which CREATE INDEX CONCURRENTLY waits.
    while not _locked():
        time.sleep(_AGAIN_SECONDS)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_SETTING_UP])


def _locked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_SETTING_UP])
        return bool(cursor.fetchone()[0])
