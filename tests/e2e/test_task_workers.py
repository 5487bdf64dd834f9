"""Tasks that two workers run for two nodes, while workers are killed, Redis is away and PostgreSQL
restarts.

`CHAOS_TASKS` is the number of tasks, `CHAOS_SEED` what is random about the
disturbances.
"""

import asyncio
import os
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import httpx2
import psycopg
import pytest

from tests.e2e import handmade_calls, raw
from tests.e2e.handmade_calls import accept, at, done_in_tasks, wait_until
from tests.e2e.nodes import Service
from tests.e2e.postgresql import Postgres
from tests.e2e.processes import Server
from tests.e2e.workers import Worker

MANY = int(os.environ.get("CHAOS_TASKS") or 100)
KILLS = 2
SEED = int(os.environ.get("CHAOS_SEED") or 1)
AT_ONCE = 150
"""How many clients follow a task at the same time."""
WORKERS = 2
REDIS_AWAY_SECONDS = 10
PATIENCE = 600
POLL_SECONDS = 0.5
COLOURS = ("red", "green", "blue")
TERMINAL = ("completed", "failed", "cancelled")
ABLE = {
    f"{raw.PREFIX}clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {f"{raw.PREFIX}tasks": {}},
    }
}

Seen = Mapping[str, Any]


@pytest.fixture
def service(restarted: Service) -> Service:
    """Two nodes over the database that is restarted, which leave tasks to workers."""
    handmade_calls.heal(restarted)
    Path(restarted.settings["EFFECTS"]).unlink(missing_ok=True)
    return restarted


@pytest.fixture
def workers(service: Service) -> Iterator[Sequence[Worker]]:
    home = service.first.home
    made = [Worker(home, f"worker-{number}", service.settings) for number in range(WORKERS)]
    with ExitStack() as ends:
        for worker in made:
            ends.callback(worker.close)
            worker.start()
        yield made


class Effect(NamedTuple):
    """A line of the tool: a step of a task began, or the code after the step went on."""

    step: tuple[str, str]
    what: str
    value: str
    key: str = ""


def effects(service: Service) -> list[Effect]:
    return [Effect((number, step), *more) for number, step, *more in done_in_tasks(service)]


class Caller:
    """The client of one task, which uses the two nodes in turn."""

    def __init__(self, http: httpx2.AsyncClient, servers: Sequence[Server], number: int) -> None:
        self._http, self._servers, self._number = http, servers, number
        self._sent = number
        self._colour = COLOURS[number % len(COLOURS)]
        self.task = ""

    async def text(self) -> str:
        """Call, answer the one question, and wait for the result, which has to be this task's."""
        arguments = {"name": "works_and_asks", "arguments": {"number": self._number}}
        self.task = (await self._send("tools/call", arguments))["taskId"]
        asked = await self._until(("input_required",))
        question = asked["inputRequests"]["colour"]["params"]["message"]
        first = re.fullmatch(rf"Which colour for {self._number} after (\w+)\?", question)
        assert first, question
        answer = {"colour": accept(colour=self._colour)}
        await self._send("tasks/update", {"taskId": self.task, "inputResponses": answer})
        text = _text(await self._until(TERMINAL))
        assert text.startswith(f"{self._number} {first[1]} {self._colour} "), text
        return text

    async def text_again(self) -> str:
        return _text(await self._send("tasks/get", {"taskId": self.task}))

    async def _until(self, statuses: Sequence[str]) -> Seen:
        while True:
            seen = await self._send("tasks/get", {"taskId": self.task})
            if seen["status"] in statuses:
                return seen
            assert seen["status"] not in TERMINAL, seen
            await asyncio.sleep(POLL_SECONDS)  # between polls, as a client does

    async def _send(self, method: str, params: Mapping[str, Any]) -> Seen:
        """Send a request to the next node, and again if that could not be reached or is unready."""
        message = raw.request(method, params, **ABLE)
        while True:
            self._sent += 1
            server = self._servers[self._sent % len(self._servers)]
            fields = raw.headers(message, server.token)
            try:
                reply = await self._http.post(server.url, json=message, headers=fields)
            except httpx2.TransportError:
                assert method != "tools/call"  # this would be another call
            else:
                told = raw.last_message(reply.headers["content-type"], reply.content)
                if reply.status_code == 200:
                    result: Seen = told["result"]
                    return result
                assert reply.status_code in (429, 503), told
            await asyncio.sleep(POLL_SECONDS)


def _text(seen: Seen) -> str:
    assert seen["status"] == "completed", seen
    text: str = seen["result"]["content"][0]["text"]
    return text


