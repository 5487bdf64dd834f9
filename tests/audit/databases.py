"""Cause real failures of the tests' database."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.signals import connection_created

from mcphost.audit.records import Record, new_id
from mcphost.audit.writer.sinks import PostgresSink, SqliteSink

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def record(**columns: Any) -> Record:
    """A record of an action, with these columns."""
    values = {"id": new_id(), "at": AT, "action": "test.done", "actor_kind": "system"}
    return Record(**{**values, **columns})


def impatient(monkeypatch: Any) -> None:
    """Make the writer's connection fail at once when it meets a lock."""
    monkeypatch.setattr(SqliteSink, "SETTINGS", ("PRAGMA busy_timeout = 1",))
    monkeypatch.setattr(PostgresSink, "SETTINGS", ("SET statement_timeout = '20ms'",))


@contextmanager
def locked() -> Iterator[None]:
    """Hold a lock that blocks all inserts, from a separate connection."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as cursor:
            if other.vendor == "sqlite":
                cursor.execute("BEGIN IMMEDIATE")
            else:
                cursor.execute("BEGIN")
                cursor.execute("LOCK TABLE audit_entry IN ACCESS EXCLUSIVE MODE")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    finally:
        other.close()


@contextmanager
def full_disk() -> Iterator[None]:
    """Prevent the database file from growing, from the writer's next connection on (SQLite)."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")  # earlier tests left free pages
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]

    def limit(sender: Any, connection: Any, **kwargs: Any) -> None:
        if threading.current_thread().name == "mcphost-writer":
            connection.cursor().execute(f"PRAGMA max_page_count = {pages}")

    connection_created.connect(limit)
    try:
        yield
    finally:
        connection_created.disconnect(limit)


def cut_connections() -> None:
    """Make PostgreSQL end every other connection to the test database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def await_a_lock(beginning: str) -> None:
    """Wait until a statement that begins with this text waits for a lock (PostgreSQL)."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # in a transaction it is kept
            cursor.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database() AND starts_with(query, %s)",
                [beginning],
            )
            if cursor.fetchone():
                return
        threading.Event().wait(0.01)  # poll another process
    raise AssertionError(f"no statement that begins with {beginning!r} waits for a lock")


def stored() -> set[UUID]:
    """The ids of all entries."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM audit_entry")
        return {each if isinstance(each, UUID) else UUID(each) for (each,) in cursor.fetchall()}


def commit_nothing(monkeypatch: Any) -> None:
    """Let every conditional commit of the record writer fail, as while the database is away."""

    def gone(*_: object) -> None:
        raise OperationalError("gone")

    for sink in (PostgresSink, SqliteSink):
        monkeypatch.setattr(sink, "write_if", gone)
