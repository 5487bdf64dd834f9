"""Questions to sessions over two processes: asked on one, answered on the other, shown on any."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.e2e.asking import Numbered, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server
from tests.e2e.sessions import Session

MANY = 500
SESSIONS = 20
PATIENCE = 60


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """Connections, as many as are wanted."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(limits=limits, timeout=PATIENCE) as client,
    ):
        yield client


@pytest.fixture
def servers(asked: Service) -> tuple[Server, Server]:
    """The two processes, each by itself."""
    return at(asked, asked.first), at(asked, asked.second)


Servers = tuple[Server, Server]


async def go_through(
    session: Session, call: Numbered, servers: Servers, everybody: asyncio.Barrier
) -> bool:
    """A call that is asked on one process and answered on the other, when everybody has been asked."""
    here, there = servers[call.number % 2], servers[(call.number + 1) % 2]
    async with session.calling(here, call.asker.tool, call.asker.arguments) as stream:
        for key in call.keys:
            question = await stream.question()
            assert f" {key}?" in question["params"]["message"]
            await everybody.wait()
            await session.answer(there, question, call.answer(key))
        return call.is_told_by(await stream.text())


async def test_five_hundred_calls_at_once_get_each_its_own_answers(
    http: httpx2.AsyncClient, servers: Servers
) -> None:
    sessions = [await Session.begun(http, servers[n % 2]) for n in range(SESSIONS)]
    everybody = asyncio.Barrier(MANY)
    calls = (
        go_through(sessions[number % SESSIONS], Numbered(number, ["q0"]), servers, everybody)
        for number in range(MANY)
    )
    assert await asyncio.gather(*calls) == [True] * MANY


async def test_a_client_that_vanished_finds_its_question_and_the_end_on_another_process(
    http: httpx2.AsyncClient, servers: Servers
) -> None:
    here, there = servers
    session, call = await Session.begun(http, here), Numbered(1)
    async with session.calling(here, call.asker.tool, call.asker.arguments) as stream:
        first = await stream.question()
        earlier = stream.last_id
    await session.answer(there, first, call.answer("q0"))
    async with session.resuming(there, earlier) as stream:
        second = await stream.question()
    async with session.resuming(there, earlier) as stream:
        assert await stream.question() == second
        await session.answer(here, second, call.answer("q1"))
        assert call.is_told_by(await stream.text())


async def test_whoever_follows_on_both_processes_at_once_sees_the_same(
    http: httpx2.AsyncClient, servers: Servers
) -> None:
    here, there = servers
    session, call = await Session.begun(http, here), Numbered(2)
    async with session.calling(here, call.asker.tool, call.asker.arguments) as stream:
        question = await stream.question()
        last_id = stream.last_id
    async with session.resuming(here, last_id) as one, session.resuming(there, last_id) as two:
        await session.answer(there, question, call.answer("q0"))
        question = await one.question()
        assert await two.question() == question
        await session.answer(here, question, call.answer("q1"))
        assert call.is_told_by(await one.text())
        assert call.is_told_by(await two.text())


async def test_without_redis_questions_are_answered_all_the_same(
    asked: Service, http: httpx2.AsyncClient, servers: Servers
) -> None:
    here, there = servers
    session, call = await Session.begun(http, here), Numbered(3)
    async with session.calling(here, call.asker.tool, call.asker.arguments) as stream:
        question = await stream.question()
        await asyncio.to_thread(asked.redis.stop)
        try:
            await session.answer(there, question, call.answer("q0"))
            question = await stream.question()
        finally:
            await asyncio.to_thread(asked.redis.start)
        await session.answer(there, question, call.answer("q1"))
        assert call.is_told_by(await stream.text())


async def test_people_think_while_every_process_is_started_anew(
    asked: Service, http: httpx2.AsyncClient, servers: Servers
) -> None:
    session, call = await Session.begun(http, servers[0]), Numbered(4)
    async with session.calling(servers[0], call.asker.tool, call.asker.arguments) as stream:
        question = await stream.question()
        last_id = stream.last_id
        for node, other in zip((asked.first, asked.second), reversed(servers), strict=True):
            await asyncio.to_thread(node.stop)
            async with session.resuming(other, last_id):
                await asyncio.to_thread(node.start)
    await session.answer(servers[1], question, call.answer("q0"))
    async with session.resuming(servers[0], last_id) as stream:
        await session.answer(servers[1], await stream.question(), call.answer("q1"))
        assert call.is_told_by(await stream.text())
