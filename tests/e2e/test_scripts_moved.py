"""A script with a loop that asks in every turn: each of its requests is served by another process.

Between the requests processes are killed and the script is changed, so that it is replayed. Local
state survives, no question is asked again, and no request is sent again.
"""

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e import scripts
from tests.e2e.asking import at
from tests.e2e.nodes import Node, Service
from tests.e2e.scripts import TURNS, Prices

LARGEST_STATE = 8_000
"""Characters of the request state of a small script. Recorded as a property of the test suite (`--junitxml`)."""


@pytest.fixture(scope="module")
def prices() -> Iterator[Prices]:
    with scripts.pricing() as started:
        yield started


@pytest.fixture(scope="module")
def service(
    machine: None, prices: Prices, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with scripts.service(tmp_path_factory.mktemp("scripts"), prices) as two:
        yield two


class MovingCall:
    """A call, request by request, each at the node that is given."""

    def __init__(self, service: Service, trip: str) -> None:
        self._service = service
        self._asker = scripts.asker(trip)
        self._state: str | None = None
        self._answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.sizes: list[int] = []
        self.text = ""

    def request(self, node: Node) -> None:
        result = self._asker.leg(at(self._service, node), self._state, self._answers)
        if result["resultType"] == "complete":
            assert not result.get("isError"), result
            self.text = result["content"][0]["text"]
            return
        self._state = result["requestState"]
        self.sizes.append(len(self._state))
        [(key, question)] = result["inputRequests"].items()
        message = question["params"]["message"]
        self.asked.append(message)
        self._answers = {key: scripts.bags(message)}


def _through(
    service: Service, trip: str, between: Callable[[int, Node, Node], None]
) -> tuple[MovingCall, str]:
    call = MovingCall(service, trip)
    pair = (service.first, service.second)
    for turn in range(TURNS + 1):
        here, there = pair[turn % 2], pair[1 - turn % 2]
        call.request(here)
        if turn < TURNS:
            between(turn, here, there)
    return call, call.text


def _ended_as_if_nothing_had_happened(call: MovingCall, prices: Prices, trip: str) -> None:
    assert json.loads(call.text) == scripts.expected(trip)
    assert [scripts.seat(message) for message in call.asked] == list(range(TURNS))
    assert prices.requests(trip) == dict.fromkeys(range(TURNS), 1)


def _kill(node: Node) -> None:
    """Kill -9, and start it again."""
    node.stop()
    node.start(signal.SIGKILL)


@pytest.fixture
def mortal(service: Service) -> Iterator[None]:
    """Both nodes are ended by SIGKILL in this test, by SIGTERM afterwards."""
    for node in (service.first, service.second):
        node.stop()
        node.start(signal.SIGKILL)
    yield
    for node in (service.first, service.second):
        node.stop()
        node.start()


@pytest.mark.requirement("mrtr.any-node")
def test_a_loop_goes_on_at_another_node_in_every_turn(
    service: Service, prices: Prices, record_testsuite_property: Callable[[str, object], None]
) -> None:
    scripts.publish(service, prices, "Undisturbed.")
    for node in (service.first, service.second):
        scripts.wait_for(service, node, "Undisturbed.")
    call, _ = _through(service, "moved", lambda *_: None)
    _ended_as_if_nothing_had_happened(call, prices, "moved")
    record_testsuite_property("script_request_state_characters", call.sizes)
    assert max(call.sizes) < LARGEST_STATE


def test_a_loop_survives_that_a_process_is_killed_after_every_request(
    service: Service, prices: Prices, mortal: None
) -> None:
    scripts.publish(service, prices, "Killed.")
    for node in (service.first, service.second):
        scripts.wait_for(service, node, "Killed.")
    call, _ = _through(service, "killed", lambda turn, here, there: _kill(here))
    _ended_as_if_nothing_had_happened(call, prices, "killed")


def test_a_loop_is_replayed_when_its_script_is_changed_between_the_requests(
    service: Service, prices: Prices
) -> None:
    scripts.publish(service, prices, "Version 0.")
    scripts.wait_for(service, service.first, "Version 0.")

    def change(turn: int, here: Node, there: Node) -> None:
        scripts.publish(service, prices, f"Version {turn + 1}.")
        scripts.wait_for(service, there, f"Version {turn + 1}.")

    call, _ = _through(service, "changed", change)
    _ended_as_if_nothing_had_happened(call, prices, "changed")


def test_a_loop_may_be_killed_and_changed_at_once(
    service: Service, prices: Prices, mortal: None
) -> None:
    scripts.publish(service, prices, "Both 0.")
    scripts.wait_for(service, service.first, "Both 0.")

    def disturb(turn: int, here: Node, there: Node) -> None:
        if turn % 2:  # every other request continues the paused script, not a replay
            scripts.publish(service, prices, f"Both {turn}.")
            scripts.wait_for(service, there, f"Both {turn}.")
        _kill(here)

    call, _ = _through(service, "both", disturb)
    _ended_as_if_nothing_had_happened(call, prices, "both")
