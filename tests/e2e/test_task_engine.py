"""Without a configured worker, the serving processes run tasks from one queue."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import raw
from tests.e2e.handmade_calls import at, beside_effects, done_in_tasks, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server, free_port, is_ready
from tests.e2e.test_task_workers import ABLE
from tests.e2e.workers import Worker

Seen = dict[str, Any]


def send(server: Server, method: str, params: Seen) -> Seen:
    reply = raw.post(server, raw.request(method, params, **ABLE), server.token)
    assert reply.status == 200, reply.body
    result: Seen = reply.message["result"]
    return result


def begin(server: Server, tool: str) -> str:
    id: str = send(server, "tools/call", {"name": tool, "arguments": {}})["taskId"]
    return id


def text(server: Server, task: str) -> str:
    seen: list[Seen] = []

    def is_over() -> bool:
        seen.append(send(server, "tasks/get", {"taskId": task}))
        return seen[-1]["status"] != "working"

    wait_until(is_over)
    assert seen[-1]["status"] == "completed", seen[-1]
    found: str = seen[-1]["result"]["content"][0]["text"]
    return found


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture
def begun(two_nodes: Service) -> Callable[[], list[list[str]]]:
    before = len(done_in_tasks(two_nodes))
    return lambda: done_in_tasks(two_nodes)[before:]


@pytest.fixture
def pause(two_nodes: Service) -> Iterator[Path]:
    file = beside_effects(two_nodes, ".pause")
    file.touch()
    yield file
    file.unlink(missing_ok=True)


Begun = Callable[[], list[list[str]]]


def test_a_task_continues_in_the_other_process_when_its_own_is_stopped(
    two_nodes: Service, begun: Begun, pause: Path
) -> None:
    """No HTTP connection is open meanwhile, so the process waits for nothing but the step."""
    task = begin(two_nodes.server, "steps_in_a_process")
    wait_until(lambda: len(begun()) == 1)
    ((_, port),) = begun()
    pair: tuple[Node, Node] = (two_nodes.first, two_nodes.second)
    own, other = pair if int(port) == pair[0].port else pair[::-1]
    ending = threading.Thread(target=own.stop)
    ending.start()
    wait_until(lambda: not listens(own.port))  # then it drains
    pause.unlink()
    ending.join()
    assert text(at(two_nodes, other), task) == "first second"
    assert begun() == [["first", port], ["second", str(other.port)]]
    own.start()


def test_a_task_continues_elsewhere_when_its_worker_is_stopped(
    two_nodes: Service, begun: Begun, pause: Path
) -> None:
    port = free_port()
    settings = {**two_nodes.settings, "PORT": "1"}
    worker = Worker(two_nodes.first.home, "worker", settings, "--metrics-port", str(port))
    worker.start()
    try:
        wait_until(lambda: is_ready(port))
        tasks = []
        while ["first", "1"] not in begun():  # until it gets one
            assert len(tasks) < 16  # as many as one tool may run at once
            tasks.append(begin(two_nodes.server, "steps_in_a_process"))
            wait_until(lambda: len(begun()) == len(tasks))
        ending = threading.Thread(target=worker.stop)
        ending.start()
        wait_until(lambda: not is_ready(port))
        pause.unlink()
        ending.join()
    finally:
        worker.close()
    assert {text(two_nodes.server, task) for task in tasks} == {"first second"}
    assert len(begun()) == 2 * len(tasks)
