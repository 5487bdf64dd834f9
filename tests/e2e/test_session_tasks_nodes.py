"""A task of a session over two processes: the session's streams on one, the rounds on the other."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import nodes, raw_sessions
from tests.e2e.asking import accept, at, wait_until
from tests.e2e.nodes import Service
from tests.e2e.processes import ROOT
from tests.e2e.raw_sessions import Events
from tests.e2e.test_task_clients import PROBE, PUBLISH
from tests.wire import RELATED_TASK, SESSION_TASKS

TASKS = "notifications/tasks/status"
PROGRESS = "notifications/progress"


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    """Two nodes with room for one round each, which write effects to files of their own. A task that
    hangs takes the room of the first."""
    tools = tmp_path / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    first = tmp_path / "first"
    settings = {"MCPHOST_TOOLS_PATH": str(tools), "EFFECTS": str(first)}
    with nodes.service(tmp_path, MCPHOST_TASK_ROUNDS="1", **settings) as two:
        two.manage("shell", "-c", PUBLISH)
        two.second.stop()
        session = raw_sessions.begin(at(two, two.first), SESSION_TASKS)
        begun = session.ask("tools/call", name="hangs_in_a_process", arguments={}, task={})
        wait_until(first.exists)
        two.second.change(EFFECTS=str(tmp_path / "second"))
        two.second.start()
        yield two
        session.ask("tasks/cancel", taskId=begun["task"]["taskId"])
        wait_until(lambda: first.read_text().split() == ["began", "cancelled"])


def _next(stream: Events, method: str) -> Mapping[str, Any]:
    """The params of the next message, which must have this method."""
    message = stream.message()
    assert message.get("method") == method, message
    params: Mapping[str, Any] = message["params"]
    return params


def test_a_task_is_followed_on_one_process_while_it_runs_on_the_other(
    service: Service, tmp_path: Path
) -> None:
    here, there = at(service, service.first), at(service, service.second)
    session = raw_sessions.begin(here, SESSION_TASKS, elicitation={"form": {}})
    other = raw_sessions.begin(there, SESSION_TASKS, elicitation={"form": {}})
    params = {"name": "works_aloud", "arguments": {"number": 1}, "_meta": {"progressToken": "bar"}}
    with session.stream() as events, other.stream() as others:
        created = session.ask("tools/call", **params, task={"ttl": 60_000})
        id = created["task"]["taskId"]
        wanted = {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": id}}
        related = {RELATED_TASK: {"taskId": id}}
        with session.stream(wanted) as result:
            begun = _next(events, PROGRESS)
            assert begun == {"progressToken": "bar", "progress": 1, "total": 2, "_meta": related}
            asked = result.message()
            assert asked["method"] == "elicitation/create", asked
            assert asked["params"]["_meta"] == related
            state = _next(events, TASKS)
            assert (state["taskId"], state["status"]) == (id, "input_required")
            assert "_meta" not in state
            body = {"jsonrpc": "2.0", "id": asked["id"], "result": accept(colour="red")}
            assert session.send(body).status == 202
            ended = result.message()
            assert ended["id"] == 2
            assert ended["result"]["_meta"] == related
            assert ended["result"]["content"][0]["text"].endswith(" red")
        sent = [events.message()]
        while sent[-1]["params"].get("status") != "completed":
            sent.append(events.message())
        risen = [one["params"]["progress"] for one in sent if one["method"] == PROGRESS]
        assert risen in ([], [2])  # none if the task had ended before it was read
        seen = session.ask("tasks/get", taskId=id)
        assert sent[-1]["params"] == seen
        own = other.ask("tools/call", name="quick", arguments={"text": "a"}, task={})
        state = _next(others, TASKS)  # the first that this session's stream is told
        assert (state["taskId"], state["status"]) == (own["task"]["taskId"], "completed")
    assert (tmp_path / "first").read_text().split() == ["began"]
    assert [line.split()[1] for line in (tmp_path / "second").read_text().splitlines()] == ["aloud"]
