"""Probe whether the database can be used."""

from typing import Final

from django.db import DEFAULT_DB_ALIAS, connections

_LOCKING: Final = ("PRAGMA busy_timeout = 250", "BEGIN IMMEDIATE", "ROLLBACK")
"""A locked SQLite file can still be read: only a write transaction detects the lock."""


def probe() -> None:
    """Use the database once, over a new connection. Raises the database's errors."""
    connection = connections[DEFAULT_DB_ALIAS]
    try:
        with connection.cursor() as cursor:
            for statement in _LOCKING if connection.vendor == "sqlite" else ("SELECT 1",):
                cursor.execute(statement)
    finally:
        connection.close()
