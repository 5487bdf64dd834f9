"""Database content for many tests: created once by the product's services, then copied by row.

Creating the cast takes a sixth of a second, a tenant's things a tenth; hundreds of tests start with
them.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, Generic, NamedTuple, TypeVar

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction

from mcphost.feed.loop import loop

T = TypeVar("T")
Rows = dict[str, Sequence[tuple[Any, ...]]]


class _Copy(NamedTuple):
    """The built value, and all rows that building it wrote, by table."""

    value: Any
    rows: Rows


class Kept(Generic[T]):
    """A value that is built in an empty database, and kept with its rows.

    Two copies are kept: inside a test's transaction, what happens after a commit is missing.
    """

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._copies: dict[bool, _Copy] = {}

    def put(self) -> T:
        """Write the rows to the database: the same ids and secrets in every test of a process."""
        inside = connection.in_atomic_block
        if any(_rows(_every()).values()):
            return self._build()
        if inside not in self._copies:
            value = self._build()
            self._copies[inside] = _Copy(deepcopy(value), _rows(_every()))
            return value
        copy = self._copies[inside]
        _insert(copy.rows)
        if not inside:
            loop.poll()
        return deepcopy(copy.value)


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
        return deepcopy(change.value)


def _change(value: Any, before: Rows, after: Rows) -> _Change:
    replaced, added = {}, {}
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
