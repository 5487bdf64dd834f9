"""Indexes of large tables are made while other processes write to them."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddIndex

from mcphost.audit.indexes import AddIndexWhileWriting
from mcphost.audit.models import Entry
from mcphost.management.setup_lock import one_at_a_time

BEFORE = ("audit", "0006_roll_up_changes")
AFTER = ("audit", "0007_lists_of_a_tenant")
NAMES = {"audit_entry_own_refused", "audit_entry_own_verbs"}
LARGE = {"entry", "call"}
PATIENCE = 30.0

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(to: tuple[str, str] | None = None) -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([to] if to else executor.loader.graph.leaf_nodes())


def indexes() -> set[str]:
    """Return the indexes of this test that can be used."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indisvalid"
            )
            return {name for (name,) in cursor.fetchall()} & NAMES
        table = Entry._meta.db_table
        return NAMES & set(connection.introspection.get_constraints(cursor, table))


@pytest.fixture
def before() -> Iterator[None]:
    """The tables before the migration that makes the indexes."""
    migrate(BEFORE)
    assert indexes() == set()
    yield
    migrate()
    assert indexes() == NAMES


@contextmanager
def writing() -> Iterator[Any]:
    """Hold a transaction that has written to the table, from a connection of its own."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SET LOCAL lock_timeout = '5s'")
            cursor.execute("LOCK TABLE audit_entry IN ROW EXCLUSIVE MODE")
            yield
            cursor.execute("ROLLBACK")
    finally:
        other.close()


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND query LIKE 'CREATE INDEX%%' AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.postgresql
def test_writers_do_not_wait_for_an_index_that_is_made(before: None) -> None:
    failed: list[Exception] = []

    def migrating() -> None:
        try:
            migrate()
        except Exception as error:  # noqa: BLE001 - the test reports it
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=migrating)
    with writing():
        thread.start()
        end = time.monotonic() + PATIENCE
        while not waits_for_a_lock():
            assert time.monotonic() < end and thread.is_alive()
            threading.Event().wait(0.02)
        with writing():
            pass
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert failed == []
    assert indexes() == NAMES


@pytest.mark.postgresql
def test_a_migration_that_was_cancelled_leaves_an_invalid_index_which_is_made_again(before: None):
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '500ms'")
    try:
        with writing(), pytest.raises(OperationalError):
            migrate(AFTER)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid WHERE NOT indisvalid"
        )
        assert {name for (name,) in cursor.fetchall()} & NAMES
    assert indexes() == set()
    migrate(AFTER)
    assert indexes() == NAMES


def test_a_migration_that_ended_between_two_indexes_makes_the_other(before: None) -> None:
    index = next(each for each in Entry._meta.indexes if each.name in NAMES)
    with connection.schema_editor() as editor:
        editor.add_index(Entry, index)
    assert indexes() == {index.name}
    migrate(AFTER)
    assert indexes() == NAMES


def test_going_back_twice_removes_the_indexes_once(before: None) -> None:
    migrate(AFTER)
    index = next(each for each in Entry._meta.indexes if each.name in NAMES)
    with connection.schema_editor() as editor:
        editor.remove_index(Entry, index)
    migrate(BEFORE)
    assert indexes() == set()


@pytest.mark.postgresql
def test_a_process_that_waits_to_set_up_does_not_stop_an_index(before: None) -> None:
    """A statement that waits for the lock would have a snapshot, for which the index waits."""
    inside = threading.Event()

    def second() -> None:
        with one_at_a_time():
            inside.set()
        connection.close()

    thread = threading.Thread(target=second)
    with one_at_a_time():
        thread.start()
        migrate()
        assert not inside.is_set()
    thread.join(PATIENCE)
    assert inside.is_set()


def test_later_indexes_of_large_tables_are_made_while_writing() -> None:
    found = 0
    for (app, name), migration in MigrationLoader(connection).disk_migrations.items():
        if app != "audit" or name < AFTER[1]:
            continue
        for operation in migration.operations:
            if isinstance(operation, AddIndex) and operation.model_name in LARGE:
                assert isinstance(operation, AddIndexWhileWriting), name
                assert not migration.atomic, name
                found += 1
    assert found >= len(NAMES)
