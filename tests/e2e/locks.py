"""Hold a node's record writer up in PostgreSQL, by a lock that its statement must wait for."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.e2e.handmade_calls import wait_until

TABLE = "calls_openquestion"
"""Each commit that asks, takes an answer in or ends a call writes to it; reading needs no lock."""
LOCK = f"LOCK TABLE {TABLE} IN SHARE MODE"
COMMIT = "WITH call_"
"""How the writer's statements begin that change calls."""
_WAITING = """
SELECT DISTINCT activity.pid FROM pg_stat_activity AS activity JOIN pg_locks USING (pid)
WHERE datname = current_database() AND relation = %s::regclass AND NOT granted
AND starts_with(query, %s)
"""


@dataclass(frozen=True)
class Watch:
    """A connection beside those of the nodes; it is in no transaction."""

    link: psycopg.Connection[Any]

    def rows(self, query: Any, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.link.execute(query, parameters).fetchall()

    def waits(self, statement: str = COMMIT) -> int:
        """Wait until just one statement that begins like this waits for the lock; its backend."""
        wait_until(lambda: len(self._waiting(statement)) == 1)
        (pid,) = self._waiting(statement)
        return pid

    def _waiting(self, statement: str) -> list[int]:
        return [pid for (pid,) in self.rows(_WAITING, TABLE, statement)]

    def terminate(self, pid: int) -> None:
        self.rows("SELECT pg_terminate_backend(%s)", pid)
        self.is_gone(pid)

    def is_gone(self, pid: int) -> None:
        wait_until(lambda: not self.rows("SELECT FROM pg_stat_activity WHERE pid = %s", pid))


@contextmanager
def watching(url: str) -> Iterator[Watch]:
    with closing(psycopg.connect(url, autocommit=True)) as link:
        yield Watch(link)


@dataclass(frozen=True)
class Hold:
    """May have the lock: nothing is written to TABLE meanwhile."""

    link: psycopg.Connection[Any]

    def take(self) -> None:
        self.link.execute(LOCK)

    def release(self) -> None:
        self.link.rollback()


@contextmanager
def holding(url: str) -> Iterator[Hold]:
    with closing(psycopg.connect(url)) as link:
        yield Hold(link)
