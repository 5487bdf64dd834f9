"""Database content for many tests: created once by the product's services, then copied by row.

Creating the cast takes a sixth of a second, a tenant's things a tenth; hundreds of tests start with
them.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import count
from typing import Any, Generic, NamedTuple, Self, TypeVar

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction

from mcphost.feed.loop import loop

T = TypeVar("T")
R = TypeVar("R")
Rows = dict[str, Sequence[tuple[Any, ...]]]


class Kept(Generic[T]):
    """A value that is built in an empty database, and kept with its rows.

    Two copies are kept: inside a test's transaction, what happens after a commit is missing.
    """

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._committed: _Copy[T, _Tables] | None = None
        self._uncommitted: _Copy[T, Rows] | None = None

    def put(self) -> T:
        """Write the rows to the database: the same ids and secrets in every test of a process."""
        if _has_rows(_every()):
            return self._build()
        if connection.in_atomic_block:
            return self._put_uncommitted()
        return self._put_committed()

    def _put_committed(self) -> T:
        if self._committed is None:
            value = self._build()
            self._committed = _Copy(deepcopy(value), _Tables.copied(_every()))
            return value
        self._committed.rows.insert()
        loop.poll()
        return deepcopy(self._committed.value)

    def _put_uncommitted(self) -> T:
        if self._uncommitted is None:
            value = self._build()
            self._uncommitted = _Copy(deepcopy(value), _rows(_every()))
            return value
        _insert(self._uncommitted.rows)
        return deepcopy(self._uncommitted.value)


class _Copy(NamedTuple, Generic[T, R]):
    """The built value, and all rows that building it wrote."""

    value: T
    rows: R


class _Tables:
    """Copies of tables in the same database, from which one statement each inserts all rows again.

    They are outside of any test's transaction and no model knows them, so no test empties them.
    """

    _numbers = count(1)

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        self._names = names

    @classmethod
    def copied(cls, tables: Iterable[str]) -> Self:
        """Copy those of the tables that have rows."""
        number = next(cls._numbers)
        names = [(table, f"kept_{number}_{table}") for table in tables if _has_rows([table])]
        with connection.cursor() as cursor:
            for table, copy in names:
                cursor.execute(f"CREATE TABLE {copy} AS SELECT * FROM {table}")
        return cls(names)

    def insert(self) -> None:
        """Insert all rows in one transaction, because foreign keys are checked at its end."""
        with transaction.atomic(), connection.cursor() as cursor:
            for table, copy in self._names:
                cursor.execute(f"INSERT INTO {table} SELECT * FROM {copy}")


class _Change(NamedTuple):
    """The value that was built, the rows before, and the tables that building it changed."""

    value: Any
    before: Rows
    replaced: Rows
    added: Rows


class KeptOn(Generic[T]):
    """A value that is built on top of content that is the same in many tests, such as the cast.

    Where any row of the product is another than when it was kept, the value is built anew. Rows of
    users are not looked at: building changes none, and signing in changes one.
    """

    def __init__(self, build: Callable[..., T]) -> None:
        self._build = build
        self._changes: dict[bool, _Change] = {}

    def put(self, *parts: Any) -> T:
        """Write the rows that building from `parts` wrote. What it deleted or changed is replaced."""
        inside, before = connection.in_atomic_block, _rows(_ours())
        change = self._changes.get(inside)
        if change is None or change.before != before:
            value = self._build(*parts)
            self._changes[inside] = _change(value, before, _rows(_ours()))
            return value
        with transaction.atomic():
            _empty(change.replaced)
            _insert({**change.replaced, **change.added})
        if not inside:
            loop.poll()
        copied: T = deepcopy(change.value)
        return copied


def _change(value: Any, before: Rows, after: Rows) -> _Change:
    replaced: Rows = {}
    added: Rows = {}
    for table, rows in after.items():
        if any(row not in rows for row in before[table]):
            replaced[table] = rows
        else:
            added[table] = [row for row in rows if row not in before[table]]
    return _Change(deepcopy(value), before, replaced, added)


def _empty(tables: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DELETE FROM {table}")


def _ours() -> list[str]:
    ours = [model for model in apps.get_models() if model.__module__.startswith("mcphost.")]
    return [model._meta.db_table for model in ours]


def _every() -> list[str]:
    return [User._meta.db_table, *_ours()]


def _has_rows(tables: Iterable[str]) -> bool:
    looks = " OR ".join(f"EXISTS (SELECT 1 FROM {table})" for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {looks}")
        (has_rows,) = cursor.fetchone()
        return bool(has_rows)


def _rows(tables: Iterable[str]) -> Rows:
    with connection.cursor() as cursor:
        found = {}
        for table in tables:
            cursor.execute(f"SELECT * FROM {table}")
            found[table] = cursor.fetchall()
        return found


def _insert(rows: Rows) -> None:
    """Insert all rows in one transaction, because foreign keys are checked at its end."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, values in rows.items():
            if values:
                places = ", ".join(["%s"] * len(values[0]))
                cursor.executemany(f"INSERT INTO {table} VALUES ({places})", values)
