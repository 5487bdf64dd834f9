"""One run of a scenario: the clients that it has, and the transcript that it leaves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from uuid import UUID

import orjson
import pytest
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.audit.writer.writer import writer
from mcphost.catalogue import services
from mcphost.catalogue.models import Primitive
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as session_calls
from mcphost.serving.legacy import stream as session_streams
from mcphost.serving.revocation import presences
from mcphost.vault.models import RingKey
from tests.cast import ACTOR, Cast
from tests.equivalence.clock import StoppedClock
from tests.equivalence.naming import Names
from tests.equivalence.observers import (
    Exchanges,
    Json,
    LogLines,
    Metric,
    changes,
    entries,
    known,
    metrics,
)
from tests.legacy import Session, begin, calling
from tests.mcp import Exchange, Reply, headers_for, request
from tests.serving.legacy.callers import true

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
PATIENCE = 20
EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}


@dataclass
class Run:
    """A scenario sees the cast, and changes settings or the process with `patch`."""

    cast: Cast
    clock: StoppedClock
    settings: Settings
    patch: pytest.MonkeyPatch
    tools: ModuleType
    exchanges: Exchanges
    lines: LogLines = field(default_factory=LogLines)
    notes: list[Json] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    _entries: frozenset[UUID] = frozenset()
    _metrics: Mapping[str, Metric] = field(default_factory=dict)

    async def warm_up(self) -> None:
        for _ in range(2):
            reply = await self.call("text", {"text": "warm"})
            assert reply.status == 200, reply

    async def begin(self) -> None:
        self.exchanges.clear()
        self.lines.clear()
        self._entries = await in_database(known)
        self._metrics = metrics()

    async def transcript(self) -> Json:
        await true(lambda: not (session_streams.live or session_calls.under_way))
        self.exchanges.at_end = None
        await asyncio.to_thread(writer.stop, PATIENCE)
        await asyncio.sleep(0)  # the writer's callbacks run in the loop's next pass
        observed: Json = {
            "exchanges": self.exchanges.read(),
            "notes": self.notes,
            "records": await in_database(entries, self._entries),
            "metrics": changes(self._metrics, metrics()),
            "log": self.lines.read(),
        }
        named: Json = await in_database(self._named, observed)
        return {name: value for name, value in named.items() if value}

    def _named(self, observed: Json) -> Json:
        names = Names(self.cast)
        for key in RingKey.objects.values_list("id", flat=True):
            names.know(key, "ring key")
        for text, name in self.names.items():
            names.know(text, name)
        return names.replace(observed)  # type: ignore[no-any-return]

    def name(self, text: str, name: str) -> None:
        self.names[text] = name

    # Requests

    @asynccontextmanager
    async def posted(
        self,
        body: Any,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tenant: str = "acme",
        verb: str = "POST",
    ) -> AsyncIterator[Exchange]:
        wanted = {**headers_for(body, token), **(headers or {})}
        path = tenant if tenant.startswith("/") else f"/t/{tenant}/mcp"
        exchange = Exchange(path, {k: v for k, v in wanted.items() if v}, verb)
        exchange.write(body if isinstance(body, bytes) else orjson.dumps(body))
        yield exchange
        await exchange.done()

    async def post(self, body: Any, token: str | None = None, **fields: Any) -> Reply:
        async with self.posted(body, token, **fields) as exchange:
            pass
        return exchange.reply

    def begin_call(self, tool: str) -> Exchange:
        """Begin to call a tool of the stateless revision; the scenario ends the request."""
        body = called(tool)
        exchange = Exchange("/t/acme/mcp", headers_for(body, self.cast.owner.mcp_token))
        exchange.write(orjson.dumps(body))
        return exchange

    async def call(self, tool: str, arguments: Any = None, **extra: Any) -> Reply:
        return await self.post(called(tool, arguments, **extra), self.cast.owner.mcp_token)

    def client(self, revision: str) -> "Client":
        return Client(self, revision)

    # Events beside a call

    async def until_running(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.tools.running.wait()

    async def until_watched(self) -> None:
        await self.until_running()
        await true(lambda: bool(presences._by_credential))

    def release(self) -> None:
        self.clock.advance(0.25)
        self.tools.release.set()

    async def note_records(self, when: str) -> None:
        found = await in_database(entries, self._entries)
        self.notes.append({"when": when, "records": [one["action"] for one in found]})

    async def note_effects(self) -> None:
        self.notes.append({"the tools did": list(self.tools.did)})

    async def disable(self, name: str) -> None:
        def take_away() -> None:
            row = Primitive.objects.get(tenant=self.cast.acme.id, name=name)
            services.disable(row.pk, ACTOR)

        await in_database(take_away)

    async def count_records(self) -> int:
        return await in_database(Entry.objects.count) - len(self._entries)

    def count_at_end(self) -> None:
        """Note with each response how many records were committed when its last byte left."""
        self.exchanges.at_end = self.count_records


def called(tool: str, arguments: Any = None, **extra: Any) -> Json:
    """A `tools/call` of the stateless revision; `fields` are further params, others are `_meta`."""
    fields = {"name": tool, "arguments": arguments or {}, **extra.pop("fields", {})}
    return request("tools/call", fields, **extra)


class Client:
    """Calls tools in either era, so that scenarios need not tell them apart."""

    def __init__(self, run: Run, revision: str) -> None:
        self._run = run
        self.revision = revision
        self._session: Session | None = None

    async def ready(self) -> None:
        if self.revision != MODERN:
            token = self._run.cast.owner.mcp_token
            self._session = await begin("acme", token, self.revision, **EVERYTHING)
        await self._run.begin()

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    @asynccontextmanager
    async def begun(self, tool: str, arguments: Any = None, **meta: Any) -> AsyncIterator[Exchange]:
        if self._session is None:
            body = called(tool, arguments, capabilities=EVERYTHING, **meta)
            async with self._run.posted(body, self._run.cast.owner.mcp_token) as exchange:
                yield exchange
            return
        meta.pop("logLevel", None)
        exchange = self._session.exchange(calling(tool, arguments, **meta))
        yield exchange
        await exchange.done()

    async def call(self, tool: str, arguments: Any = None, **meta: Any) -> Reply:
        async with self.begun(tool, arguments, **meta) as exchange:
            pass
        return exchange.reply


Act = Callable[[Run], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """`act` is observed; before it, unless `cold`, everything that a call needs has been cached."""

    name: str
    act: Act
    cold: bool = False


@asynccontextmanager
async def listening(lines: LogLines) -> AsyncIterator[None]:
    root = logging.getLogger()
    root.addHandler(lines)
    try:
        yield
    finally:
        root.removeHandler(lines)


async def observe(scenario: Scenario, run: Run) -> Json:
    async with listening(run.lines):
        if not scenario.cold:
            await run.warm_up()
        await run.begin()
        await scenario.act(run)
        return await run.transcript()
