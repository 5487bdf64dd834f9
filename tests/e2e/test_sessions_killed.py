"""A process is killed while it holds calls of sessions: they go on elsewhere as if nothing had happened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2

from tests.e2e.asking import accept, at, beside_effects, effects, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server
from tests.e2e.sessions import Session
from tests.e2e.test_killed_rounds import CLAIMING, FREE, Call, legs

PATIENCE = 90


class Caller:
    """Somebody who makes a call in a session, and may come back to it anywhere."""

    def __init__(self, session: Session, call: Call) -> None:
        self.call = call
        self._session = session
        self._question: dict[str, Any] = {}
        self._last_id = ""

    async def begin(self, server: Server, ends: AsyncExitStack) -> None:
        """Call, and read the first question."""
        asker = self.call.asker
        calling = self._session.calling(server, asker.tool, asker.arguments)
        stream = await ends.enter_async_context(calling)
        self._question, self._last_id = await stream.question(), stream.last_id

    async def answer(self, server: Server) -> None:
        """Answer the question that was read last."""
        await self._session.answer(server, self._question, accept(number=7))

    async def end(self, server: Server) -> str:
        """Come back for the second question, answer it, and read how it ended."""
        async with self._session.resuming(server, self._last_id) as stream:
            self._question = await stream.question()
            await self.answer(server)
            return await stream.text()


@asynccontextmanager
async def mortal(node: Node) -> AsyncIterator[None]:
    """A node that dies meanwhile, and is started again."""
    try:
        yield
    finally:
        await asyncio.to_thread(node.kill)
        await asyncio.to_thread(node.start)


def goes_on_alone(service: Service, call: Call) -> None:
    """Wait until a call has done what comes after its first answer."""
    wait_until(lambda: any(line[:2] == ["then", call.number] for line in effects(service)))


async def test_calls_of_sessions_outlive_the_process_that_held_them(asked: Service) -> None:
    first, second = at(asked, asked.first), at(asked, asked.second)
    calls = [Call(CLAIMING), Call(CLAIMING, pauses=True), Call(CLAIMING), Call(FREE)]
    undisturbed = [call.twin() for call in calls]
    for _ in range(3):
        await asyncio.to_thread(legs, asked, asked.first, undisturbed)
    before = len(effects(asked))
    pause, paused, kill = (beside_effects(asked, it) for it in (".pause", ".paused", ".kill"))
    async with httpx2.AsyncClient(timeout=PATIENCE) as http, mortal(asked.first):
        session = await Session.begun(http, second)
        every = [Caller(session, call) for call in calls]
        waiting, acting, unrecorded, free = every
        async with AsyncExitStack() as ends:
            for caller in every:
                await caller.begin(first, ends)
            pause.touch()
            await acting.answer(second)
            await asyncio.to_thread(wait_until, paused.exists)
            kill.touch()
            await unrecorded.answer(second)
            await asyncio.to_thread(wait_until, lambda: not kill.exists())
            await asyncio.to_thread(asked.first.kill)
        pause.unlink()
        paused.unlink()
        await waiting.answer(second)
        await asyncio.to_thread(goes_on_alone, asked, waiting.call)
        await free.answer(second)
        texts = await asyncio.gather(*(caller.end(second) for caller in every))
    assert texts == [call.text for call in undisturbed]
    done = effects(asked)[before:]
    assert waiting.call.ran(done)
    assert acting.call.ran(done, twice="between")
    assert unrecorded.call.ran(done, twice="between")
    assert free.call.ran(done)
