"""The serving processes: their heartbeats, how many are alive, and the functions that each has
loaded.

The change log's thread writes it, so that a process that no longer reads the change log does not
count as living.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.feed.models import Node, NodeFunctions

BEAT_SECONDS = 3.0
ALIVE = timedelta(seconds=15)
KEPT = timedelta(hours=1)
STEADY_SECONDS = ALIVE.total_seconds() / 2
"""After a longer pause between two of its own heartbeats a process cannot judge the others: perhaps
none of them could write a heartbeat."""
ABSENT_SECONDS = 30.0
"""How long after the last living process with a function has ended, after this one has started, or
after an outage of the database, another one may still come: the time of a restart."""

Declared = Mapping[str, str]
"""What the code of functions declares, by reference. The texts are opaque here."""


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A process, for display. `age` is how long ago its last heartbeat was, by the database's clock;
    `facts` is what it reported with it. `functions` are those that it has loaded; None if it has not
    declared them, as far as this process knows."""

    name: str
    started_at: datetime
    seen_at: datetime
    draining: bool
    age: timedelta
    facts: Mapping[str, Any]
    functions: Declared | None = None

    @property
    def alive(self) -> bool:
        """Whether its heartbeat is recent."""
        return self.age < ALIVE


class Heartbeat:
    """One process's row, and its count of the others.

    A draining process does not count: it takes no new calls. `clock` counts seconds, compared only
    with itself. `drains` returns whether this process takes no new calls, because it is draining or a
    worker; `overloaded` whether others should send none here. `report` returns a few facts for display,
    as JSON; `functions` the functions that this process has loaded.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.started_at = timezone.now()
        self.drains: Callable[[], bool] = bool
        self.overloaded: Callable[[], bool] = bool
        self.report: Callable[[], Mapping[str, Any]] = dict
        self.functions: Callable[[], Declared] = dict
        self._function_callbacks: list[Callable[[], None]] = []
        self._begin()

    def _begin(self) -> None:
        """Reset the state, with a new id: at the start, after `unregister`, and in a forked child."""
        self._id = uuid4()
        self._beating = threading.Lock()
        self._alive = 1
        self._free = 0
        self._beaten_at: float | None = None
        self._steady_since = 0.0
        self._other_ids: frozenset[UUID] | None = None
        self._some_undeclared = False
        self._loaded_by: Mapping[UUID, Declared] = {}
        self._loaded: Declared | None = None
        self._must_redeclare = False
        self._loaded_by_others: Declared = {}
        self._elsewhere: dict[str, tuple[str, float]] = {}

    @property
    def id(self) -> UUID:
        """The id of this process since its start, or since its last `unregister`."""
        return self._id

    def live(self) -> int:
        """How many processes serve, as of the last heartbeat; at least this one. No query."""
        return self._alive

    @property
    def draining(self) -> bool:
        """Whether this process takes no new calls."""
        return self.drains()

    def free(self) -> int:
        """How many other processes serve and are not overloaded, as of the last heartbeat."""
        return self._free

    def on_functions(self, callback: Callable[[], None]) -> None:
        """Call `callback`, in the thread of the change log, when other processes have other functions
        than before."""
        self._function_callbacks.append(callback)

    def elsewhere(self, function: str) -> str | None:
        """What a function declares that another process has loaded, as of the last heartbeat.

        Until ABSENT_SECONDS after the last such process has ended. None if there is none. No query.
        """
        declared = self._elsewhere.get(function)
        return None if declared is None else declared[0]

    def loaded_by(self, process: UUID) -> Declared | None:
        """The functions of a process; None if it has not declared them, as of the last heartbeat."""
        return self._own_functions() if process == self._id else self._loaded_by.get(process)

    def redeclare(self) -> None:
        """Declare this process's functions anew with its next heartbeat: it has loaded others."""
        self._loaded, self._must_redeclare = None, True

    def may_come(self, function: str) -> bool:
        """Whether a process with this function lives, or may come soon, as far as this one knows.

        A process of a version that does not declare its functions may have any.
        """
        if self._beaten_at is None:  # the others are known from the first heartbeat on
            return not settings.MCPHOST_ALONE
        if self._some_undeclared or function in self._elsewhere:
            return True
        return self._clock() - self._steady_since < ABSENT_SECONDS

    def can_judge(self) -> bool:
        """Whether a process without a recent heartbeat may be considered dead.

        While the database is unreachable, no process can write heartbeats. So this process must
        have written its own, without a long pause, for ALIVE. A process that never writes any,
        because it is the only one or does not serve, judges by the rows alone.
        """
        if self._beaten_at is None:
            return True
        now = self._clock()
        beats = now - self._beaten_at <= STEADY_SECONDS
        return beats and now - self._steady_since >= ALIVE.total_seconds()

    def beat(self) -> None:
        """Write a heartbeat and count the living processes, on any thread. Raises the database's errors."""
        with self._beating:
            overloaded, facts = self.overloaded(), self._reported()
            with transaction.atomic():
                own_rows = Node.objects.filter(id=self._id)
                fields = {"draining": self.drains(), "overloaded": overloaded, "facts": facts}
                if not own_rows.update(seen_at=Now(), **fields):
                    node = Node.objects.create(
                        id=self._id, name=_name(), started_at=Now(), seen_at=Now(), **fields
                    )
                    NodeFunctions.objects.create(node=node, declared=dict(self._own_functions()))
                    Node.objects.filter(seen_at__lt=Now() - KEPT).delete()
                    # A process of the version before deletes its rows without their functions.
                    NodeFunctions.objects.exclude(node__in=Node.objects.values("id")).delete()
                elif self._must_redeclare:
                    NodeFunctions.objects.filter(node=self._id).update(
                        declared=dict(self._own_functions())
                    )
                living = tuple(_living().values_list("id", "draining", "overloaded"))
            self._must_redeclare = False
            serving = {id: overloaded for id, draining, overloaded in living if not draining}
            self._alive = max(1, len(serving))
            serving.pop(self._id, None)
            self._free = len(serving) - sum(serving.values())
            now = self._clock()
            if self._beaten_at is None or now - self._beaten_at > STEADY_SECONDS:
                self._steady_since = now
            self._beaten_at = now
            self._read_functions(frozenset(id for id, _, _ in living) - {self._id}, now)

    def _read_functions(self, other_ids: frozenset[UUID], now: float) -> None:
        """Read what the other processes have loaded, if these are not those of the last heartbeat."""
        before = {name: declared for name, (declared, _) in self._elsewhere.items()}
        if other_ids != self._other_ids:
            self._loaded_by = _functions_of(other_ids)
            self._some_undeclared = len(self._loaded_by) < len(other_ids)
            # Where they declare a function differently, the process that started last counts.
            loaded = self._loaded_by.values()
            self._loaded_by_others = {
                name: declaration for functions in loaded for name, declaration in functions.items()
            }
            self._other_ids = other_ids
        for name, declared in self._loaded_by_others.items():
            self._elsewhere[name] = declared, now
        for name, (_, seen_at) in tuple(self._elsewhere.items()):
            # While the database is unreachable, no process can write heartbeats.
            if now - max(seen_at, self._steady_since) > ABSENT_SECONDS:
                del self._elsewhere[name]
        if before != {name: declared for name, (declared, _) in self._elsewhere.items()}:
            log.info("other processes have other functions than before: %d", len(self._elsewhere))
            for callback in self._function_callbacks:
                try:
                    callback()
                except Exception:
                    log.exception("a subscriber of functions raised")

    def _own_functions(self) -> Declared:
        if self._loaded is None:
            self._loaded = self.functions()
        return self._loaded

    def _reported(self) -> Mapping[str, Any]:
        try:
            return self.report()
        except Exception:
            log.exception("a process could not report its facts")
            return {}

    def unregister(self) -> None:
        """Delete the row, so that the others need not wait until it expires; take a new id."""
        Node.objects.filter(id=self._id).delete()
        self._begin()


