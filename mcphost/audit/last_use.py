"""When rows were last used: noted in memory at each use, written to the database later.

All processes together write a row at most once a minute, so the stored time may be a minute old.
"""

from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models, transaction

WRITE_AFTER = timedelta(minutes=1)
WRITTEN_AT_ONCE = 500

# Never sets an earlier time, and writes nothing if another process has just written.
_UPDATE: Final = (
    "UPDATE {table} SET {column} = %s WHERE id = %s AND ({column} IS NULL OR {column} <= %s)"
)

Id = TypeVar("Id", str, UUID)


class LastUse(Generic[Id]):
    """Notes of when rows of one model were used, and of when each was last written.

    The model has the columns `id` and `column`. `note` is called at every use; `flush` is called
    every few seconds by the process's housekeeping, in a thread that may wait for the database.
    """

    def __init__(self, model: type[models.Model], column: str = "last_used_at") -> None:
        self._model = model
        self._column = column
        self._noted: dict[Id, datetime] = {}
        self._written: dict[Id, datetime] = {}

    def note(self, row_id: Id, now: datetime) -> None:
        self._noted[row_id] = now

    def flush(self, now: datetime) -> int:
        """Write the notes of rows not written for a minute, at most 500; return how many.

        A database error is raised, and keeps the notes for the next call.
        """
        recent = now - WRITE_AFTER
        self._written = {row: at for row, at in self._written.items() if at > recent}
        due = [use for use in list(self._noted.items()) if use[0] not in self._written]
        due = due[:WRITTEN_AT_ONCE]
        if due:
            self._write(due)
        for row_id, used_at in due:
            self._written[row_id] = now
            if self._noted.get(row_id) == used_at:
                del self._noted[row_id]
        return len(due)

    def forget_all(self) -> None:
        """Drop the notes without writing them."""
        self._noted = {}
        self._written = {}

    def _write(self, uses: list[tuple[Id, datetime]]) -> None:
        connection = connections[DEFAULT_DB_ALIAS]
        adapt = connection.ops.adapt_datetimefield_value
        key, table = self._model._meta.pk, self._model._meta.db_table
        rows = [
            (adapt(used_at), key.get_db_prep_save(row_id, connection), adapt(used_at - WRITE_AFTER))
            for row_id, used_at in sorted(uses)
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(_UPDATE.format(table=table, column=self._column), rows)
