"""Which process owns a claim, a call of a session, or a task. Only the owner writes to it.

Each row has its owner (a process, `feed.nodes`), an epoch, which counts how often it was taken, and
`taken_at`. A row without an owner, or whose owner is dead, may be taken by any process, in the next
epoch. What an owner writes is conditional on its epoch, so a process that was thought dead changes
nothing any more.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from mcphost.feed import nodes

NO_OWNER: Final = UUID(int=0)
"""The owner of a row that no process has."""
LEASE: Final = timedelta(seconds=15)
"""How long a row belongs to its owner without a heartbeat."""
LAPSED: Final = ExpressionWrapper(Q(taken_at__lte=Now() - LEASE), output_field=BooleanField())
"""Whether the lease is over."""
COLUMNS: Final[Mapping[str, str]] = {"owner": "uuid", "epoch": "bigint"}
"""The values of `owned`, with their PostgreSQL types (`conditions_sql.change`)."""


class SupersededError(Exception):
    """It is over, or another process owns it: this process must not go on with it."""


class Lease(NamedTuple):
    """A lease of a call or task by a process: the `epoch`th of this row."""

    id: UUID
    tenant: UUID
    owner: UUID
    epoch: int


def owned(owner: UUID, epoch: int) -> dict[str, Any]:
    """The values by which a condition recognizes the owner."""
    return {"owner": owner.hex, "epoch": epoch}


def is_mine(table: str) -> str:
    """SQL: the row of `table` is still that of the owner whose values are in `r`."""
    return f"{table}.owner = r.owner AND {table}.epoch = r.epoch"


def of_dead(process: UUID) -> Q:
    """Filter: rows whose owner is dead, as seen by `process`, which is alive."""
    if not nodes.can_judge():
        return Q(owner__in=())
    return Q(taken_at__lte=Now() - LEASE) & ~Q(owner__in=(NO_OWNER, process, *nodes.living()))


def free(process: UUID) -> Q:
    """Filter: rows that any process may take, as seen by `process`, which is alive."""
    return Q(owner=NO_OWNER) | of_dead(process)
