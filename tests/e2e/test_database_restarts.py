"""PostgreSQL restarts, stays away, and comes back under load of both eras, on two nodes."""

import asyncio
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from itertools import count, product
from typing import Any, LiteralString

import httpx2
import psycopg
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, TextContent

from mcphost.feed.nodes import ALIVE
from mcphost.identity import tokens
from tests.e2e import handmade_calls, raw
from tests.e2e.handmade_calls import PATIENT, Numbered, at, beside_effects, effects, wait_until
from tests.e2e.nodes import Service
from tests.e2e.postgresql import Postgres
from tests.e2e.processes import Server
from tests.e2e.raw import Reply
from tests.e2e.raw_sessions import begin, calling
from tests.e2e.sessions import Session

CALLS = 60
CLIENTS = 3
PATIENCE = 90
ERAS = ("auto", "legacy")
SHORT = 3.0
"""How long requests wait on the node whose database stays away for longer."""
HASTY = {"MCPHOST_DATABASE_WAIT_SECONDS": str(SHORT), "MCPHOST_STREAM_AFTER_SECONDS": "0.2"}

LEASE_SECONDS = ALIVE.total_seconds()
NOTE_TO_ADA = {"recipient": "Ada", "note": "hello"}
NOTE = raw.call("send_note", NOTE_TO_ADA)
ECHO = raw.call("echo", {"text": "a"})
UNKNOWN = tokens.new(secrets.token_bytes)
"""A token as it might be, which has to be looked for."""

_numbers = count(1)


@pytest.fixture
def patient(restarted: Service, cluster: Postgres) -> Service:
    return _with_first(restarted, cluster, PATIENT)


@pytest.fixture
def impatient(restarted: Service, cluster: Postgres) -> Service:
    return _with_first(restarted, cluster, HASTY)


def _with_first(service: Service, cluster: Postgres, ways: Mapping[str, str]) -> Service:
    if not cluster.lives():
        cluster.start()
    handmade_calls.settle(service, ways, service.first)
    return service


class Crowd:
    """Real clients of both eras, and how their calls ended."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self.over = asyncio.Event()
        self.moved = asyncio.Event()
        self.asked: list[int] = []
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []

    async def call_all(self) -> None:
        """60 calls of each client's era at once, of which a third asks twice; the others are plain
        ones, one after the other, until it is over."""
        async with asyncio.TaskGroup() as group:
            for number in range(CALLS * len(ERAS)):
                client = self._clients[number % len(self._clients)]
                asks = number // len(self._clients) % 3 == 0
                group.create_task(self._ask(client) if asks else self._note(client))

    async def _note(self, client: Client) -> None:
        while True:
            result = await self._call(client, "send_note", NOTE_TO_ADA)
            self.done["send_note"] += result is not None
            if result is None or self.over.is_set():
                return

    async def _ask(self, client: Client) -> None:
        number = next(_numbers)
        self.asked.append(number)
        call = _numbered(number)
        text = await self._call(client, call.asker.tool, call.asker.arguments)
        if text is not None:
            assert call.is_told_by(text), text
            self.done["interpret"] += 1

    async def _call(self, client: Client, tool: str, arguments: Mapping[str, Any]) -> str | None:
        try:
            result = await client.call_tool(tool, dict(arguments))
        except Exception as error:  # noqa: BLE001 - whatever a client raises is a call that failed
            self.failures.append(f"{tool}: {error!r}")
            return None
        block = result.content[0]
        assert isinstance(block, TextContent)
        if result.is_error:
            self.failures.append(f"{tool}: {block.text}")
            return None
        self.moved.set()
        return block.text

    async def has_moved(self) -> None:
        self.moved.clear()
        await self.moved.wait()


def _numbered(number: int) -> Numbered:
    return Numbered(number, (f"a{number}", f"b{number}"))


async def _answer(_: Any, params: Any) -> ElicitResult:
    key = params.message.removeprefix("A number for ").removesuffix("?")
    return ElicitResult(**_numbered(int(key[1:])).answer(key))


@asynccontextmanager
async def crowd(service: Service) -> AsyncIterator[Crowd]:
    servers = [at(service, service.first), at(service, service.second)]
    headers = {"Authorization": f"Bearer {service.server.token}"}
    limits = httpx2.Limits(max_connections=None)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(PATIENCE))
        clients = []
        for server, era, _ in product(servers, ERAS, range(CLIENTS)):
            http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE, limits=limits)
            await stack.enter_async_context(http)
            transport = streamable_http_client(server.url, http_client=http)
            client = Client(
                transport,
                mode=era,
                elicitation_callback=_answer,
                read_timeout_seconds=PATIENCE,
            )
            clients.append(await stack.enter_async_context(client))
        yield Crowd(clients)


class Book:
    """What the nodes' database says of the time from here on."""

    def __init__(self, service: Service) -> None:
        self._url = service.settings["DATABASE_URL"].replace("postgres:", "postgresql:", 1)
        self._since = self._ask("SELECT statement_timestamp()")[0][0]

    def entries(self) -> dict[tuple[str, str], int]:
        """How many entries there are of each action and outcome; none of a round is there twice."""
        rows = self._ask(
            "SELECT action, outcome, count(*), count(DISTINCT (call, round, facts->>'key')) "
            "FROM audit_entry WHERE at >= %s AND call IS NOT NULL GROUP BY 1, 2",
            self._since,
        )
        assert all(entries == rounds for *_, entries, rounds in rows), rows
        return {(action, outcome): entries for action, outcome, entries, _ in rows}

    def _ask(self, statement: LiteralString, *values: Any) -> list[Any]:
        with closing(psycopg.connect(self._url, autocommit=True)) as link:
            return link.execute(statement, values).fetchall()


