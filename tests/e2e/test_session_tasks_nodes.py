"""A task of a session over two processes: the session's streams on one, the rounds on the other."""

from collections.abc import Mapping
from typing import Any

from tests.e2e import raw_sessions
from tests.e2e.asking import accept, at, done_in_tasks
from tests.e2e.nodes import Service
from tests.e2e.raw_sessions import Events, Session
from tests.wire import RELATED_TASK, SESSION_TASKS

TASKS = "notifications/tasks/status"
PROGRESS = "notifications/progress"
MOST_TRIES = 16
"""Which process gets a task is up to the queue."""


def _next(stream: Events, method: str) -> Mapping[str, Any]:
    message = stream.message()
    assert message.get("method") == method, message
    params: Mapping[str, Any] = message["params"]
    return params


def _followed(session: Session, elsewhere: Session, events: Events, number: int) -> None:
    params = {
        "name": "works_aloud",
        "arguments": {"number": number},
        "_meta": {"progressToken": number},
    }
    created = elsewhere.ask("tools/call", **params, task={"ttl": 60_000})
    id = created["task"]["taskId"]
    wanted = {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": id}}
    related = {RELATED_TASK: {"taskId": id}}
    with session.stream(wanted) as result:
        begun = _next(events, PROGRESS)
        assert begun == {"progressToken": number, "progress": 1, "total": 2, "_meta": related}
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
    assert sent[-1]["params"] == session.ask("tasks/get", taskId=id)


def test_a_task_is_followed_on_one_process_while_it_runs_on_the_other(asked: Service) -> None:
    here, there = at(asked, asked.first), at(asked, asked.second)
    session = raw_sessions.begin(here, SESSION_TASKS, elicitation={"form": {}})
    other = raw_sessions.begin(there, SESSION_TASKS, elicitation={"form": {}})
    with session.stream() as events, other.stream() as others:
        number = 0
        while not _ran_at(asked, there.port, number):
            number += 1
            assert number < MOST_TRIES
            _followed(session, session.at(there.port), events, number)
        own = other.ask("tools/call", name="quick", arguments={"text": "a"}, task={})
        state = _next(others, TASKS)  # the first that this session's stream is told
        assert (state["taskId"], state["status"]) == (own["task"]["taskId"], "completed")


def _ran_at(service: Service, port: int, number: int) -> bool:
    return [str(number), f"aloud-{port}"] in [line[:2] for line in done_in_tasks(service)]
