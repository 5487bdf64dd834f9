"""On what a submission of records may depend: a change of rows of a room above this one.

The change and the records land in one commit, or neither does. The writer knows nothing of such rows:
who submits brings the SQL, of which one statement makes the changes of a whole batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcphost.audit.rows import Row

SQLITE, POSTGRESQL = "sqlite", "postgresql"


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One sort of change, for many rows at once, in the SQL of each database (by its vendor).

    Both statements take one parameter, a JSON array of the rows of conditions, and return the
    `nonce` of those rows: `make` of the changes that it made, `made` of those that were made before,
    which is asked when a connection was lost in a commit. On PostgreSQL `make` is put into a
    `WITH`.
    """

    make: Mapping[str, str]
    made: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Condition:
    """One change that a submission depends on.

    `nonce` is a text of the submitter's, unlike that of any other condition of one batch. `row`
    gives the change's values as JSON with the nonce among them; it is called in the writer's thread,
    where what it costs delays no event loop, and may read the database, like a payload's cipher.
    """

    change: Change
    nonce: str
    row: Callable[[], Mapping[str, Any]]


class Bound(NamedTuple):
    """A condition ready for a database: its row as JSON, and the records that land if it holds."""

    nonce: str
    change: Change
    values: bytes
    rows: list[Row]


def by_change(bound: Sequence[Bound]) -> dict[Change, str]:
    """For each sort of change the one parameter of its statements.

    The rows are sorted, so that two processes which change the same ones wait for one another, and
    never both.
    """
    found: dict[Change, list[bytes]] = {}
    for one in bound:
        found.setdefault(one.change, []).append(one.values)
    return {change: f"[{b','.join(sorted(rows)).decode()}]" for change, rows in found.items()}