def _functions_of(processes: Collection[UUID]) -> dict[UUID, Declared]:
    """What these processes have loaded, in the order of their starts; without those that do not say."""
    rows = NodeFunctions.objects.filter(node__in=processes).order_by("node__started_at", "node")
    return {node: _texts(declared) for node, declared in rows.values_list("node", "declared")}


def _texts(declared: object) -> Declared:
    """The declarations of a row; without what no process of this version writes."""
    if not isinstance(declared, dict):
        return {}
    return {
        name: declaration for name, declaration in declared.items() if isinstance(declaration, str)
    }


def rows() -> tuple[NodeRow, ...]:
    """The processes of the last hour that have not left, the oldest first; also dead ones."""
    nodes = Node.objects.filter(seen_at__gt=Now() - KEPT).annotate(now=Now())
    return tuple(
        NodeRow(
            node.name,
            node.started_at,
            node.seen_at,
            node.draining,
            node.now - node.seen_at,
            node.facts or {},
            heartbeat.loaded_by(node.id),
        )
        for node in nodes
    )


def own(now: datetime) -> NodeRow:
    """This process as it is now, with what it reports. No query."""
    functions = heartbeat.loaded_by(heartbeat.id)
    started, facts = heartbeat.started_at, heartbeat.report()
    return NodeRow(_name(), started, now, heartbeat.draining, timedelta(), facts, functions)


def lives(process: UUID) -> bool:
    """Whether the process with that id has a recent heartbeat."""
    return _living().filter(id=process).exists()


def living() -> tuple[UUID, ...]:
    """The ids of the processes with a recent heartbeat."""
    return tuple(_living().values_list("id", flat=True))


def names() -> Mapping[UUID, str]:
    """The names of this process and of those of the last hour, by id; of a dead one with `(dead)`
    behind it."""
    alive = frozenset(living())
    id_names = Node.objects.values_list("id", "name")
    names_by_id = {id: name if id in alive else f"{name} (dead)" for id, name in id_names}
    return {heartbeat.id: _name(), **names_by_id}


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _living() -> QuerySet[Node]:
    return Node.objects.filter(seen_at__gt=Now() - ALIVE)


heartbeat = Heartbeat()
live = heartbeat.live
can_judge = heartbeat.can_judge
os.register_at_fork(after_in_child=heartbeat._begin)
