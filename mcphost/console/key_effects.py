"""Counts of what is in progress under a ring key, or for a tenant; and which processes know a
key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from mcphost.audit.open_calls import calls_of
from mcphost.calls import sessions
from mcphost.feed.nodes import NodeRow
from mcphost.sealing.tokens import PREFIX
from mcphost.serving.process.status import fact
from mcphost.tasks import listing as tasks
from mcphost.vault.listing import KeyRow
from mcphost.vault.states import KeyState

LINKS = (
    "Confirmation and callback links that were already sent will also stop working. They are not stored, so they "
    "cannot be counted."
)


@dataclass(frozen=True, slots=True)
class UnderKey:
    """Counts of what was sealed with a key, or for a tenant, and still goes on: calls that wait for a
    response, open sessions, and tasks that work."""

    calls: int = 0
    sessions: int = 0
    tasks: int = 0

    def __add__(self, addend: "UnderKey") -> "UnderKey":
        return UnderKey(
            self.calls + addend.calls, self.sessions + addend.sessions, self.tasks + addend.tasks
        )

    def __bool__(self) -> bool:
        return bool(self.calls or self.sessions or self.tasks)

    @property
    def parts(self) -> Sequence[str]:
        """Each count in words; none that are zero."""
        named = ((self.calls, "call"), (self.sessions, "session"), (self.tasks, "task"))
        return [_many(number, thing) for number, thing in named if number]

    def __str__(self) -> str:
        """In words, without the counts that are zero."""
        named = (
            (self.calls, "waiting call"),
            (self.sessions, "open session"),
            (self.tasks, "task"),
        )
        *beginning, last = [_many(number, thing) for number, thing in named if number] or [""]
        return f"{', '.join(beginning)} and {last}" if beginning else last


@dataclass(frozen=True, slots=True)
class KnownBy:
    """The living processes that seal with a key, and that open with it, by name; of how many."""

    sealing: Sequence[str]
    opening: Sequence[str]
    processes: int

    def __str__(self) -> str:
        plural = "" if self.processes == 1 else "es"
        return f"{len(self.opening)} of {self.processes} process{plural}"


def under_key(row: KeyRow) -> UnderKey:
    """Count what goes on under a key. A session counts for the key that sealed when it began."""
    if row.state in (KeyState.RETIRED, KeyState.DESTROYED):
        return UnderKey()
    begun = 0
    if row.sealed_from is not None:
        begun = sessions.count_open(since=row.sealed_from, until=row.sealed_until)
    return UnderKey(row.in_flight, begun, tasks.count_sealed(f"{PREFIX}{row.id}."))


def under_key_of_tenant(tenant: UUID, now: datetime) -> UnderKey:
    """Count what goes on in a tenant, under any key."""
    longest = timedelta(seconds=settings.MCPHOST_MAX_ANSWER_SECONDS)
    return UnderKey(
        calls_of(tenant, now, longest),
        sessions.count_open(tenant),
        tasks.count_sealed(tenant=tenant),
    )


def known_by(key: str, processes: Sequence[NodeRow]) -> KnownBy:
    """Which of the living processes know a key. One of an earlier version names only the key with
    which it seals."""
    sealing = [process.name for process in processes if fact(process, "key") == key]
    opening = [
        process.name for process in processes if process.name in sealing or key in _keys(process)
    ]
    return KnownBy(sealing, opening, len(processes))


def _keys(process: NodeRow) -> Sequence[object]:
    keys = fact(process, "keys")
    return keys if isinstance(keys, list) else ()


def _many(number: int, thing: str) -> str:
    return f"1 {thing}" if number == 1 else f"{number} {thing}s"
