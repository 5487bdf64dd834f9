"""What requests cost the server: commits, hops to database threads, SQL statements that read and write.

Statements are counted in the drivers, on the connections of all threads but those that work in the
background whether there are requests or not.
"""

import asyncio
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from typing import Any

import psycopg
import pytest
from django.db.backends.signals import connection_created

from mcphost.audit.writer.writer import Writer
from mcphost.serving import database

BACKGROUND = (
    "MainThread",
    "mcphost-feed",
    "mcphost-housekeeping",
    "mcphost-key",
    "mcphost-summaries",
)
"""Threads whose statements no request causes: the tests', the change log's, the periodic ones."""
QUIET_PASSES = 50
"""A server is quiet after so many passes of the event loop without work in any thread."""
_WRITES = re.compile(r"\b(INSERT INTO|UPDATE \S+ SET|DELETE FROM)\b", re.IGNORECASE)
_BY_WORD = {"SELECT": "selects", "INSERT": "writes", "UPDATE": "writes", "DELETE": "writes"}
_SET_UP = "set_config("
"""In Django's statements for a new connection to PostgreSQL. In tests each hop opens one."""


@dataclass
class Cost:
    """What one step costs. A commit is a transaction that has written, or a write outside one."""

    commits: int = 0
    hops: int = 0
    selects: int = 0
    writes: int = 0

    def within(self, limit: "Cost") -> bool:
        return all(getattr(self, one.name) <= getattr(limit, one.name) for one in fields(self))

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class _Transaction:
    """The open transaction of one connection."""

    __slots__ = ("begun", "dirty")

    def __init__(self) -> None:
        self.begun = self.dirty = False


class Costs:
    """Counts the cost of each step; `table` shows them."""

    def __init__(self) -> None:
        self.steps: dict[str, Cost] = {}
        self._now = Cost()
        self._lock = threading.Lock()
        self._working = 0

    @asynccontextmanager
    async def step(self, name: str) -> AsyncIterator[None]:
        """Count what happens inside the block, and what follows from it without a further request."""
        await self.quiet()
        self._now = self.steps[name] = Cost()
        yield
        await self.quiet()
        self._now = Cost()

    async def quiet(self) -> None:
        """Wait until no thread works for a request and the event loop has nothing left to do."""
        left = QUIET_PASSES
        async with asyncio.timeout(10):
            while left:
                await asyncio.sleep(0)
                left = QUIET_PASSES if self._working else left - 1

    @property
    def total(self) -> Cost:
        return sum(self.steps.values(), Cost())

    def table(self) -> str:
        """The costs of all steps, as a table for people."""
        names = [one.name for one in fields(Cost)]
        rows = [("", *names)]
        for step, cost in (*self.steps.items(), ("in all", self.total)):
            rows.append((step, *(str(getattr(cost, name)) for name in names)))
        return "\n" + "\n".join(
            f"{row[0]:32}" + "".join(f"{n:>9}" for n in row[1:]) for row in rows
        )

    def statement(self, sql: str, transaction: _Transaction) -> None:
        """Count a statement of a connection. In the thread that executes it."""
        word = sql.lstrip("( \n").split(None, 1)[0].upper() if sql.strip() else ""
        if word == "BEGIN":
            transaction.begun, transaction.dirty = True, False
        elif word == "COMMIT":
            self.committed(transaction)
        elif word == "ROLLBACK":
            transaction.begun = transaction.dirty = False
        elif _SET_UP not in sql and (kind := _kind(word, sql)):
            self._count(kind)
            if kind == "writes":
                transaction.dirty = True
                if not transaction.begun:
                    self.committed(transaction)

    def committed(self, transaction: _Transaction) -> None:
        if transaction.dirty:
            self._count("commits")
        transaction.begun = transaction.dirty = False

    async def hop(self, *args: Any, **kwargs: Any) -> Any:
        self._now.hops += 1
        self._working += 1
        try:
            return await _hop(*args, **kwargs)
        finally:
            self._working -= 1

    def submitted(self, future: "asyncio.Future[Any]") -> None:
        self._working += 1
        future.add_done_callback(self._written)

    def _written(self, _: "asyncio.Future[Any]") -> None:
        self._working -= 1

    def _count(self, what: str) -> None:
        if not threading.current_thread().name.startswith(BACKGROUND):
            with self._lock:
                setattr(self._now, what, getattr(self._now, what) + 1)


_hop = database._hop


def _kind(word: str, sql: str) -> str:
    """ "selects" or "writes"; empty for a statement that is neither."""
    if word == "WITH":
        return "writes" if _WRITES.search(sql) else "selects"
    return _BY_WORD.get(word, "")


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Costs]:
    """Count the costs of steps inside the context. Connections that are open already do not count."""
    costs = Costs()
    submit = Writer.submit

    def noting(writer: Writer, *args: Any) -> "asyncio.Future[Any]":
        future = submit(writer, *args)
        costs.submitted(future)
        return future

    def opened(sender: Any, connection: Any, **_: Any) -> None:
        if isinstance(connection.connection, sqlite3.Connection):
            transaction = _Transaction()
            connection.connection.set_trace_callback(lambda sql: costs.statement(sql, transaction))

    monkeypatch.setattr(Writer, "submit", noting)
    monkeypatch.setattr(database, "_hop", costs.hop)
    _watch_postgresql(costs, monkeypatch)
    connection_created.connect(opened)
    try:
        yield costs
    finally:
        connection_created.disconnect(opened)


def _watch_postgresql(costs: Costs, monkeypatch: pytest.MonkeyPatch) -> None:
    execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit
    of: dict[int, _Transaction] = {}

    def executing(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        transaction = of.setdefault(id(cursor.connection), _Transaction())
        transaction.begun = not cursor.connection.autocommit
        done = execute(cursor, query, *args, **kwargs)
        costs.statement(str(query), transaction)
        return done

    def committing(connection: Any) -> None:
        commit(connection)
        costs.committed(of.setdefault(id(connection), _Transaction()))

    monkeypatch.setattr(psycopg.Cursor, "execute", executing)
    monkeypatch.setattr(psycopg.Connection, "commit", committing)
