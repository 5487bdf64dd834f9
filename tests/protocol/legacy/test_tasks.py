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
from mcphost.protocol.tasks import TaskStatus, TaskView, create_task_result
from tests.wire import RELATED_TASK, SESSION_TASKS, check_message

AT = datetime(2026, 11, 23, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("task", "ms"),
    [
        ({"ttl": 60_000}, 60_000),
        ({"ttl": 0.5}, 1),
        ({"ttl": 1.5}, 1.5),
        ({}, None),
    ],
)
def test_the_ttl_of_a_task_is_at_least_a_millisecond(task: Any, ms: Any) -> None:
    assert wanted_ttl({"task": task}) == ms


@pytest.mark.parametrize(
    "asked",
    [
        0,
        True,
        "1",
    ],
)
def test_an_invalid_ttl_is_refused(asked: Any) -> None:
    with pytest.raises(ProtocolError) as raised:
        wanted_ttl({"task": {"ttl": asked}})
    assert raised.value.code == -32602


VIEW = TaskView("a" * 32, TaskStatus.WORKING, AT, AT, 60_000, 1000)
WORKING = {
    "taskId": "a" * 32,
    "status": "working",
    "createdAt": "2026-11-23T14:00:00.000Z",
    "lastUpdatedAt": "2026-11-23T14:00:00.000Z",
    "ttl": 60_000,
    "pollInterval": 1000,
}


@pytest.mark.parametrize("message", ["", "half"])
def test_a_status_notification_contains_the_whole_task_and_no_metadata(message: str) -> None:
    sent = status_notification(VIEW._replace(message=message))
    params = check_message(sent, revision=SESSION_TASKS)["params"]
    assert params == {**WORKING, **({"statusMessage": message} if message else {})}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"type": "text", "text": "No such city."}], "No such city."),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": "a" * 1001}], "a" * 999 + "…"),
        ([], "half"),
    ],
)
def test_a_task_that_fails_by_its_result_has_the_results_text_as_status_message(
    content: Any, message: str
) -> None:
    result = {"content": content, "isError": True}
    failed = VIEW._replace(status=TaskStatus.COMPLETED, result=result, message="half")
    params = check_message(status_notification(failed), revision=SESSION_TASKS)["params"]
    assert params == {**WORKING, "status": "failed", "statusMessage": message}


def test_a_progress_notification_names_its_task() -> None:
    sent = progress_notification("a" * 32, TaskProgress("bar", 1.5, None, None))
    assert check_message(sent, revision=SESSION_TASKS)["params"] == {
        "progressToken": "bar",
        "progress": 1.5,
        "_meta": {RELATED_TASK: {"taskId": "a" * 32}},
    }


def test_task_errors_have_the_codes_and_messages_of_the_revision() -> None:
    ended = VIEW._replace(status=TaskStatus.COMPLETED, result={})
    errors = [no_task("count"), only_task("count"), has_ended(ended)]
    assert [(error.code, error.message) for error in errors] == [
        (-32601, "The tool count cannot be called as a task"),
        (-32601, "The tool count can only be called as a task"),
        (-32602, "Cannot cancel task: already in terminal status 'completed'"),
    ]


def test_a_created_task_has_the_values_of_its_handle() -> None:
    assert created(create_task_result(VIEW, {}))["task"] == WORKING
