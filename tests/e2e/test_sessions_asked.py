"""Questions to sessions over two processes: asked on one, answered on the other, shown on any."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.e2e.asking import Numbered, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server
from tests.e2e.sessions import Session

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
