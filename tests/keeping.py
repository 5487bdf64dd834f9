"""What many tests begin with: made once by the product's services, then copied row by row.

The cast takes a sixth of a second to make, and hundreds of tests begin with it.
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
    """What was built, and every row that it left, by table."""

    value: Any
    rows: dict[str, Sequence[tuple[Any, ...]]]


class Kept(Generic[T]):
    """Something that is built in an empty database.

    Two copies are kept: inside a test's transaction nothing that follows a commit is there.
    """

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._copies: dict[bool, _Copy] = {}

    def put(self) -> T:
        """Have it in the database: the same ids and secrets in every test of a process."""
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
    """All at once: foreign keys are looked at when the transaction ends."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, values in rows.items():
            if values:
                places = ", ".join(["%s"] * len(values[0]))
                cursor.executemany(f"INSERT INTO {table} VALUES ({places})", values)
