"""Time, random values and links that are the same in every round of a call.

Each value is identified by the branch that draws it and by the number of its draw there. Times are
recorded one by one; all random values come from one recorded seed.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from random import Random
from threading import Lock
from urllib.parse import unquote
from uuid import UUID

from mcphost.runtime.history import MISSING, History
from mcphost.runtime.ports import LinkRefusedError, Ports

SEED = "seed"
SEED_BYTES = 16
PAGE, CALLBACK = "link", "callback"
MAX_ENCODINGS = 3
"""How often an address inside another one may be percent-encoded, plus one."""
NAMES = {PAGE: "page", CALLBACK: "callback"}

_lock = Lock()


class Draws:
    """The values that one round draws. May be used from any thread."""

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

    def page(self, key: str) -> str:
        """Return the address of a page. It is recorded, because a new one is made each time."""
        return self._link(PAGE, CALLBACK, key, self._ports.links.page)

    def callback(self, key: str) -> str:
        """Return the address of a callback. It is recorded, too."""
        return self._link(CALLBACK, PAGE, key, self._ports.links.callback)

    def leads_to(self, url: str, key: str) -> bool:
        """Whether an address is the recorded page or callback of a key, or contains it, also
        percent-encoded."""
        links = [self._history.recorded(f"{kind} {key}") for kind in (PAGE, CALLBACK)]
        for _ in range(MAX_ENCODINGS):
            if any(link is not MISSING and link in url for link in links):
                return True
            url = unquote(url)
        return False

    def _link(self, kind: str, other_kind: str, key: str, make: Callable[[str], str]) -> str:
        """A key is for a page or for a callback, never both, so that a machine's callback does not
        pass for the confirmation of a person."""
        with _lock:
            if self._history.recorded(f"{other_kind} {key}") is not MISSING:
                raise LinkRefusedError(
                    f"The key {key!r} has a {NAMES[other_kind]} already; use another one."
                )
            written: str = self._history.recorded(f"{kind} {key}")
            if written is MISSING:
                written = make(key)
                self._history.record(f"{kind} {key}", written)
            return written

    def _random(self, kind: str, path: str) -> bytes:
        with _lock:
            seed: str = self._history.recorded(SEED)
            if seed is MISSING:
                seed = self._ports.randomness.bytes(SEED_BYTES).hex()
                self._history.record(SEED, seed)
            return sha256(f"{seed} {self._next(kind, path)}".encode()).digest()

    def _next(self, kind: str, path: str) -> str:
        name = f"{kind} {path}".rstrip()
        self._drawn[name] += 1
        return f"{name} {self._drawn[name]}"
