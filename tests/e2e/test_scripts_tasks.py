"""A script's loop as a task: its worker is killed where it asks, and while it waits for a response."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import scripts
from tests.e2e.asking import wait_until
from tests.e2e.nodes import Service
from tests.e2e.scripts import TURNS, Prices
from tests.e2e.test_task_engine import send
from tests.e2e.workers import Worker

INTERRUPTED = 2
"""The turn in which the worker is killed while the service has not responded."""


@pytest.fixture
def prices() -> Iterator[Prices]:
    with scripts.pricing() as started:
        yield started


@pytest.fixture
def service(machine: None, prices: Prices, tmp_path: Path) -> Iterator[Service]:
    with scripts.service(tmp_path, prices, MCPHOST_TASK_WORKER_IN_SERVER="0") as two:
        scripts.publish(two, prices, "As a task.", tasks="always")
        for node in (two.first, two.second):
            scripts.wait_for(two, node, "As a task.")
        yield two


def _asked(service: Service, task: str, turn: int) -> dict[str, Any]:
    """Wait until the task asks this turn's question, or ends."""
    seen: list[dict[str, Any]] = []

    def is_so() -> bool:
        seen.append(send(service.server, "tasks/get", {"taskId": task}))
        assert seen[-1]["status"] not in ("failed", "cancelled"), seen[-1]
        requests = seen[-1].get("inputRequests", {}).values()
        return seen[-1]["status"] == "completed" or any(
            scripts.seat(each["params"]["message"]) == turn for each in requests
        )

    wait_until(is_so)
    return seen[-1]


def test_a_loop_goes_on_when_its_worker_is_killed(service: Service, prices: Prices) -> None:
    with closing(Worker(service.first.home, "worker", service.settings)) as worker:
        worker.start()
        call = {"name": scripts.TOOL, "arguments": dict(scripts.asker("task").arguments)}
        task = send(service.server, "tools/call", call)["taskId"]
        messages = []
        for turn in range(TURNS):
            [(key, question)] = _asked(service, task, turn)["inputRequests"].items()
            messages.append(question["params"]["message"])
            worker.kill()
            if turn + 1 == INTERRUPTED:
                prices.holds.clear()
            worker.start()
            answers = {key: scripts.bags(messages[-1])}
            send(service.server, "tasks/update", {"taskId": task, "inputResponses": answers})
            if turn + 1 == INTERRUPTED:
                wait_until(lambda: prices.requests("task")[INTERRUPTED] == 1)
                worker.kill()
                prices.holds.set()
                worker.start()
        end = _asked(service, task, TURNS)
        worker.stop()
    assert json.loads(end["result"]["content"][0]["text"]) == scripts.expected("task")
    assert [scripts.seat(message) for message in messages] == list(range(TURNS))
    once = dict.fromkeys(range(TURNS), 1)
    assert prices.requests("task") == {**once, INTERRUPTED: 2}
    assert len(set(prices.sent["task", INTERRUPTED])) == 1  # under the same Idempotency-Key
