"""The time and random things, the same in every round of a call.

Each is told apart by the branch that draws it and by which of its draws it is. Times are recorded
one by one; all that is random comes from one recorded seed.
"""

from collections import Counter
from datetime import datetime
from hashlib import sha256
from random import Random
from threading import Lock
from uuid import UUID

from mcphost.runtime.history import MISSING, History
from mcphost.runtime.ports import Ports

SEED = "seed"
SEED_BYTES = 16

_lock = Lock()


class Draws:
    """What one round draws. May be used from any thread."""

    __slots__ = ("_drawn", "_history", "_ports")

    def __init__(self, history: History, ports: Ports) -> None:
        self._history = history
        self._ports = ports
        self._drawn: Counter[str] = Counter()

    def now(self, path: str) -> datetime:
        with _lock:
            id = self._next("now", path)
            written = self._history.recorded(id)
            if written is not MISSING:
                return datetime.fromisoformat(written)
            now = self._ports.clock.now()
            self._history.record(id, now.isoformat())
            return now

    def uuid(self, path: str) -> UUID:
        return UUID(bytes=self._random("uuid", path)[:16], version=4)

    def random(self, path: str) -> Random:
        return Random(self._random("random", path))  # noqa: S311 - said to be no secret

    def link(self, key: str) -> str:
        """The address of a link, which is recorded because it is another each time that it is made."""
        with _lock:
            written: str = self._history.recorded(f"link {key}")
            if written is MISSING:
                written = self._ports.links.url(key)
                self._history.record(f"link {key}", written)
            return written

    def _random(self, sort: str, path: str) -> bytes:
        with _lock:
            return sha256(f"{self._seed()} {self._next(sort, path)}".encode()).digest()

    def _seed(self) -> str:
        seed: str = self._history.recorded(SEED)
        if seed is MISSING:
            seed = self._ports.randomness.bytes(SEED_BYTES).hex()
            self._history.record(SEED, seed)
        return seed

    def _next(self, sort: str, path: str) -> str:
        name = f"{sort} {path}".rstrip()
        self._drawn[name] += 1
        return f"{name} {self._drawn[name]}"
