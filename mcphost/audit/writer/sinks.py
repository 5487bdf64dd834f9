"""Write rows in the way of each database that is fastest while an event loop is running.

The writer shares the GIL with the event loop. Every statement releases the GIL and must acquire it
again, which takes up to 5 ms beside a busy loop. So rows are written in few, large statements
(`executemany` is one statement per row). A statement that is the whole transaction needs no
BEGIN and COMMIT.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

import orjson
import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import BaseDatabaseWrapper

from mcphost.audit.writer.conditions import (
    POSTGRESQL,
    SQLITE,
    BoundCondition,
    Effect,
    RowChange,
    array,
    by_change,
    by_effect,
)
from mcphost.audit.writer.rows import ENTRY_COLUMNS, PAYLOAD_COLUMNS, PreparedRow


class Sink(Protocol):
    """Writes rows through one connection."""

    def write(self, rows: Sequence[PreparedRow]) -> None:
        """Commit all of `rows` or none. Rows that exist already are not changed.

        Raises the driver's errors.
        """

    def write_if(self, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]) -> set[str]:
        """Commit `rows`, the changes of `bound` that take hold, their effects and rows; or nothing.

        Returns the nonces of the conditions that took hold. Raises the driver's errors.
        """

    def made(self, bound: Sequence[BoundCondition]) -> set[str]:
        """The nonces of the conditions that had taken hold before. Raises as `write`.

        All of their changes must have `made`.
        """


def sink(connection: BaseDatabaseWrapper) -> Sink:
    """The sink of an open connection."""
    match connection.vendor:
        case "sqlite":
            return SqliteSink(connection.connection)
        case "postgresql":
            return PostgresSink(connection.connection)
        case vendor:
            raise ImproperlyConfigured(f"the record writer does not support the database {vendor}")


class SqliteSink:
    """Multi-row inserts; the SQLite driver caches prepared statements by their text."""

    ROWS = 32
    # busy_timeout: a locked database is reported within a second. wal_autocheckpoint: rarer
    # checkpoints, in which more commits share a page.
    SETTINGS = ("PRAGMA busy_timeout = 1000", "PRAGMA wal_autocheckpoint = 4000")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        for setting in self.SETTINGS:
            connection.execute(setting)

    def write(self, rows: Sequence[PreparedRow]) -> None:
        statements = _sqlite_inserts(rows)
        execute = self._connection.execute
        if len(statements) == 1:
            execute(*statements[0])
            return
        execute("BEGIN IMMEDIATE")
        try:
            for statement, values in statements:
                execute(statement, values)
            execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def write_if(self, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]) -> set[str]:
        writes = any(
            condition.rows or condition.effects or not condition.change.reads for condition in bound
        )
        if not (rows or writes):
            return self._make_changes(bound)
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            nonces = self._make_changes(bound)
            landing = [condition for condition in bound if condition.nonce in nonces]
            for effect, of_effect in by_effect(landing).items():
                for step in effect.steps[SQLITE]:
                    execute(step, (array(of_effect),))
            landed = [row for condition in landing for row in condition.rows]
            for statement, values in _sqlite_inserts([*rows, *landed]):
                execute(statement, values)
            execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
        return nonces

    def _make_changes(self, bound: Sequence[BoundCondition]) -> set[str]:
        """Make the changes; return the nonces of those that took hold."""
        nonces: set[str] = set()
        for change, of_change in by_change(bound).items():
            remaining = of_change
            for step in change.make[SQLITE]:
                changed_nonces = self._nonces(step, remaining) if remaining else set()
                remaining = [
                    condition for condition in remaining if condition.nonce in changed_nonces
                ]
            nonces.update(condition.nonce for condition in remaining)
        return nonces

    def made(self, bound: Sequence[BoundCondition]) -> set[str]:
        nonces: set[str] = set()
        for change, of_change in by_change(bound).items():
            assert change.made is not None
            nonces |= self._nonces(change.made[SQLITE], of_change)
        return nonces

    def _nonces(self, statement: str, bound: Sequence[BoundCondition]) -> set[str]:
        values = array([condition.values for condition in bound])
        return {nonce for (nonce,) in self._connection.execute(statement, (values,))}


def _sqlite_inserts(rows: Sequence[PreparedRow]) -> list[tuple[str, list[Any]]]:
    entries: list[tuple[Any, ...]] = []
    payloads: list[tuple[Any, ...]] = []
    for row in rows:
        record, sealed = row.record, row.sealed
        tenant, call, http_request_id, at = (
            record.tenant,
            record.call,
            record.http_request_id,
            record.at,
        )
        if at.tzinfo is not UTC:
            at = at.astimezone(UTC)
        entry = (
            record.id.hex,
            at.replace(tzinfo=None).isoformat(" "),
            None if tenant is None else tenant.hex,
            None if call is None else call.hex,
            None if http_request_id is None else http_request_id.hex,
            record.round,
            record.duration_us,
            record.bytes_in,
            record.bytes_out,
            *row.texts,
            row.facts.decode(),
            None if sealed is None else sealed.commitment,
        )
        entries.append(entry)
        if sealed is not None:
            assert tenant is not None
            payloads.append((record.id.hex, tenant.hex, sealed.key_id, sealed.ciphertext, ""))
    return [
        *_sqlite_statements("audit_entry", ENTRY_COLUMNS, entries),
        *_sqlite_statements("audit_payload", PAYLOAD_COLUMNS, payloads),
    ]


@lru_cache
def _sqlite_insert(table: str, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    placeholders = f"({', '.join('?' * len(columns))})"
    values = ", ".join([placeholders] * rows)
    return f"INSERT INTO {table} ({names}) VALUES {values} ON CONFLICT DO NOTHING"  # noqa: S608 - constants


def _sqlite_statements(
    table: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> list[tuple[str, list[Any]]]:
    return [
        (
            _sqlite_insert(table, columns, len(rows[at : at + SqliteSink.ROWS])),
            list(chain.from_iterable(rows[at : at + SqliteSink.ROWS])),
        )
        for at in range(0, len(rows), SqliteSink.ROWS)
    ]


_POSTGRES_TYPES = {
    "id": "uuid",
    "at": "timestamptz",
    "tenant": "uuid",
    "call": "uuid",
    "http_request_id": "uuid",
    "round": "bigint",
    "duration_us": "bigint",
    "bytes_in": "bigint",
    "bytes_out": "bigint",
    "facts": "jsonb",
    "entry": "uuid",
}
# JSON has no bytes: they are sent as base64.
_POSTGRES_BYTES = frozenset({"commitment", "ciphertext"})


# Rows without a condition, and rows whose condition took hold.
_POSTGRES_HELD = " WHERE r.nonce IS NULL OR r.nonce IN (SELECT nonce FROM held)"


def _postgres_insert(table: str, columns: tuple[str, ...], which: str = "") -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    typed = ", ".join(f'"{column}" {_POSTGRES_TYPES.get(column, "text")}' for column in columns)
    values = ", ".join(
        f"decode(\"{column}\", 'base64')" if column in _POSTGRES_BYTES else f'"{column}"'
        for column in columns
    )
    return (
        f"INSERT INTO {table} ({names}) SELECT {values} "  # noqa: S608 - constants
        f"FROM json_to_recordset(%s::json) AS r({typed}, nonce text){which} ON CONFLICT DO NOTHING"
    )


@lru_cache
def _postgres_if(
    changes: tuple[RowChange, ...], effects: tuple[Effect, ...], *, records: bool
) -> str:
    """One statement for changes and effects of these types, and for all rows, with and without a
    condition, if there are `records`."""
    last = [f"{change.name}{len(change.make[POSTGRESQL]) - 1}" for change in changes]
    nonces = " UNION ALL ".join(f"SELECT nonce FROM {name}" for name in last)  # noqa: S608
    parts = [
        *(_postgres_step(change.name, change.make[POSTGRESQL]) for change in changes),
        f"held AS ({nonces})",
        *(_postgres_step(effect.name, effect.steps[POSTGRESQL]) for effect in effects),
    ]
    if records:
        parts += [
            f"p AS ({_postgres_insert('audit_payload', PAYLOAD_COLUMNS, _POSTGRES_HELD)})",
            f"e AS ({_postgres_insert('audit_entry', ENTRY_COLUMNS, _POSTGRES_HELD)})",
        ]
    return f"WITH {', '.join(parts)} SELECT nonce FROM held"  # noqa: S608 - constants


def _postgres_step(name: str, steps: Sequence[str]) -> str:
    return ", ".join(f"{name}{number} AS ({step})" for number, step in enumerate(steps))


class PostgresSink:
    """One JSON document per batch: one statement, one round trip, and no Python code per column."""

    # The thread must not wait for ever for a lock of another transaction.
    SETTINGS = ("SET statement_timeout = '5s'",)
    PREPARED = 400  # statements that stay prepared: there is one for each mixture of conditions
    ENTRIES = _postgres_insert("audit_entry", ENTRY_COLUMNS)
    BOTH = f"WITH p AS ({_postgres_insert('audit_payload', PAYLOAD_COLUMNS)}) {ENTRIES}"

    def __init__(self, connection: Any) -> None:
        # Django's cursor puts the values into the statement's text, which cannot be prepared.
        connection.prepared_max = self.PREPARED
        self._cursor = psycopg.Cursor(connection)
        for setting in self.SETTINGS:
            self._cursor.execute(setting)

    def write(self, rows: Sequence[PreparedRow]) -> None:
        entries = _json([_postgres_entry(row) for row in rows])
        payloads = [_postgres_payload(row) for row in rows if row.sealed is not None]
        if payloads:
            self._cursor.execute(self.BOTH, (_json(payloads), entries), prepare=True)
        else:
            self._cursor.execute(self.ENTRIES, (entries,), prepare=True)

    def write_if(self, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]) -> set[str]:
        changes, effects = by_change(bound), by_effect(bound)
        parameters = [
            *(_values(of) for change, of in changes.items() for _ in change.make[POSTGRESQL]),
            *(array(of) for effect, of in effects.items() for _ in effect.steps[POSTGRESQL]),
        ]
        every: list[tuple[PreparedRow, dict[str, str]]] = [(row, {}) for row in rows]
        every += [
            (row, {"nonce": condition.nonce}) for condition in bound for row in condition.rows
        ]
        if every:
            sealed = [
                _postgres_payload(row) | nonce for row, nonce in every if row.sealed is not None
            ]
            entries = [_postgres_entry(row) | nonce for row, nonce in every]
            parameters += [_json(sealed), _json(entries)]
        statement = _postgres_if(tuple(changes), tuple(effects), records=bool(every))
        return self._nonces(statement, *parameters)

    def made(self, bound: Sequence[BoundCondition]) -> set[str]:
        nonces: set[str] = set()
        for change, of_change in by_change(bound).items():
            assert change.made is not None
            nonces |= self._nonces(change.made[POSTGRESQL], _values(of_change))
        return nonces

    def _nonces(self, statement: str, *parameters: str) -> set[str]:
        self._cursor.execute(statement, parameters, prepare=True)
        return {nonce for (nonce,) in self._cursor.fetchall()}


def _values(bound: Sequence[BoundCondition]) -> str:
    return array([condition.values for condition in bound])


def _json(rows: list[dict[str, Any]]) -> str:
    return orjson.dumps(rows).decode()


def _postgres_entry(row: PreparedRow) -> dict[str, Any]:
    facts = orjson.Fragment(row.facts)
    commitment = None if row.sealed is None else b64encode(row.sealed.commitment).decode()
    return dict(zip(ENTRY_COLUMNS, (*row.record[:9], *row.texts, facts, commitment), strict=True))


def _postgres_payload(row: PreparedRow) -> dict[str, Any]:
    record, sealed = row.record, row.sealed
    assert sealed is not None
    return {
        "entry": record.id,
        "tenant": record.tenant,
        "key_id": sealed.key_id,
        "ciphertext": b64encode(sealed.ciphertext).decode(),
        "erased_by": "",
    }
