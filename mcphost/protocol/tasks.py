"""The messages of the tasks extension of revision 2026-07-28 (SEP-2663).

Spec: specification/draft/tasks of the repository modelcontextprotocol/ext-tasks. The tasks of
revision 2025-11-25 are another feature, which these messages do not serve.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, assert_never
from uuid import UUID

from mcphost.protocol import messages, results
from mcphost.protocol.errors import ProtocolError, invalid_params, missing_capability
from mcphost.protocol.subscriptions import SUBSCRIPTION_ID

EXTENSION: Final = "io.modelcontextprotocol/tasks"

METHODS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})

MAX_ID: Final = 64
"""The longest task id that a client may send, in characters; ours are shorter."""
_ID: Final = re.compile(r"[0-9a-f]{32}")
MAX_FOLLOWED: Final = 100
"""How many tasks one subscription may name."""


class TaskStatus(StrEnum):
    """The status of a task (section "Task Status")."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED})


class TaskView(NamedTuple):
    """What a client sees of a task.

    `ttl_ms` counts from `created_at`, None means without end. `requests` maps the keys of the
    outstanding input requests to `{"method": …, "params": …}`. `result` is the complete result of
    the call, `error` the JSON-RPC error that ended it. Only the payload of the status is sent.
    """

    id: str
    status: TaskStatus
    created_at: datetime
    updated_at: datetime
    ttl_ms: int | None
    poll_ms: int
    message: str = ""
    requests: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None


def declared(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client's checked capabilities include the extension."""
    return EXTENSION in capabilities.get("extensions", ())


def parse_task_id(text: str) -> UUID | None:
    """Read a task's id, in the one form in which clients are given it; None for any other text."""
    return UUID(hex=text) if _ID.fullmatch(text) else None


def extension_missing() -> ProtocolError:
    """-32021: the client did not declare the extension (section "Capability Negotiation")."""
    message = f"The client does not declare the extension {EXTENSION}"
    return missing_capability(message, {"extensions": {EXTENSION: {}}})


def unknown_task() -> ProtocolError:
    """The error for every id that is not one of the caller's tasks, whatever the reason."""
    return invalid_params("The task does not exist or has expired")


def create_task_result(view: TaskView, server: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result of a request that goes on as a task (section "Task Creation")."""
    return results.task(_summary(view), server)


def get_task_result(view: TaskView, server: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result of `tasks/get`. Raises ValueError if the payload of the status is missing."""
    return results.complete(_detailed(view), server)


def empty_result(server: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result of `tasks/update` and `tasks/cancel`: empty."""
    return results.complete({}, server)


def task_notification(subscription: str | int, view: TaskView) -> bytes:
    """Encode the notification of a task's status (section "Task Status Notifications").

    Raises ValueError if the payload of the status is missing.
    """
    params = {"_meta": {SUBSCRIPTION_ID: subscription}, **_detailed(view)}
    return messages.notification("notifications/tasks", params)


def _detailed(view: TaskView) -> dict[str, Any]:
    return {**_summary(view), **_payload(view)}


def _summary(view: TaskView) -> dict[str, Any]:
    task = {
        "taskId": view.id,
        "status": view.status,
        "createdAt": timestamp(view.created_at),
        "lastUpdatedAt": timestamp(view.updated_at),
        "ttlMs": view.ttl_ms,
        "pollIntervalMs": view.poll_ms,
    }
    if view.message:
        task["statusMessage"] = view.message
    return task


def _payload(view: TaskView) -> dict[str, Any]:
    match view.status:
        case TaskStatus.WORKING | TaskStatus.CANCELLED:
            return {}
        case TaskStatus.INPUT_REQUIRED:
            return {"inputRequests": dict(view.requests)}
        case TaskStatus.COMPLETED:
            return {"result": _required(view, "result", view.result)}
        case TaskStatus.FAILED:
            return {"error": _required(view, "error", view.error)}
        case _:
            assert_never(view.status)


def _required(view: TaskView, name: str, payload: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if payload is None:
        raise ValueError(f"a task that is {view.status} needs its {name}")
    return payload


def timestamp(moment: datetime) -> str:
    """Encode a time in ISO 8601, in UTC."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
