"""Conditions of a submission: changes of rows of a higher package, and what follows from them.

The change, its effects and the records are committed together, or nothing of them is. The writer
knows nothing about such rows: the caller provides the SQL, statements that each work for a whole
batch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcphost.audit.writer.rows import PreparedRow, json_bytes

SQLITE, POSTGRESQL = "sqlite", "postgresql"

Steps = Mapping[str, tuple[str, ...]]
"""Statements by database vendor, to be executed in turn. Each takes one parameter, a JSON array of
rows. On PostgreSQL all are put into one `WITH`, the first under the name of its change or effect
and the number 0, and so on."""


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """Rows that are written if a condition takes hold, of many conditions at once.

    On SQLite the statements get only the rows of conditions that took hold. On PostgreSQL they get
    all, each with its `nonce`, and must choose those that are in `held`. `committed` is called
    after the commit, in the writer's thread; it must be quick and must not use the database.

    PostgreSQL executes effects in no fixed order: they must not wait for locks of one another.
    """

    name: str
    steps: Steps
    committed: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowChange:
    """One type of change, for many rows at once, as SQL by database vendor.

    Every step of `make` returns the nonces of the rows that it changed, and changes only rows that
    the step before it returned. The condition takes hold if the last step returns its nonce. What
    a step changed is not undone: it must be right even if a later step changes nothing. `made`
    returns the nonces of changes that were made before; it is used after a connection was lost
    during a commit. It is None if `make` may be repeated. `reads`: the change only reads.
    """

    name: str
    make: Steps
    made: Mapping[str, str] | None = None
    reads: bool = False


class Values(NamedTuple):
    """The values of one condition as JSON: those of its change, with the nonce, and the rows of its
    effects."""

    change: Mapping[str, Any]
    effects: Mapping[Effect, Sequence[Mapping[str, Any]]] = {}


@dataclass(frozen=True, slots=True)
class Condition:
    """One change that a submission depends on.

    `nonce` is a text chosen by the caller, unique among the conditions of a batch. `values` is
    called in the writer's thread, where it does not delay an event loop, and may read the database,
    like a payload's cipher.
    """

    change: RowChange
    nonce: str
    values: Callable[[], Values]


@dataclass(slots=True)
class BoundCondition:
    """A condition ready for a database: its values as JSON, and the rows that depend on it.

    `effects` has the rows of each effect, as JSON objects separated by commas.
    """

    nonce: str
    change: RowChange
    values: bytes
    rows: list[PreparedRow]
    effects: Mapping[Effect, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, condition: Condition, rows: list[PreparedRow]) -> "BoundCondition":
        """Encode the values of a condition. In the writer's thread."""
        nonce = condition.nonce
        values = condition.values()
        effects = {
            effect: b",".join(json_bytes({"nonce": nonce, **row}) for row in of_effect)
            for effect, of_effect in values.effects.items()
            if of_effect
        }
        return cls(nonce, condition.change, json_bytes(values.change), rows, effects)

    def size(self) -> int:
        """Bytes of values and payloads."""
        sealed = (row.sealed for row in self.rows if row.sealed is not None)
        effects = sum(map(len, self.effects.values()))
        return len(self.values) + effects + sum(len(payload.ciphertext) for payload in sealed)


def by_change(bound: Sequence[BoundCondition]) -> dict[RowChange, list[BoundCondition]]:
    """The conditions of each type of change, in a fixed order.

    Rows are sorted by their JSON, so that two processes that change the same rows cannot deadlock;
    changes by their name, so that there are few different statements.
    """
    groups: dict[RowChange, list[BoundCondition]] = {}
    for condition in sorted(bound, key=lambda condition: (condition.change.name, condition.values)):
        groups.setdefault(condition.change, []).append(condition)
    return groups


def by_effect(bound: Sequence[BoundCondition]) -> dict[Effect, list[bytes]]:
    """The rows of each effect, in a fixed order."""
    rows_by_effect: dict[Effect, list[bytes]] = {}
    for condition in bound:
        for effect, rows in condition.effects.items():
            rows_by_effect.setdefault(effect, []).append(rows)
    return {
        effect: rows_by_effect[effect]
        for effect in sorted(rows_by_effect, key=lambda effect: effect.name)
    }


def array(rows: Sequence[bytes]) -> str:
    """A JSON array of encoded values."""
    return f"[{b','.join(rows).decode()}]"
