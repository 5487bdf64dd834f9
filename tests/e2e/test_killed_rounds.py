"""Processes are killed during calls with input requests: each call ends normally.

The process is killed while the call waits for input, in the middle of the round that acts on a response,
or between the effect of a step and its record; the client sends the same request again, elsewhere.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import count
from typing import Any

import pytest

from tests.e2e.handmade_calls import Asker, accept, at, beside_effects, effects, wait_until
from tests.e2e.nodes import Node, Service

PATIENCE = 60
CLAIMING, FREE = "interpret", "interpret_freely"

_numbers = count(1)


@dataclass
class Call:
    """Two questions, and something done before, between and after them."""

    tool: str
    number: int = field(default_factory=_numbers.__next__)
    pauses: bool = False
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def asker(self) -> Asker:
        pause = [["pause"]] if self.pauses else []
        before = [["step", "before", self.number], ["ask", "q0"]]
        between = [["step", "between", self.number], *pause, ["step", "then", self.number]]
        after = [["ask", "q1"], ["step", "after", self.number]]
        return Asker(self.tool, {"program": [*before, *between, *after]})

    def leg(self, service: Service, node: Node) -> None:
        state = self.result.get("requestState")
        asked = self.result.get("inputRequests", {})
        answers = {key: accept(number=7) for key in asked}
        self.result = self.asker.leg(at(service, node), state, answers)

    def lost_leg(self, service: Service, node: Node) -> None:
        with suppress(OSError, HTTPException):
            self.leg(service, node)
            raise AssertionError(f"it was answered: {self.result}")

    def has_been_asked(self, *keys: str) -> bool:
        return tuple(self.result.get("inputRequests", ())) == keys

    @property
    def text(self) -> str:
        assert self.result["resultType"] == "complete", self.result
        text: str = self.result["content"][0]["text"]
        return text

    def ran(self, lines: list[list[Any]], twice: str = "") -> bool:
        """Whether of all that was done each step was once, but for one that was done again under the
        same idempotency key."""
        mine = [line for line in lines if line[1] == self.number]
        names = Counter(name for name, *_ in mine)
        keys = {(name, key) for name, *_, key in mine}
        often = {name: 1 + (name == twice) for name in ("before", "between", "then", "after")}
        return names == often and len(keys) == len(names)

    def twin(self) -> "Call":
        return Call(self.tool, self.number, self.pauses)


@contextmanager
def mortal(node: Node) -> Iterator[None]:
    """A node that is killed at the end, if it has not been by then, and started again."""
    try:
        yield
    finally:
        node.kill()
        node.start()


@contextmanager
def pausing(service: Service, call: Call, node: Node) -> Iterator[None]:
    """A call whose next round is in the middle meanwhile, and will not live to end."""
    pause, paused = (beside_effects(service, suffix) for suffix in (".pause", ".paused"))
    pause.touch()
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(call.lost_leg, service, node)
        try:
            wait_until(paused.exists)
            yield
            lost.result(PATIENCE)
        finally:
            pause.unlink()
            paused.unlink(missing_ok=True)


def legs(service: Service, node: Node, calls: list[Call]) -> None:
    with ThreadPoolExecutor(len(calls)) as pool:
        going: list[Future[None]] = [pool.submit(call.leg, service, node) for call in calls]
        for each in going:
            each.result(PATIENCE)


@pytest.mark.requirement("mrtr.any-node")
def test_calls_with_input_requests_end_normally_after_their_process_is_killed(
    two_nodes: Service,
) -> None:
    first, second = two_nodes.first, two_nodes.second
    waiting = [Call(CLAIMING), Call(FREE)]
    acting, unrecorded, late = Call(CLAIMING, pauses=True), Call(CLAIMING), Call(FREE)
    every = [*waiting, acting, unrecorded, late]
    undisturbed = [call.twin() for call in every]
    before = len(effects(two_nodes))
    for node in (first, second, first):
        legs(two_nodes, node, undisturbed)
    between = len(effects(two_nodes))
    with mortal(first):
        legs(two_nodes, first, every)
        with pausing(two_nodes, acting, first):
            beside_effects(two_nodes, ".kill").touch()
            unrecorded.lost_leg(two_nodes, first)
        legs(two_nodes, second, every)
    assert all(call.has_been_asked("q1") for call in every)
    with mortal(second):
        beside_effects(two_nodes, ".kill").touch()
        late.lost_leg(two_nodes, second)
        legs(two_nodes, first, every)
    assert [call.text for call in every] == [call.text for call in undisturbed]
    done = effects(two_nodes)
    assert all(call.ran(done[before:between]) for call in undisturbed)
    done = done[between:]
    assert all(call.ran(done) for call in waiting)
    assert acting.ran(done, twice="between")
    assert unrecorded.ran(done, twice="between")
    assert late.ran(done, twice="after")
