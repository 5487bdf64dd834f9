"""Who runs tasks where an operator has chosen nothing: the serving processes, from one queue."""

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e import nodes, raw
from tests.e2e.asking import at, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import ROOT, Server, free_port, is_ready
from tests.e2e.test_task_clients import PROBE, PUBLISH
from tests.e2e.test_task_workers import ABLE
from tests.e2e.workers import Worker

Seen = dict[str, Any]


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    """Two nodes, and no settings about tasks."""
    tools = tmp_path / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    ways = {"MCPHOST_TOOLS_PATH": str(tools), "EFFECTS": str(tmp_path / "effects")}
    with nodes.service(tmp_path, **ways) as two:
        two.manage("shell", "-c", PUBLISH)
        yield two


def send(server: Server, method: str, params: Seen) -> Seen:
    message = raw.request(method, params, **ABLE)
    fields = raw.headers(message, server.token)
    fields["Mcp-Name"] = params.get("taskId") or params["name"]
    reply = raw.exchange(server, "POST", "/t/demo/mcp", json.dumps(message).encode(), fields)
    assert reply.status == 200, reply.body
    result: Seen = reply.message["result"]
    return result


def begin(server: Server, tool: str) -> str:
    id: str = send(server, "tools/call", {"name": tool, "arguments": {}})["taskId"]
    return id


def text(server: Server, task: str) -> str:
    """Wait for the result of a task."""
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


def begun(service: Service) -> list[list[str]]:
    """The steps that were begun: name, and port of the process."""
    file = Path(service.settings["EFFECTS"])
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def test_a_task_goes_on_in_the_other_process_when_its_own_is_told_to_end(service: Service) -> None:
    """No HTTP connection is open meanwhile, so the process waits for nothing but the step."""
    pause = Path(service.settings["EFFECTS"]).with_suffix(".pause")
    pause.touch()
    task = begin(service.server, "steps_in_a_process")
    wait_until(lambda: len(begun(service)) == 1)
    ((_, port),) = begun(service)
    pair: tuple[Node, Node] = (service.first, service.second)
    own, other = pair if int(port) == pair[0].port else pair[::-1]
    ending = threading.Thread(target=own.stop)
    ending.start()
    wait_until(lambda: not listens(own.port))  # then it drains
    pause.unlink()
    ending.join()
    assert text(at(service, other), task) == "first second"
    assert begun(service) == [["first", port], ["second", str(other.port)]]


def test_a_task_goes_on_elsewhere_when_its_worker_is_told_to_end(service: Service) -> None:
    pause = Path(service.settings["EFFECTS"]).with_suffix(".pause")
    pause.touch()
    port = free_port()
    settings = {**service.settings, "PORT": "1"}
    worker = Worker(service.first.home, "worker", settings, "--metrics-port", str(port))
    worker.start()
    try:
        wait_until(lambda: is_ready(port))
        tasks = []
        while ["first", "1"] not in begun(service):  # until it gets one
            assert len(tasks) < 16  # as many as one tool may run at once
            tasks.append(begin(service.server, "steps_in_a_process"))
            wait_until(lambda: len(begun(service)) == len(tasks))
        ending = threading.Thread(target=worker.stop)
        ending.start()
        wait_until(lambda: not is_ready(port))
        pause.unlink()
        ending.join()
    finally:
        worker.close()
    assert {text(service.server, task) for task in tasks} == {"first second"}
    assert len(begun(service)) == 2 * len(tasks)


COUNT_RUNS = """
CREATE TABLE runs (tick bigint);
CREATE FUNCTION count_run() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN INSERT INTO runs VALUES ((NEW.args->>'timestamp')::bigint); RETURN NEW; END $$;
CREATE TRIGGER count_run AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
  WHEN (NEW.task_name = 'mcphost.upkeep' AND NEW.status = 'doing') EXECUTE FUNCTION count_run();
"""


def test_periodic_work_is_done_once_for_all_processes(service: Service) -> None:
    """Each tick is one run, whichever process does it, and no job is left."""
    with psycopg.connect(service.settings["DATABASE_URL"], autocommit=True) as link:

        def asked(query: str) -> list[tuple[Any, ...]]:
            return link.execute(query.encode()).fetchall()

        link.execute(COUNT_RUNS)
        wait_until(lambda: len(asked("SELECT DISTINCT tick FROM runs")) > 2)
        ticks = asked("SELECT tick FROM runs")
        assert len(ticks) == len(set(ticks))
        wait_until(lambda: not asked("SELECT 1 FROM procrastinate_jobs"))
