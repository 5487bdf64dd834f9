"""An upgrade, process by process, under calls of both eras and tasks: none of them ends wrong, although
tools exist that only the new code has."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from tests.e2e import handmade_calls, raw, versions
from tests.e2e.handmade_calls import accept, at, done_in_tasks
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server
from tests.e2e.sessions import EndedError, Session, Stream
from tests.e2e.workers import Worker

CALLS: Final = 60
"""Of each era."""
TASKS: Final = 8
GROUPS: Final = (("known", 0, 1), ("known", 0, 2), ("brand_new", 1, 1), ("brand_new", 1, 2))
"""Of a call: its tool, the phase in which it begins, and the one in which its question is answered. In
phase 0 all code is old, in phase 1 one node is new, in phase 2 all are."""
BOUND: Final = 90.0
MAX_ATTEMPTS: Final = 200
MAX_PAUSE: Final = 1.0
RETRYABLE: Final = (429, 503)
ABLE: Final = {
    f"{raw.PREFIX}clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }
}
ASKABLE: Final = {f"{raw.PREFIX}clientCapabilities": {"elicitation": {"form": {}}}}


class Paced(httpx2.AsyncHTTPTransport):
    """Opens few requests at a time: all calls begin at once, in one event loop."""

    def __init__(self) -> None:
        super().__init__(limits=httpx2.Limits(max_keepalive_connections=0))
        self._opening = asyncio.Semaphore(10)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async with self._opening:
            return await super().handle_async_request(request)


@dataclass
class Fleet:
    """The nodes, as clients without a balancer see them, and the phases of the upgrade."""

    servers: tuple[Server, ...]
    http: httpx2.AsyncClient
    phases: list[asyncio.Event] = field(default_factory=lambda: [asyncio.Event() for _ in range(3)])
    turn: Any = field(default_factory=itertools.count)

    def next(self) -> Server:
        return self.servers[next(self.turn) % len(self.servers)]

    async def send(
        self, method: str, params: Mapping[str, Any], able: Mapping[str, Any] = ASKABLE
    ) -> dict[str, Any]:
        """Send a stateless request to the next node, and to another one as the server asks for it."""
        message = raw.request(method, dict(params), **able)
        for _ in range(MAX_ATTEMPTS):
            server = self.next()
            headers = raw.headers(message, server.token)
            try:
                reply = await self.http.post(server.url, json=message, headers=headers)
            except httpx2.ConnectError:
                await asyncio.sleep(MAX_PAUSE)  # what a client or a balancer does
                continue
            if reply.status_code not in RETRYABLE:
                assert reply.status_code == 200, reply.text
                result: dict[str, Any] = reply.json()["result"]
                return result
            retry_after = reply.json()["error"]["data"]["retryAfter"]
            await asyncio.sleep(min(retry_after, MAX_PAUSE))
        raise AssertionError("no node took the request")

    async def stateless(self, number: int, tool: str, begins: int, answers: int) -> str:
        await self.phases[begins].wait()
        params = {"name": tool, "arguments": {"number": number}}
        more: dict[str, Any] = {}
        for _ in range(MAX_ATTEMPTS):
            result = await self.send("tools/call", {**params, **more})
            if result["resultType"] == "complete":
                assert not result.get("isError"), result
                return str(result["content"][0]["text"])
            more = {"requestState": result["requestState"]}
            if result.get("inputRequests"):
                assert list(result["inputRequests"]) == ["word"]
                await self.phases[answers].wait()
                more["inputResponses"] = {"word": accept(word="yes")}
        raise AssertionError("the call did not come to an end")

    async def task(self, number: int) -> str:
        await self.phases[1].wait()
        params = {"name": "brand_new_task", "arguments": {"number": number}}
        created = await self.send("tools/call", params, ABLE)
        task = created["taskId"]
        answered = False
        for _ in range(MAX_ATTEMPTS):
            seen = await self.send("tasks/get", {"taskId": task}, ABLE)
            assert seen["status"] in ("working", "input_required", "completed"), seen
            if seen["status"] == "completed":
                return str(seen["result"]["content"][0]["text"])
            if seen["status"] == "input_required" and not answered:
                await self.phases[2 if number % 2 else 1].wait()
                answers = {"word": accept(word="yes")}
                await self.send("tasks/update", {"taskId": task, "inputResponses": answers}, ABLE)
                answered = True
            await asyncio.sleep(MAX_PAUSE)  # as often as a client polls
        raise AssertionError("the task did not come to an end")

    async def in_session(
        self, session: Session, number: int, tool: str, begins: int, answers: int
    ) -> str:
        """A call of revision 2025-11-25, which its client resumes at another node when one leaves."""
        await self.phases[begins].wait()
        last_id, first = "", True
        for _ in range(MAX_ATTEMPTS):
            server = self.next()
            opening = (
                session.calling(server, tool, {"number": number})
                if first
                else session.resuming(server, last_id)
            )
            try:
                async with opening as stream:
                    first = False
                    text = await self._read(session, stream, answers)
                    last_id = stream.last_id or last_id
                    if text is not None:
                        return text
            except httpx2.TransportError:
                await asyncio.sleep(MAX_PAUSE)  # what a client does
        raise AssertionError("the call did not come to an end")

    async def _read(self, session: Session, stream: Stream, answers: int) -> str | None:
        while True:
            try:
                message = await stream.message()
            except (EndedError, httpx2.TransportError):
                return None
            if "result" in message:
                assert not message["result"].get("isError"), message
                return str(message["result"]["content"][0]["text"])
            assert message.get("method") == "elicitation/create", message
            await self.phases[answers].wait()
            await self._answer(session, message)

    async def _answer(self, session: Session, question: Mapping[str, Any]) -> None:
        for _ in range(MAX_ATTEMPTS):
            try:
                await session.answer(self.next(), question, accept(word="yes"))
                return
            except httpx2.TransportError:
                await asyncio.sleep(MAX_PAUSE)  # what a client does
        raise AssertionError("no node took the answer")


async def _lists(fleet: Fleet) -> list[set[str]]:
    found = []
    for server in fleet.servers:
        message = raw.request("tools/list", {}, **ASKABLE)
        headers = raw.headers(message, server.token)
        reply = await fleet.http.post(server.url, json=message, headers=headers)
        found.append({tool["name"] for tool in reply.json()["result"]["tools"]})
    return found


async def _all_list(fleet: Fleet, name: str) -> None:
    for _ in range(MAX_ATTEMPTS):
        first, second = await _lists(fleet)
        if name in first & second:
            assert first == second
            return
        await asyncio.sleep(MAX_PAUSE)  # between looks
    raise AssertionError("not all nodes list it")


@asynccontextmanager
async def _fleet(service: Service) -> AsyncIterator[Fleet]:
    async with httpx2.AsyncClient(timeout=BOUND, transport=Paced()) as http:
        yield Fleet((at(service, service.first), at(service, service.second)), http)


async def test_calls_and_tasks_end_correctly_during_a_rolling_upgrade(
    two_nodes: Service,
) -> None:
    new, before = handmade_calls.with_code(two_nodes, versions.NEW), len(done_in_tasks(two_nodes))
    worker = Worker(two_nodes.first.home, "worker", two_nodes.settings)
    await asyncio.to_thread(worker.start)
    try:
        async with _fleet(two_nodes) as fleet:
            texts = await _upgraded(two_nodes, fleet, worker, new)
    finally:
        worker.close()
    assert texts == [f"{number} yes" for number in range(len(texts))]
    assert len(texts) == 2 * CALLS + TASKS
    noted = (words for words in done_in_tasks(two_nodes)[before:] if words[0] == "upgraded")
    assert Counter(" ".join(words[1:]) for words in noted) == Counter(texts), "each acted once"


async def _upgraded(
    service: Service, fleet: Fleet, worker: Worker, new: dict[str, str]
) -> list[str]:
    sessions = [await Session.begun(fleet.http, fleet.next()) for _ in range(10)]
    calls = []
    for number in range(CALLS):
        tool, begins, answers = GROUPS[number % len(GROUPS)]
        calls.append(fleet.stateless(number, tool, begins, answers))
    for number in range(CALLS, 2 * CALLS):
        tool, begins, answers = GROUPS[number % len(GROUPS)]
        session = sessions[number % len(sessions)]
        calls.append(fleet.in_session(session, number, tool, begins, answers))
    calls += [fleet.task(number) for number in range(2 * CALLS, 2 * CALLS + TASKS)]
    async with asyncio.timeout(2 * BOUND), asyncio.TaskGroup() as group:
        running = [group.create_task(call) for call in calls]
        fleet.phases[0].set()
        await _replaced(service.first, new)
        await asyncio.to_thread(handmade_calls.offer, service, new)
        await _all_list(fleet, "brand_new")
        fleet.phases[1].set()
        await _replaced(service.second, new)
        await asyncio.to_thread(worker.stop)  # the nodes run tasks, too
        fleet.phases[2].set()
    return [call.result() for call in running]


async def _replaced(node: Node, tools: dict[str, str]) -> None:
    await asyncio.to_thread(node.stop)
    node.change(**tools)
    await asyncio.to_thread(node.start)
