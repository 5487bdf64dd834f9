"""Ports in memory, for trials and tests: one process, nothing persistent."""

import json
from collections.abc import Collection
from typing import Any

from mcphost.runtime.ports import Stored, StoreRefusedError


class MemoryStore:
    """Implements `ports.Store`. Values are copied, as by a database."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, int]] = {}
        self._writes = 0

    async def get(self, key: str) -> Stored:
        written, revision = self._kept.get(key, ("null", 0))
        return Stored(json.loads(written), revision)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        try:
            written = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise StoreRefusedError(f"Only JSON can be stored: {error}") from None
        if self._kept.get(key, ("", 0))[1] != revision:
            return False
        self._writes += 1
        self._kept[key] = (written, self._writes)
        return True

    async def delete(self, key: str, revision: int) -> bool:
        if self._kept.get(key, ("", 0))[1] != revision:
            return False
        self._kept.pop(key, None)
        return True


class MemoryLinks:
    """Implements `ports.Links`. Keys that are not in `done` from the beginning are never done."""

    def __init__(self, done: Collection[str] = ()) -> None:
        self._done = frozenset(done)

    def page(self, key: str) -> str:
        return f"https://mcphost.example/done/{key}"

    def callback(self, key: str) -> str:
        return f"https://mcphost.example/callback/{key}"

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        return key in self._done
