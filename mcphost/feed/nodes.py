"""Which processes serve: each says every few seconds that it lives, and counts those that did.

The feed's thread says it, so that a process whose feed stands still does not count as living.
"""

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from mcphost.feed.models import Node

BEAT_SECONDS = 3.0
ALIVE = timedelta(seconds=15)
KEPT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A living process, as people see it."""

    name: str
    started_at: datetime
    seen_at: datetime
    draining: bool


class Heartbeat:
    """One process's row and what it knows of the others.

    A process that drains does not count: it takes no new calls.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """As at the start, and in a forked child, which is another process."""
        self._id = uuid4()
        self._alive = 1
        self._draining = False

    @property
    def id(self) -> UUID:
        """What this process is called from its start, or from its last `leave`."""
        return self._id

    def live(self) -> int:
        """How many processes serve, as of the last beat; this one at least. Reads no database."""
        return self._alive

    def drain(self) -> None:
        """Count no longer, from the next beat on."""
        self._draining = True

    def beat(self) -> None:
        """Say that this process lives, and count. Raises what the database raises."""
        with transaction.atomic():
            if not self._seen():
                Node.objects.create(
                    id=self._id,
                    name=f"{socket.gethostname()}:{os.getpid()}",
                    started_at=Now(),
                    seen_at=Now(),
                    draining=self._draining,
                )
                Node.objects.filter(seen_at__lt=Now() - KEPT).delete()
            self._alive = max(1, _living().filter(draining=False).count())

    def leave(self) -> None:
        """Take the row away: the others need not wait until it looks dead."""
        Node.objects.filter(id=self._id).delete()
        self._begin()

    def _seen(self) -> int:
        return Node.objects.filter(id=self._id).update(seen_at=Now(), draining=self._draining)


def rows() -> tuple[NodeRow, ...]:
    """The living processes, the oldest first."""
    return tuple(
        NodeRow(node.name, node.started_at, node.seen_at, node.draining) for node in _living()
    )


def lives(process: UUID) -> bool:
    """Whether a process of that id has lately said that it lives."""
    return _living().filter(id=process).exists()


def living() -> tuple[UUID, ...]:
    """The processes that have lately said that they live."""
    return tuple(_living().values_list("id", flat=True))


def _living() -> QuerySet[Node]:
    return Node.objects.filter(seen_at__gt=Now() - ALIVE)


heartbeat = Heartbeat()
live = heartbeat.live
os.register_at_fork(after_in_child=heartbeat._begin)
