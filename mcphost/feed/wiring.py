"""Set the probe by which this process finds out that the database is back."""

from typing import Final

from django.db import DEFAULT_DB_ALIAS, connections

from mcphost.observability.availability import availability

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


availability.probe = probe
