"""Database content for many tests: created once by the product's services, then copied by row.

Creating the cast takes a sixth of a second, and hundreds of tests start with it.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Generic, NamedTuple, TypeVar

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction

from mcphost.feed.loop import loop

T = TypeVar("T")


class _Copy(NamedTuple):
    """The built value, and all rows that building it wrote, by table."""

    value: Any
    rows: dict[str, Sequence[tuple[Any, ...]]]


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
        if any(_rows().values()):
            return self._build()
        if inside not in self._copies:
            value = self._build()
            self._copies[inside] = _Copy(deepcopy(value), _rows())
            return value
        copy = self._copies[inside]
        _insert(copy.rows)
        if not inside:
            loop.poll()
        return deepcopy(copy.value)


def _tables() -> list[str]:
    ours = [model for model in apps.get_models() if model.__module__.startswith("mcphost.")]
    return [model._meta.db_table for model in (User, *ours)]


def _rows() -> dict[str, Sequence[tuple[Any, ...]]]:
    with connection.cursor() as cursor:
        found = {}
        for table in _tables():
            cursor.execute(f"SELECT * FROM {table}")
            found[table] = cursor.fetchall()
        return found


def _insert(rows: dict[str, Sequence[tuple[Any, ...]]]) -> None:
    """Insert all rows in one transaction, because foreign keys are checked at its end."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, values in rows.items():
            if values:
                places = ", ".join(["%s"] * len(values[0]))
                cursor.executemany(f"INSERT INTO {table} VALUES ({places})", values)