def _all_is_recorded(book: Book, crowd: Crowd) -> None:
    asking, plain = len(crowd.asked), crowd.done["send_note"]
    assert book.entries() == {
        ("round.started", ""): 3 * asking + plain,
        ("round.finished", "input_required"): 2 * asking,
        ("round.finished", "complete"): asking + plain,
        ("question.asked", ""): 2 * asking,
        ("answer.received", "accept"): 2 * asking,
    }


def _nothing_ran_twice(service: Service, crowd: Crowd) -> None:
    ran = Counter(name for name, *_ in effects(service))
    wanted = [key for number in crowd.asked for key in _numbered(number).keys]
    assert {key: ran[key] for key in wanted} == dict.fromkeys(wanted, 1)


def becomes_ready(server: Server) -> bool:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if raw.send(server, "GET", "/readyz").status == 200:
            return True
        time.sleep(0.05)  # between looks at another process
    return False


async def test_a_database_restart_fails_no_call_and_runs_no_call_twice(
    cluster: Postgres, patient: Service
) -> None:
    book = Book(patient)
    async with crowd(patient) as calls:
        calling = asyncio.create_task(calls.call_all())
        await calls.has_moved()
        await asyncio.to_thread(cluster.restart, "immediate")
        await calls.has_moved()
        calls.over.set()
        await calling
    assert calls.failures == []
    assert calls.done["interpret"] == len(calls.asked)
    _nothing_ran_twice(patient, calls)
    _all_is_recorded(book, calls)


def is_told_to_come_back(reply: Reply, status: int) -> None:
    error = reply.message["error"]
    assert reply.status == status, reply
    assert error["data"]["retryAfter"] == int(reply.headers["retry-after"]), reply


def is_unready(server: Server) -> bool:
    return raw.send(server, "GET", "/readyz").status == 503


@contextmanager
def _unreachable(cluster: Postgres, mode: str) -> Iterator[None]:
    cluster.stop(mode)
    try:
        yield
    finally:
        cluster.start()


@contextmanager
def _pausing(service: Service) -> Iterator[Callable[[], None]]:
    pause, paused = beside_effects(service, ".pause"), beside_effects(service, ".paused")
    pause.touch()
    try:
        yield lambda: pause.unlink(missing_ok=True)
    finally:
        pause.unlink(missing_ok=True)
        paused.unlink(missing_ok=True)


