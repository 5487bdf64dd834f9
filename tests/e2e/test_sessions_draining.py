"""Many calls of sessions at once, while one process joins and another leaves: none of them fails."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from tests.e2e.asking import Numbered, at
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server
from tests.e2e.sessions import EndedError, Session, Stream

MANY = 500
SESSIONS = 20
PATIENCE = 90
MOST_TRIES = 20
GONE = (httpx2.TransportError, EndedError)
"""What a client sees of a process that leaves."""


class Crowd:
    """Clients that are all asked first. Then some answer at once, some wait for what they are told."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = [*servers]
        self.asked = asyncio.Barrier(MANY + 1)
        self.joined, self.left = asyncio.Event(), asyncio.Event()

    async def before_an_answer(self, number: int, key: str) -> None:
        """A third of the calls goes on at once, a third when there are three processes and again when
        one has left, a third only then."""
        if key == "q0":
            await self.asked.wait()
        if number % 3 and (number % 3, key) != (1, "q0"):
            await self.left.wait()
        elif number % 3:
            await self.joined.wait()


class Caller:
    """A client with one call. It turns to another process when one does not answer any more."""

    def __init__(self, session: Session, call: Numbered, crowd: Crowd) -> None:
        self.resumed_at: list[Server] = []
        self._session, self._call, self._crowd = session, call, crowd
        self._random = random.Random(call.number)
        self._answered: list[str] = []
        self._last_id = ""

    async def is_told_its_own(self) -> bool:
        """Go through the call; whether its reply is made of its own answers."""
        server, asker = self._other(None), self._call.asker
        async with self._session.calling(server, asker.tool, asker.arguments) as stream:
            reply = await self._read(stream)
        for _ in range(MOST_TRIES):
            if reply is not None:
                return self._answered == ["q0", "q1"] and self._call.is_told_by(reply)
            server = self._other(server)
            reply = await self._come_back(server)
        raise AssertionError("it did not come to an end")

    async def _come_back(self, server: Server) -> str | None:
        try:
            async with self._session.resuming(server, self._last_id) as stream:
                self.resumed_at.append(server)
                return await self._read(stream)
        except httpx2.TransportError:
            return None

    async def _read(self, stream: Stream) -> str | None:
        """Read and answer until the reply; None if the response ends before it."""
        while True:
            try:
                message = await stream.message()
            except GONE:
                return None
            self._last_id = stream.last_id
            if "method" not in message:
                text: str = message["result"]["content"][0]["text"]
                return text
            await self._answer(message)

    async def _answer(self, question: dict[str, Any]) -> None:
        """Answer a question, which is read only once, on any process."""
        key = self._call.keys[len(self._answered)]
        assert f" {key}?" in question["params"]["message"]
        self._answered.append(key)
        await self._crowd.before_an_answer(self._call.number, key)
        server = None
        for _ in range(MOST_TRIES):
            server = self._other(server)
            try:
                return await self._session.answer(server, question, self._call.answer(key))
            except httpx2.TransportError:
                continue
        raise AssertionError("no process took the answer")

    def _other(self, server: Server | None) -> Server:
        """Another process, at random."""
        return self._random.choice([each for each in self._crowd.servers if each != server])


@asynccontextmanager
async def joining(service: Service) -> AsyncIterator[Node]:
    """A third process, once it is ready."""
    home = service.first.home.parent.parent / "third" / "home"
    home.parent.mkdir(exist_ok=True)
    node = Node(home, **service.settings)
    await asyncio.to_thread(node.start)
    try:
        yield node
    finally:
        await asyncio.to_thread(node.stop)


async def test_five_hundred_calls_go_on_while_one_process_joins_and_another_leaves(
    asked: Service,
) -> None:
    leaving, staying = at(asked, asked.first), at(asked, asked.second)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(limits=limits, timeout=PATIENCE) as http,
        asyncio.TaskGroup() as group,
    ):
        crowd = Crowd([leaving, staying])
        sessions = [await Session.begun(http, staying) for _ in range(SESSIONS)]
        callers = [Caller(sessions[n % SESSIONS], Numbered(n), crowd) for n in range(MANY)]
        calls = [group.create_task(caller.is_told_its_own()) for caller in callers]
        await crowd.asked.wait()
        async with joining(asked) as node:
            crowd.servers.append(at(asked, node))
            crowd.joined.set()
            try:
                await asyncio.to_thread(asked.first.stop)
                crowd.servers.remove(leaving)
                crowd.left.set()
                assert await asyncio.gather(*calls) == [True] * MANY
            finally:
                await asyncio.to_thread(asked.first.start)
    resumed = [server for caller in callers for server in caller.resumed_at]
    assert staying in resumed
    assert at(asked, node) in resumed
