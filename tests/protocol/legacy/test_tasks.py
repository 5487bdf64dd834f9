"""Tests of the messages of tasks of 2025-11-25."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.tasks import (
    TaskProgress,
    created,
    has_ended,
    no_task,
    only_task,
    progress_notification,
    status_notification,
    wanted_ttl,
)
from mcphost.protocol.tasks import TaskStatus, TaskView, task_handle
from tests.wire import RELATED_TASK, SESSION_TASKS, check_message

AT = datetime(2026, 11, 23, 14, tzinfo=UTC)


@pytest.mark.parametrize(("asked", "ms"), [(60_000, 60_000), (0.5, 1), (1, 1), (1.5, 1.5)])
def test_the_time_that_a_client_wants_is_at_least_a_millisecond(asked: Any, ms: float) -> None:
    assert wanted_ttl({"task": {"ttl": asked}}) == ms


def test_a_client_may_leave_the_time_to_the_server() -> None:
    assert wanted_ttl({"task": {}}) is None


@pytest.mark.parametrize("asked", [None, 0, -0.5, True, "1", [1]])
def test_another_time_is_refused(asked: Any) -> None:
    with pytest.raises(ProtocolError) as raised:
        wanted_ttl({"task": {"ttl": asked}})
    assert raised.value.code == -32602


@pytest.mark.parametrize("message", ["", "half"])
def test_a_notification_has_the_whole_task_and_no_metadata(message: str) -> None:
    view = TaskView("a" * 32, TaskStatus.WORKING, AT, AT, 60_000, 1000, message)
    params = check_message(status_notification(view), revision=SESSION_TASKS)["params"]
    said = {"statusMessage": message} if message else {}
    assert params == {
        "taskId": "a" * 32,
        "status": "working",
        "createdAt": "2026-11-23T14:00:00.000Z",
        "lastUpdatedAt": "2026-11-23T14:00:00.000Z",
        "ttl": 60_000,
        "pollInterval": 1000,
        **said,
    }


def test_progress_names_its_task() -> None:
    sent = progress_notification("a" * 32, TaskProgress("bar", 1.5, None, None))
    assert check_message(sent, revision=SESSION_TASKS)["params"] == {
        "progressToken": "bar",
        "progress": 1.5,
        "_meta": {RELATED_TASK: {"taskId": "a" * 32}},
    }


def test_a_tool_says_whether_it_can_and_must_be_called_as_a_task() -> None:
    assert (no_task("count").code, no_task("count").message) == (
        -32601,
        "The tool count cannot be called as a task",
    )
    assert (only_task("count").code, only_task("count").message) == (
        -32601,
        "The tool count can only be called as a task",
    )


def test_a_task_that_has_ended_cannot_be_cancelled() -> None:
    view = TaskView("a" * 32, TaskStatus.COMPLETED, AT, AT, 60_000, 1000, result={})
    error = has_ended(view)
    assert error.code == -32602
    assert error.message == "Cannot cancel task: already in terminal status 'completed'"


def test_a_new_task_has_the_values_of_its_handle() -> None:
    view = TaskView("a" * 32, TaskStatus.WORKING, AT, AT, 60_000, 1000)
    made = created(task_handle(view, {}))
    assert made["task"] == {
        "taskId": "a" * 32,
        "status": "working",
        "createdAt": "2026-11-23T14:00:00.000Z",
        "lastUpdatedAt": "2026-11-23T14:00:00.000Z",
        "ttl": 60_000,
        "pollInterval": 1000,
    }
