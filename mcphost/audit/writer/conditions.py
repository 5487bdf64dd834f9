"""Conditions of a submission of records: a change of rows of a higher package.

The change and the records are committed together, or neither is. The writer knows nothing about
such rows: the caller provides the SQL, one statement that makes the changes of a whole batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcphost.audit.writer.rows import PreparedRow

SQLITE, POSTGRESQL = "sqlite", "postgresql"


@dataclass(frozen=True, slots=True, eq=False)
class RowChange:
    """One type of change, for many rows at once, as SQL by database vendor.

    Both statements take one parameter, a JSON array of the rows of conditions, and return nonces:
    `make` those of the changes that it made, `made` those of changes that were made before. The
    latter is used after a connection was lost during a commit. On PostgreSQL `make` is put into a
    `WITH`.
    """

    make: Mapping[str, str]
    made: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Condition:
    """One change that a submission depends on.

    `nonce` is a text chosen by the caller, unique among the conditions of a batch. `row` returns
    the change's values as JSON, the nonce among them. It is called in the writer's thread, where it
    does not delay an event loop, and may read the database, like a payload's cipher.
    """

    change: RowChange
    nonce: str
    row: Callable[[], Mapping[str, Any]]


class BoundCondition(NamedTuple):
    """A condition ready for a database: its row as JSON, and the rows that depend on it."""

    nonce: str
    change: RowChange
    values: bytes
    rows: list[PreparedRow]


def by_change(bound: Sequence[BoundCondition]) -> dict[RowChange, str]:
    """For each type of change the parameter of its statements.

    Rows are sorted, so that two processes that change the same rows cannot deadlock.
    """
    found: dict[RowChange, list[bytes]] = {}
    for one in bound:
        found.setdefault(one.change, []).append(one.values)
    return {change: f"[{b','.join(sorted(rows)).decode()}]" for change, rows in found.items()}
