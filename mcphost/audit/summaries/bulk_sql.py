"""SQL statements for many rows at once, whose values are one JSON document, and ids and times as the drivers of
both databases return them.

Such a statement costs little Python per row, and releases the GIL once.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import DEFAULT_DB_ALIAS, connections

SQLITE: Final = "sqlite"


def vendor() -> str:
    """The database of this thread's connection: `sqlite` or `postgresql`."""
    return connections[DEFAULT_DB_ALIAS].vendor


def tune() -> None:
    """Configure this thread's connection for writing summaries (`follower`).

    Commits do not wait for the disk, because summaries can be made again from the record. After a crash the
    latest commits may be missing. PostgreSQL always uses indexes: without statistics, as after a restore, it
    would otherwise scan whole tables for each batch.
    """
    if vendor() == SQLITE:
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA wal_autocheckpoint = 4000")  # as rare as those of the record writer
    else:
        run(
            "SELECT set_config(name, 'off', false) FROM unnest(%s::text[]) AS name",
            ["synchronous_commit", "enable_seqscan", "enable_hashjoin", "enable_mergejoin"],
        )


def rows_of(name: str, columns: Mapping[str, str]) -> str:
    """Return the SQL of a table named `name`, whose rows are the parameter: a JSON array of objects.

    `columns` are the columns with their types in PostgreSQL.
    """
    if vendor() == SQLITE:
        parts = ", ".join(f"json_extract(value, '$.{column}') AS {column}" for column in columns)
        return f"(SELECT {parts} FROM json_each(%s)) AS {name}"  # noqa: S608 - constants
    typed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    return f"json_to_recordset(%s::json) AS {name}({typed})"


def ids_of() -> str:
    """Return the SQL of a subquery of UUIDs, whose parameter is a JSON array of their texts (`id_text`)."""
    if vendor() == SQLITE:
        return "(SELECT value FROM json_each(%s))"
    return "(SELECT value::uuid FROM json_array_elements_text(%s::json))"


def as_json(rows: Iterable[Mapping[str, Any] | str]) -> str:
    """Return the parameter for `rows_of` and `ids_of`."""
    return orjson.dumps(list(rows)).decode()


def stored_time_text(at: datetime | None) -> str | None:
    """Return a time as the text with which the database compares stored times."""
    return (
        None if at is None else str(connections[DEFAULT_DB_ALIAS].ops.adapt_datetimefield_value(at))
    )


def run(statement: str, *parameters: Any) -> int:
    """Execute a statement; return how many rows it changed."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def fetch(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Execute a query; return its rows. UUIDs are `UUID` or hex digits, as the driver returns them."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def uuid_of(value: Any) -> UUID:
    """Return a UUID as a driver returned it."""
    return value if isinstance(value, UUID) else UUID(hex=value)


def id_text(value: Any) -> str:
    """Return a UUID as it is written in parameters, from what a driver returned: hex digits."""
    return value if isinstance(value, str) else value.hex


def time_of(stored: Any) -> datetime | None:
    """Return a time as a driver returned it."""
    if isinstance(stored, str):  # SQLite
        return datetime.fromisoformat(stored).replace(tzinfo=UTC)
    return stored if stored is None else stored.astimezone(UTC)
