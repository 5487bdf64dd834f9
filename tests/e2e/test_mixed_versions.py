"""Two nodes of which only the first has the newest code: a call goes back and forth between them."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e import handmade_calls, versions
from tests.e2e.handmade_calls import Asker, accept, at
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

PATIENCE = 90
SAID: Mapping[str, int] = {
    "Which seat?": 1,
    "Which meal?": 2,
    "How many bags?": 3,
    "What would you like to eat?": 4,
}


@pytest.fixture(scope="module")
def changed(pair: Service) -> None:
    handmade_calls.heal(pair)
    newest = handmade_calls.with_code(pair, versions.NEWEST)
    pair.first.stop()
    pair.first.change(**newest)
    pair.first.start()
    handmade_calls.offer(pair, newest)


@pytest.fixture
def service(changed: None, two_nodes: Service) -> Service:
    return two_nodes


class Talk:
    """One call; every question that was asked in it, in its words."""

    def __init__(self) -> None:
        self._asker = Asker("travel", {})
        self._state: str | None = None
        self._answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def leg(self, server: Server) -> str:
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
def test_a_call_that_alternates_between_versions_requests_each_input_once(
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
