"""A script with a loop that asks in every turn, while its processes are killed and its code is changed.

There is a call of each way to make one: a stateless call, whose requests go to another process in every turn, one of
a session, and a task. Local state survives, no question is asked again, and no request is sent again, but for one
whose response never came: that one has the same `Idempotency-Key`.
"""

import json
from secrets import token_hex
from typing import Any

import pytest

from tests.e2e import scripts
from tests.e2e.handmade_calls import at, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.raw_sessions import begin, calling
from tests.e2e.scripts import TURNS, Prices
from tests.e2e.test_task_engine import send


class StatelessCall:
    """A call, request by request, each at the node that is given. `text` is how it ended."""

    def __init__(self, service: Service) -> None:
        self._service, self.trip = service, token_hex(4)
        self._asker = scripts.asker(self.trip)
        self._state: str | None = None
        self._answers: dict[str, Any] = {}
        self.asked: list[int] = []
        self.text = ""

    def go_on(self, node: Node) -> None:
        result = self._asker.leg(at(self._service, node), self._state, self._answers)
        if result["resultType"] == "complete":
            assert not result.get("isError"), result
            self.text = result["content"][0]["text"]
            return
        self._state = result["requestState"]
        [(key, question)] = result["inputRequests"].items()
        message = question["params"]["message"]
        self.asked.append(scripts.seat(message))
        self._answers = {key: scripts.bags(message)}


class SessionCall:
    """A call of a session. It is read at the node that is given, and answered at the same."""

    def __init__(self, service: Service) -> None:
        self.trip = token_hex(4)
        self._session = begin(service.server, "2025-11-25", elicitation={"form": {}})
        self._question: dict[str, Any] = {}
        self._last_id = ""
        self.asked: list[int] = []
        self.text = ""

    def go_on(self, node: Node) -> None:
        session = self._session.at(node.port)
        if self._question:
            result = scripts.bags(self._question["params"]["message"])
            answer = {"jsonrpc": "2.0", "id": self._question["id"], "result": result}
            assert session.send(answer).status == 202
            reading = session.stream(last_event_id=self._last_id)
        else:
            arguments = scripts.asker(self.trip).arguments
            reading = session.stream(calling(scripts.TOOL, **arguments))
        with reading as events:
            message = events.message()
            self._last_id = events.last_id
        if "method" in message:
            self._question = message
            self.asked.append(scripts.seat(message["params"]["message"]))
        else:
            self.text = message["result"]["content"][0]["text"]


class TaskCall:
    """A task, which is looked at and answered at the node that is given."""

    def __init__(self, service: Service) -> None:
        self._service, self.trip = service, token_hex(4)
        self._id = ""
        self._answers: dict[str, Any] = {}
        self.asked: list[int] = []
        self.text = ""

    def go_on(self, node: Node) -> None:
        self.answer(node)
        self.look(node)

    def answer(self, node: Node) -> None:
        server = at(self._service, node)
        if self._id:
            update = {"taskId": self._id, "inputResponses": self._answers}
            send(server, "tasks/update", update)
        else:
            call = {"name": scripts.TASK, "arguments": dict(scripts.asker(self.trip).arguments)}
            self._id = send(server, "tools/call", call)["taskId"]

    def look(self, node: Node) -> None:
        server, seen = at(self._service, node), dict[str, Any]()

        def is_so() -> bool:
            seen.update(send(server, "tasks/get", {"taskId": self._id}))
            assert seen["status"] not in ("failed", "cancelled"), seen
            return seen["status"] == "completed" or self._is_asked(seen)

        wait_until(is_so)
        if seen["status"] == "completed":
            self.text = seen["result"]["content"][0]["text"]
            return
        [(key, question)] = seen["inputRequests"].items()
        message = question["params"]["message"]
        self.asked.append(scripts.seat(message))
        self._answers = {key: scripts.bags(message)}

    def _is_asked(self, seen: dict[str, Any]) -> bool:
        asked = seen.get("inputRequests", {}).values()
        return any(scripts.seat(each["params"]["message"]) == len(self.asked) for each in asked)


Call = StatelessCall | SessionCall | TaskCall


def ended_as_if_nothing_had_happened(call: Call, prices: Prices, again: int = -1) -> None:
    assert json.loads(call.text) == scripts.expected(call.trip)
    assert call.asked == list(range(TURNS))
    often = {turn: 1 + (turn == again) for turn in range(TURNS)}
    assert prices.requests(call.trip) == often
    assert all(len(set(prices.sent[call.trip, turn])) == 1 for turn in range(TURNS))


def _published(service: Service, prices: Prices, title: str) -> None:
    scripts.publish(service, prices, title)
    for node in (service.first, service.second):
        scripts.wait_for(service, node, title)


@pytest.mark.requirement("mrtr.any-node")
def test_a_script_loop_continues_when_its_process_is_killed_in_every_iteration(
    two_nodes: Service, prices: Prices
) -> None:
    """In every turn only one process is left, which is killed once the other one is back."""
    _published(two_nodes, prices, "Killed 0.")
    pair = (two_nodes.first, two_nodes.second)
    task = TaskCall(two_nodes)
    calls: tuple[Call, ...] = (
        StatelessCall(two_nodes),
        SessionCall(two_nodes),
        task,
    )
    for turn in range(TURNS - 1):
        here, there = pair[turn % 2], pair[1 - turn % 2]
        for call in calls:
            call.go_on(here)
        if turn == 0:
            scripts.publish(two_nodes, prices, "Killed 1.")
            scripts.wait_for(two_nodes, there, "Killed 1.")
        else:
            there.start()
        here.kill()
    here, there = pair[(TURNS - 1) % 2], pair[TURNS % 2]
    for call in calls[:-1]:
        call.go_on(here)
    prices.holds.clear()
    task.answer(here)
    wait_until(lambda: prices.requests(task.trip)[TURNS - 1] == 1)
    there.start()
    here.kill()
    prices.holds.set()
    task.look(there)
    for call in calls:
        call.go_on(there)
    here.start()
    for call in calls:
        again = TURNS - 1 if call is task else -1
        ended_as_if_nothing_had_happened(call, prices, again)