class Disturbances:
    """What happens to the service while tasks run."""

    def __init__(self, service: Service, workers: Sequence[Worker], cluster: Postgres) -> None:
        self._service, self._workers, self._cluster = service, workers, cluster
        self._kills_left = KILLS
        self._random = random.Random(SEED)
        self._database = asyncio.Lock()
        self.over = asyncio.Event()

    async def kill_workers(self) -> None:
        """Kill a worker when another step has begun, and start it again; so often, or until it is over."""
        while self._kills_left and not self.over.is_set():
            await asyncio.sleep(self._random.uniform(0.5, 3))
            await asyncio.to_thread(self._a_step_begins)
            worker = self._random.choice(self._workers)
            await asyncio.to_thread(worker.kill)
            self._kills_left -= 1
            async with self._database:  # a worker does not start without
                await asyncio.to_thread(worker.start)

    def _a_step_begins(self) -> None:
        before = len(effects(self._service))
        wait_until(lambda: len(effects(self._service)) > before or self.over.is_set())

    async def take_redis_away(self) -> None:
        await asyncio.to_thread(self._service.redis.stop)
        await asyncio.sleep(REDIS_AWAY_SECONDS)
        await asyncio.to_thread(self._service.redis.start)

    async def restart_the_database(self) -> None:
        async with self._database:
            await asyncio.to_thread(self._cluster.restart, "immediate")


async def all_texts(callers: Sequence[Caller], disturbances: Disturbances) -> list[str]:
    room, ended = asyncio.Semaphore(AT_ONCE), 0
    moments = {len(callers) // 4: asyncio.Event(), len(callers) // 2: asyncio.Event()}

    async def text(caller: Caller) -> str:
        nonlocal ended
        async with room:
            found = await caller.text()
        ended += 1
        if ended in moments:
            moments[ended].set()
        if ended >= 0.9 * len(callers):
            disturbances.over.set()
        return found

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(disturbances.kill_workers())
        texts = [group.create_task(text(caller)) for caller in callers]
        quarter, half = moments.values()
        await quarter.wait()
        redis = group.create_task(disturbances.take_redis_away())
        await half.wait()
        await disturbances.restart_the_database()
        await redis
        await asyncio.wait(texts)
    return [each.result() for each in texts]


def no_recorded_step_ran_again(seen: Sequence[Effect]) -> None:
    """Once the code after a step has gone on, the step never begins again, and its value stays."""
    recorded: dict[tuple[str, str], str] = {}
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for effect in seen:
        if effect.what == "began":
            assert effect.step not in recorded, effect
            keys[effect.step].add(effect.key)
        else:
            assert recorded.setdefault(effect.step, effect.value) == effect.value, effect
    assert all(len(each) == 1 for each in keys.values()), "a step had two idempotency keys"
    assert len(set().union(*keys.values())) == len(keys), "two steps had one idempotency key"


class Ends:
    """What the records have of the calls of tasks that ended from here on."""

    def __init__(self, service: Service) -> None:
        self._url = service.settings["DATABASE_URL"].replace("postgres:", "postgresql:", 1)
        self._since = self._ask("SELECT statement_timestamp()")[0][0]

    def of_each(self) -> list[int]:
        ends: LiteralString = (
            "SELECT count(*) FROM audit_entry WHERE action = 'round.finished' "
            "AND outcome = 'complete' AND at >= %s GROUP BY call"
        )
        return [count for (count,) in self._ask(ends, self._since)]

    def tasks(self, state: str) -> int:
        [(count,)] = self._ask("SELECT count(*) FROM tasks_task WHERE state = %s", state)
        return int(count)

    def _ask(self, statement: LiteralString, *values: Any) -> list[Any]:
        with closing(psycopg.connect(self._url, autocommit=True)) as link:
            return link.execute(statement, values).fetchall()


async def test_every_task_ends_once_with_its_own_result_despite_disturbances(
    service: Service, workers: Sequence[Worker], cluster: Postgres
) -> None:
    servers = [at(service, node) for node in (service.first, service.second)]
    ends = Ends(service)
    completed = ends.tasks("completed")
    disturbances = Disturbances(service, workers, cluster)
    limits = httpx2.Limits(max_connections=AT_ONCE)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as http:
        callers = [Caller(http, servers, number) for number in range(MANY)]
        texts = await all_texts(callers, disturbances)
        assert [await caller.text_again() for caller in callers] == texts
    seen = effects(service)
    no_recorded_step_ran_again(seen)
    told = {
        ((number, step), value)
        for number, first, _, second in map(str.split, texts)
        for step, value in (("first", first), ("second", second))
    }
    assert len(told) == 2 * MANY
    assert {(each.step, each.value) for each in seen if each.what == "recorded"} == told
    assert ends.of_each() == [1] * MANY
    for worker in workers:
        await asyncio.to_thread(worker.stop)
    assert ends.tasks("working") == 0
    assert ends.tasks("completed") == completed + MANY