async def test_a_database_outage_without_heartbeats_causes_no_takeover(
    cluster: Postgres, patient: Service
) -> None:
    here, there = at(patient, patient.first), at(patient, patient.second)
    number = next(_numbers)
    program = [
        ["ask", f"a{number}"],
        ["step", f"a{number}", 1],
        ["pause"],
        ["step", f"b{number}", 1],
    ]
    async with asyncio.timeout(PATIENCE), httpx2.AsyncClient(timeout=PATIENCE) as http:
        session = await Session.begun(http, here)
        with _pausing(patient) as go_on:
            async with session.calling(here, "interpret", {"program": program}) as stream:
                question, last_id = await stream.question(), stream.last_id
                await session.answer(there, question, handmade_calls.accept(number=1))
                await asyncio.to_thread(
                    handmade_calls.wait_until, beside_effects(patient, ".paused").exists
                )
                with _unreachable(cluster, "immediate"):
                    await asyncio.sleep(
                        LEASE_SECONDS + 1
                    )  # what is tested is that this is no death
                async with session.resuming(there, last_id) as seen:
                    go_on()
                    assert await seen.text() == await stream.text()
    ran = Counter(name for name, *_ in effects(patient))
    assert (ran[f"a{number}"], ran[f"b{number}"]) == (1, 1)


def test_a_long_database_outage_gives_timely_errors_and_processes_recover(
    cluster: Postgres, impatient: Service
) -> None:
    here, there = at(impatient, impatient.first), at(impatient, impatient.second)
    session = begin(here, "2025-11-25")
    assert session.at(there.port).ask("ping") == {}  # who calls is known to both
    pausing = calling("interpret", 7, program=[["pause"]])
    with (
        session.stream() as standing,
        _pausing(impatient) as go_on,
        session.stream(pausing) as begun,
    ):
        wait_until(beside_effects(impatient, ".paused").exists)
        with _unreachable(cluster, "immediate"):
            wait_until(lambda: is_unready(here) and is_unready(there))
            is_told_to_come_back(raw.post(here, NOTE, here.token), 503)
            is_told_to_come_back(raw.post(here, ECHO, UNKNOWN), 503)
            said = session.send(calling("send_note", 8, **NOTE_TO_ADA))
            is_told_to_come_back(said, 200)
            go_on()
            told = begun.message()
            assert (told["id"], told["error"]["code"]) == (7, -32603)
        assert becomes_ready(here)
        assert becomes_ready(there)
        for server in (here, there):
            assert raw.post(server, NOTE, server.token).status == 200
            reply = session.at(server.port).send(calling("send_note", 9, **NOTE_TO_ADA))
            assert reply.message["result"]["content"], reply
        for verb in ("disable", "enable"):
            impatient.change(verb)
            assert standing.message()["method"] == "notifications/tools/list_changed"


def test_a_frozen_database_gives_timely_errors_and_processes_can_still_stop(
    cluster: Postgres, impatient: Service
) -> None:
    here = at(impatient, impatient.first)
    session = begin(here, "2025-11-25")
    assert raw.post(here, NOTE, here.token).status == 200
    asked = calling("send_note", 1, **NOTE_TO_ADA)
    with cluster.frozen():
        with ThreadPoolExecutor(60) as pool:
            sent = [pool.submit(raw.post, here, NOTE, here.token) for _ in range(10)]
            sent += [pool.submit(raw.post, here, ECHO, UNKNOWN) for _ in range(30)]
            said = [pool.submit(session.send, asked | {"id": number}) for number in range(20)]
            for each in (*sent, *said):  # some on streams, begun before it was known to be away
                error = each.result(PATIENCE).message["error"]
                assert error["data"]["retryAfter"] > 0, error
        impatient.first.stop()
    here = impatient.first.start()
    assert raw.post(here, NOTE, here.token).status == 200


@contextmanager
def locked(server: Server) -> Iterator[None]:
    path = server.home / "db.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
