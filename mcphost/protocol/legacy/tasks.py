"""The experimental tasks of revision 2025-11-25 (spec: basic/utilities/tasks)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcphost.protocol import messages
from mcphost.protocol.errors import METHOD_NOT_FOUND, ProtocolError, invalid_params
from mcphost.protocol.params import check_type
from mcphost.protocol.tasks import TaskStatus, TaskView, timestamp

RELATED: Final = "io.modelcontextprotocol/related-task"
TASK: Final = "task"
"""The param with which a client asks for a task."""
_MAX_STATUS_MESSAGE: Final = 1000
"""In characters: a message is shown in one line; the whole text is in the task's result."""


class TaskProgress(NamedTuple):
    """A report of progress, for the `progressToken` of the request that became a task."""

    token: str | int
    progress: float
    total: float | None
    message: str | None


def wanted_ttl(params: Mapping[str, Any]) -> float | None:
    """The time to live that a request asks for, in ms; None if it leaves that to the server.

    It is at least 1.

    Raises INVALID_PARAMS for a `task` of another shape.
    """
    task = params[TASK]
    check_type("params.task", task, dict)
    if "ttl" not in task:
        return None
    ttl = task["ttl"]
    if type(ttl) not in (int, float) or ttl <= 0:
        raise invalid_params("params.task.ttl must be a positive number of milliseconds")
    return max(1.0, float(ttl))


def no_task(tool: str) -> ProtocolError:
    """-32601: this tool cannot be called as a task (section "Tool-Level Negotiation")."""
    return ProtocolError(METHOD_NOT_FOUND, f"The tool {tool} cannot be called as a task")


def only_task(tool: str) -> ProtocolError:
    """-32601: this tool can only be called as a task (section "Tool-Level Negotiation")."""
    return ProtocolError(METHOD_NOT_FOUND, f"The tool {tool} can only be called as a task")


def has_ended(view: TaskView) -> ProtocolError:
    """-32602: a task that has ended cannot be cancelled (section "Task Cancellation")."""
    status = task(view)["status"]
    return invalid_params(f"Cannot cancel task: already in terminal status '{status}'")


def created(handle: Mapping[str, Any]) -> dict[str, Any]:
    """Build `CreateTaskResult` from the handle of the stateless revision."""
    return {
        TASK: {
            "taskId": handle["taskId"],
            "status": handle["status"],
            "createdAt": handle["createdAt"],
            "lastUpdatedAt": handle["lastUpdatedAt"],
            "ttl": handle["ttlMs"],
            "pollInterval": handle["pollIntervalMs"],
        }
    }


def task(view: TaskView) -> dict[str, Any]:
    """Build the state of a task. A tool result with `isError` is a failure in this revision."""
    failed = view.result is not None and bool(view.result.get("isError"))
    written = {
        "taskId": view.id,
        "status": TaskStatus.FAILED if failed else view.status,
        "createdAt": timestamp(view.created_at),
        "lastUpdatedAt": timestamp(view.updated_at),
        "ttl": view.ttl_ms,
        "pollInterval": view.poll_ms,
    }
    message = (_text(view.result) if failed else "") or view.message
    if message:
        written["statusMessage"] = message
    return written


def _text(result: Mapping[str, Any] | None) -> str:
    """The text of a tool's result that is an error, for `statusMessage`; empty if it has none."""
    blocks = (result or {}).get("content", ())
    text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
    return text if len(text) <= _MAX_STATUS_MESSAGE else f"{text[: _MAX_STATUS_MESSAGE - 1]}…"


def status_notification(view: TaskView) -> bytes:
    """Encode the notification of a task's state (section "Task Status Notification").

    It needs no metadata that names the task: that is in it.
    """
    return messages.notification("notifications/tasks/status", task(view))


def progress_notification(task_id: str, progress: TaskProgress) -> bytes:
    """Encode the progress of a task, whose token stays valid until the task ends (section
    "Associating Task-Related Messages")."""
    return messages.progress(*progress, meta=related({}, task_id)["_meta"])


def related(message: Mapping[str, Any], task_id: str) -> dict[str, Any]:
    """The result or params with the metadata that names their task (section "Related Task
    Metadata")."""
    meta = {**message.get("_meta", {}), RELATED: {"taskId": task_id}}
    return {**message, "_meta": meta}
