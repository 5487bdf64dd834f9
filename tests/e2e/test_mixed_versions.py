"""Two nodes of which only the first has the newest code: calls go back and forth between them, and reach the one that
lacks their code."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest

from tests.e2e import asking, versions
from tests.e2e.asking import Asker, accept, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server
from tests.e2e.sessions import Session, request

PATIENCE = 90
SAID: Mapping[str, int] = {
    "Which seat?": 1,
    "Which meal?": 2,
    "How many bags?": 3,
    "What would you like to eat?": 4,
}


@pytest.fixture(scope="module")
def changed(pair: Service) -> None:
    """The first node has other code from here on."""
    asking.heal(pair)
    newest = asking.with_code(pair, versions.NEWEST)
    pair.first.stop()
    pair.first.change(**newest)
    pair.first.start()
    asking.offer(pair, newest)


@pytest.fixture
def service(changed: None, asked: Service) -> Service:
    return asked


@pytest.fixture
async def session(service: Service) -> AsyncIterator[Session]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http, asyncio.timeout(PATIENCE):
        session = await Session.begun(http, at(service, service.second))
        await _listed(session, service)
        yield session


async def _listed(session: Session, service: Service) -> None:
    """Wait until the second node knows of the first one's functions."""
    while True:
        reply = await session.post(at(service, service.second), request("tools/list", {}))
        if any(tool["name"] == "newest" for tool in reply.json()["result"]["tools"]):
            return
        await asyncio.sleep(0.1)  # between looks at another process; nothing it does could wake us


async def test_a_first_call_is_answered_by_the_node_that_lacks_its_code(
    service: Service, session: Session
) -> None:
    second = at(service, service.second)
    async with session.calling(second, "acts", {}) as stream:
        assert await stream.text() == "done"
    async with session.calling(second, "newest", {}) as stream:
        question = await stream.question()
        await session.answer(second, question, accept(number=7))
        assert await stream.text() == "number 7"


async def test_a_read_only_call_is_refused_for_a_retry(service: Service, session: Session) -> None:
    first, second = at(service, service.first), at(service, service.second)
    reading = {"name": "reads", "arguments": {}}
    refused = (await session.post(second, request("tools/call", reading))).json()["error"]
    assert (refused["code"], refused["data"]) == (-32603, {"retryAfter": 2})
    assert "does not have the code" in refused["message"]
    repeated = (await session.post(first, request("tools/call", reading))).json()["result"]
    assert repeated["content"][0]["text"] == "read"


async def test_a_call_whose_node_stops_goes_on_when_one_with_its_code_starts(
    service: Service, session: Session
) -> None:
    first, second = at(service, service.first), at(service, service.second)
    async with session.calling(first, "newest", {}) as stream:
        question = await stream.question()
        last_id = stream.last_id
        await asyncio.to_thread(service.first.stop)
        await session.answer(second, question, accept(number=8))
        await asyncio.to_thread(service.first.start)
    async with session.resuming(second, last_id) as stream:
        assert await stream.text() == "number 8"


async def test_a_call_whose_code_does_not_come_back_fails_in_words(
    service: Service, session: Session
) -> None:
    await asyncio.to_thread(service.first.stop)
    async with session.calling(at(service, service.second), "newest", {}) as stream:
        message = await stream.message()
    await asyncio.to_thread(service.first.start)
    words = "This is published, but no running server process has its code"
    assert message["error"]["message"] == words


class Talk:
    """One call; every question that was asked in it, in its words."""

    def __init__(self) -> None:
        self._asker = Asker("travel", {})
        self._state: str | None = None
        self._answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def leg(self, server: Server) -> str:
        """What was asked or, in the end, told."""
        result = self._asker.leg(server, self._state, self._answers)
        if result["resultType"] == "complete":
            text: str = result["content"][0]["text"]
            return text
        self._state = result["requestState"]
        [(key, question)] = result["inputRequests"].items()
        words: str = question["params"]["message"]
        self.asked.append(words)
        self._answers = {key: accept(number=SAID[words])}
        return words


@pytest.mark.requirement("mrtr.any-node")
def test_a_call_may_go_back_and_forth_between_versions_and_answers_nothing_twice(
    service: Service,
) -> None:
    new, old = at(service, service.first), at(service, service.second)
    talk = Talk()
    assert talk.leg(old) == "Which seat?"
    assert talk.leg(new) == "How many bags?"
    assert talk.leg(old) == "Which meal?"
    assert talk.leg(new) == "What would you like to eat?"
    assert talk.leg(new) == "new: seat 1, bags 3, meal 4, place found"
    assert len(talk.asked) == len(set(talk.asked))
    there = Talk()
    assert [there.leg(server) for server in (new, old, old)] == [
        "Which seat?",
        "Which meal?",
        "old: seat 1, meal 2",
    ]
