"""Many calls that ask, at once, over two processes: every one gets its own answer, and none fails."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import pytest

from tests.e2e import raw
from tests.e2e.asking import Numbered, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

MANY = 500
PATIENCE = 60


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
