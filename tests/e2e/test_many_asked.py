"""Many calls that ask, at once, over two processes: every one gets its own answer, and none fails."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.e2e import raw
from tests.e2e.asking import Asker, Numbered, accept, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

MANY = 500
PATIENCE = 60
WORKERS = 4


class Crowd:
    """People whose answers are all given at once, when everybody has been asked."""

    def __init__(self, http: httpx2.AsyncClient, servers: Sequence[Server]) -> None:
        self._http, self._servers = http, servers
        self._everybody = asyncio.Barrier(MANY)

    async def ends_well(self, call: Numbered) -> bool:
        """Go through a call, each leg on another process than the one before."""
        state, answers = None, {}
        for leg, key in enumerate(("q0", "q1")):
            result = await self._leg(call.number + leg, call.asker.message(state, answers))
            assert list(result["inputRequests"]) == [key], result
            state, answers = result["requestState"], {key: call.answer(key)}
            await self._everybody.wait()
        result = await self._leg(call.number, call.asker.message(state, answers))
        return call.is_told_by(result["content"][0]["text"])

    async def _leg(self, turn: int, message: Mapping[str, Any]) -> dict[str, Any]:
        server = self._servers[turn % len(self._servers)]
        fields = raw.headers(message, server.token)
        reply = await self._http.post(server.url, json=message, headers=fields)
        told = raw.last_message(reply.headers["content-type"], reply.content)
        assert (reply.status_code, told["id"]) == (200, message["id"]), told
        result: dict[str, Any] = told["result"]
        return result


@pytest.mark.requirement("mrtr.any-node")
async def test_five_hundred_calls_at_once_get_each_its_own_answers(asked: Service) -> None:
    servers = [at(asked, node) for node in (asked.first, asked.second)]
    limits = httpx2.Limits(max_connections=MANY)
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(limits=limits, timeout=PATIENCE) as http,
    ):
        crowd = Crowd(http, servers)
        ends = await asyncio.gather(*(crowd.ends_well(Numbered(n)) for n in range(MANY)))
    assert ends == [True] * MANY


class Load:
    """Calls that ask, one after the other, through the proxy; some take their time to act."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._over = threading.Event()
        self._went_on = threading.Event()
        self.done: Counter[str] = Counter()

    def work(self, worker: int) -> None:
        number = worker
        while not self._over.is_set():
            self._deploy() if number % 5 == 0 else self._ask(Numbered(number))
            self._went_on.set()
            number += WORKERS

    def _ask(self, call: Numbered) -> None:
        assert call.is_told_by(call.asker.finish(self._server, call.answer))
        self.done["interpret"] += 1

    def _deploy(self) -> None:
        asker = Asker("deploy", {"service": "shop", "version": "v2"})
        said = asker.finish(self._server, lambda *_: accept(deploy=True))
        assert said == "shop v2 is deployed."
        self.done["deploy"] += 1

    def has_gone_on(self) -> None:
        """Wait until another call has ended."""
        self._went_on.clear()
        assert self._went_on.wait(PATIENCE)

    def end(self) -> None:
        self._over.set()


@contextmanager
def loading(server: Server) -> Iterator[Load]:
    load = Load(server)
    with ThreadPoolExecutor(WORKERS) as pool:
        working = [pool.submit(load.work, worker) for worker in range(WORKERS)]
        try:
            load.has_gone_on()
            yield load
        finally:
            load.end()
        for each in working:
            each.result(PATIENCE)


@pytest.mark.requirement("mrtr.any-node")
def test_a_rolling_restart_under_load_fails_not_one_call_that_asks(asked: Service) -> None:
    proxy, first, second, server = asked.proxy, asked.first, asked.second, asked.server
    patient = Numbered(MANY)
    asked = patient.asker.leg(server)
    with loading(server) as load:
        for leaving, staying in ((first, second), (second, first)):
            leaving.stop()
            proxy.wait_for(staying.port)
            load.has_gone_on()
            leaving.start()
            proxy.wait_for(first.port, second.port)
            load.has_gone_on()
    assert patient.is_told_by(patient.asker.finish(server, patient.answer, asked))
    assert load.done.keys() == {"interpret", "deploy"}
    assert proxy.failures == []
    assert proxy.served.keys() == {first.port, second.port}
