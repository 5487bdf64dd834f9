"""Tests of the messages of the tasks extension, each validated against its schema."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import orjson
import pytest

from mcphost.protocol.messages import error_response, response
from mcphost.protocol.results import complete
from mcphost.protocol.subscriptions import SUBSCRIPTION_ID
from mcphost.protocol.tasks import (
    EXTENSION,
    TERMINAL,
    TaskStatus,
    TaskView,
    create_task_result,
    declared,
    empty_result,
    extension_missing,
    get_task_result,
    parse_task_id,
    task_notification,
    unknown_task,
)
from tests.wire import check_message, check_response, check_type

SERVER = {"name": "tests", "version": "1"}
INFO = "io.modelcontextprotocol/serverInfo"
CREATED = datetime(2026, 7, 28, 9, 30, 5, 123_999, UTC)
UPDATED = datetime(2026, 7, 28, 9, 31, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
RESULT = complete({"content": [{"type": "text", "text": "Hello"}], "isError": True}, SERVER)
ERROR = {"code": -32603, "message": "The tool is gone", "data": {"reason": "withdrawn"}}

BASE: dict[str, Any] = {
    "taskId": "t-1",
    "createdAt": "2026-07-28T09:30:05.123Z",
    "lastUpdatedAt": "2026-07-28T09:31:00.000Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 500,
}
PAYLOADS: dict[TaskStatus, dict[str, Any]] = {
    TaskStatus.WORKING: {},
    TaskStatus.INPUT_REQUIRED: {"inputRequests": {"name#2": QUESTION}},
    TaskStatus.COMPLETED: {"result": RESULT},
    TaskStatus.FAILED: {"error": ERROR},
    TaskStatus.CANCELLED: {},
}
FULL = TaskView(
    "t-1",
    TaskStatus.WORKING,
    CREATED,
    UPDATED,
    60_000,
    500,
    requests={"name#2": QUESTION},
    result=RESULT,
    error=ERROR,
)
"""A view with all payloads, of which only that of its status may be sent."""

every_status = pytest.mark.parametrize("status", TaskStatus)


def viewed(**changes: Any) -> TaskView:
    return FULL._replace(**changes)


def got(view: TaskView) -> dict[str, Any]:
    """The result of `tasks/get`, checked and decoded."""
    message = check_response("tasks/get", response(1, get_task_result(view, SERVER)))
    return dict(message["result"])


def handed(view: TaskView) -> dict[str, Any]:
    """The result of `tools/call` that is a task, checked and decoded."""
    message = check_response("tools/call", response(1, create_task_result(view, SERVER)))
    return dict(message["result"])


def everywhere(view: TaskView) -> list[dict[str, Any]]:
    """The task as it is handed out, got and notified."""
    return [handed(view), got(view), check_message(task_notification(1, view))["params"]]


def test_the_task_statuses_are_those_of_the_schema() -> None:
    statuses = "working input_required completed failed cancelled"
    assert " ".join(TaskStatus) == statuses
    for status in TaskStatus:
        check_type("TaskStatus", status.value, "tasks")
    assert frozenset(TaskStatus) - TERMINAL == {TaskStatus.WORKING, TaskStatus.INPUT_REQUIRED}


@every_status
def test_a_task_handle_has_no_result_or_error(status: TaskStatus) -> None:
    assert handed(viewed(status=status)) == {
        **BASE,
        "resultType": "task",
        "status": status.value,
        "_meta": {INFO: SERVER},
    }


@every_status
@pytest.mark.requirement("tasks.payload")
def test_a_task_has_only_the_payload_of_its_status(status: TaskStatus) -> None:
    assert got(viewed(status=status)) == {
        **BASE,
        **PAYLOADS[status],
        "resultType": "complete",
        "status": status.value,
        "_meta": {INFO: SERVER},
    }


@every_status
@pytest.mark.parametrize("subscription", [1, "1", ""])
def test_a_task_notification_contains_the_task_and_the_subscription_id(status, subscription):
    message = check_message(task_notification(subscription, viewed(status=status)))
    assert message["method"] == "notifications/tasks"
    task = got(viewed(status=status))
    del task["resultType"]
    assert message["params"] == {**task, "_meta": {SUBSCRIPTION_ID: subscription}}
    assert type(message["params"]["_meta"][SUBSCRIPTION_ID]) is type(subscription)


@every_status
def test_a_status_message_is_sent_only_if_there_is_one(status: TaskStatus) -> None:
    view = viewed(status=status, message="Half of it")
    assert [task["statusMessage"] for task in everywhere(view)] == ["Half of it"] * 3
    assert not any("statusMessage" in task for task in everywhere(viewed(status=status)))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (CREATED, "2026-07-28T09:30:05.123Z"),
        (datetime(2026, 7, 28, 1, 2, 3, 4000, EAST), "2026-07-27T23:02:03.004Z"),
    ],
)
def test_times_are_in_utc_to_the_millisecond(moment: datetime, text: str) -> None:
    task = got(viewed(created_at=moment, updated_at=moment))
    assert (task["createdAt"], task["lastUpdatedAt"]) == (text, text)


@pytest.mark.parametrize(
    ("status", "missing"), [(TaskStatus.COMPLETED, "result"), (TaskStatus.FAILED, "error")]
)
def test_a_finished_task_without_its_payload_cannot_be_sent(
    status: TaskStatus, missing: str
) -> None:
    view = viewed(status=status, **{missing: None})
    with pytest.raises(ValueError, match=f"{status} needs its {missing}"):
        get_task_result(view, SERVER)
    assert handed(view)["status"] == status


@pytest.mark.parametrize("method", ["tasks/update", "tasks/cancel"])
def test_an_acknowledgement_contains_nothing_about_the_task(method: str) -> None:
    message = check_response(method, response(1, empty_result(SERVER)))
    assert message["result"] == {"resultType": "complete", "_meta": {INFO: SERVER}}


# --- the extension ---


@pytest.mark.parametrize(
    ("capabilities", "is_declared"),
    [
        ({"extensions": {EXTENSION: {}}}, True),
        ({"extensions": {EXTENSION: {"later": 1}, "com.example/x": {}}}, True),
        ({}, False),
        ({"extensions": {"com.example/x": {}}}, False),
        # The tasks of 2025-11-25, which are another feature.
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, False),
    ],
)
def test_a_client_declares_the_tasks_extension_by_its_name(capabilities, is_declared):
    assert declared(capabilities) is is_declared


def test_a_client_without_the_tasks_extension_is_refused_with_its_name() -> None:
    error = extension_missing()
    assert (error.code, error.status) == (-32021, 400)
    message = check_message(error_response(error.with_id(1)))
    assert message["error"]["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    assert EXTENSION in error.message


def test_an_unknown_or_expired_task_is_refused_with_the_frozen_error() -> None:
    error = unknown_task()
    assert (error.code, error.status) == (-32602, 400)
    assert orjson.loads(error_response(error.with_id(7))) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32602, "message": "The task does not exist or has expired"},
    }


@pytest.mark.parametrize(
    "text", ["", "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "\n", str(UUID(int=1))]
)
def test_a_task_id_has_only_one_valid_form(text: str) -> None:
    assert parse_task_id(UUID(int=7).hex) == UUID(int=7)
    assert parse_task_id(text) is None
