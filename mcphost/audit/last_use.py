"""When rows such as tokens and secrets were last used: kept in memory at each use, written to the database
later.

All processes together write a row at most once a minute, so the stored time may be a minute old.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections, models, transaction

WRITE_AFTER = timedelta(minutes=1)
WRITTEN_AT_ONCE = 500

# Never sets an earlier time, and writes nothing if another process has just written.
_UPDATE: Final = (
    "UPDATE {table} SET {column} = %s WHERE id = %s AND ({column} IS NULL OR {column} <= %s)"
)

Id = TypeVar("Id", bound=Hashable)


class _Notes:
    """When rows were used, and when each was last written, by column."""

    def __init__(self) -> None:
        self.noted: dict[LastUse[Any], dict[Any, datetime]] = {}
        self.written: dict[LastUse[Any], dict[Any, datetime]] = {}

    def flush(self, now: datetime) -> int:
        """Write the notes of rows not written for a minute, at most 500 of each column; return how many.

        A database error is raised, and keeps the notes for the next call.
        """
        return sum(self._flush(column, now) for column in tuple(self.noted))

    def _flush(self, column: "LastUse[Any]", now: datetime) -> int:
        recent, noted = now - WRITE_AFTER, self.noted[column]
        before = self.written.get(column, {})
        written = self.written[column] = {row: at for row, at in before.items() if at > recent}
        due = [use for use in list(noted.items()) if use[0] not in written][:WRITTEN_AT_ONCE]
        if due:
            column.write(due)
        for row_id, used_at in due:
            written[row_id] = now
            if noted.get(row_id) == used_at:
                del noted[row_id]
        return len(due)

    def discard_unwritten(self) -> None:
        """Drop the notes without writing them."""
        self.noted.clear()
        self.written.clear()


_notes: Final = _Notes()
flush: Final = _notes.flush
"""Called every few seconds by the process's housekeeping, in a thread that may wait for the database."""
discard_unwritten: Final = _notes.discard_unwritten


@dataclass(frozen=True, eq=False)
class LastUse(Generic[Id]):
    """The time of the last use of each row of one model, which has the columns `id` and `column`."""

    model: type[models.Model]
    column: str = "last_used_at"

    def note(self, row_id: Id, now: datetime) -> None:
        """Note a use. Called at every use, so it only remembers it."""
        _notes.noted.setdefault(self, {})[row_id] = now

    def note_within(self, limit: int, row_id: Id, now: datetime) -> None:
        """Note a use unless `limit` others wait to be written: for what anonymous callers choose."""
        noted = _notes.noted.get(self, {})
        if len(noted) < limit or row_id in noted:
            self.note(row_id, now)

    def write(self, uses: Iterable[tuple[Id, datetime]]) -> None:
        """Write these uses in one transaction, where no later one is stored. Raises the database's
        errors."""
        connection = connections[DEFAULT_DB_ALIAS]
        adapt = connection.ops.adapt_datetimefield_value
        key, table = self.model._meta.pk, self.model._meta.db_table
        rows = [
            (adapt(used_at), key.get_db_prep_save(row_id, connection), adapt(used_at - WRITE_AFTER))
            for row_id, used_at in sorted(uses, key=lambda use: str(use[0]))
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(_UPDATE.format(table=table, column=self.column), rows)
