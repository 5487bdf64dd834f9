"""The reply to one HTTP request of a call, before its envelope is added.

A reply can be stored as JSON and given again to a client that repeats its request.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, assert_never

import orjson

from mcphost import __version__
from mcphost.audit.writer.conditions import Condition
from mcphost.calls.ownership import Lease
from mcphost.protocol import results
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.protocol.tasks import TaskStatus, TaskView, create_task_result
from mcphost.runtime.outcomes import Outcome
from mcphost.serving.database import DATABASE_ERRORS
from mcphost.serving.request_state import RequestState

Dress = Callable[[Mapping[str, Any]], Mapping[str, Any]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """The call is complete. `result` is the method's result without its envelope."""

    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """The call continues when the client returns the state, with input responses if there are
    `requests`."""

    requests: Mapping[str, Mapping[str, Any]]
    state: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The call ends with a JSON-RPC error."""

    error: ProtocolError


@dataclass(frozen=True, slots=True)
class Handle:
    """The call goes on as a task (extension io.modelcontextprotocol/tasks, "Task Creation")."""

    task: TaskView


Reply = Answered | Asking | Refused | Handle


class SealedState(NamedTuple):
    """The state of a reply that asks, and the id of the key that sealed it."""

    state: RequestState
    key_id: str


class CreatedTask(NamedTuple):
    """A task to be created by `condition`: its first state for the client, and its first lease."""

    condition: Condition
    view: TaskView
    lease: Lease


class Delivered(NamedTuple):
    """The final outcome of a round, the reply for it, and the reply's state, if any.

    `creation` is the task of a `Handle`, which is to be created.
    """

    outcome: Outcome
    reply: Reply
    sealed: SealedState | None = None
    creation: CreatedTask | None = None


def finish(reply: Reply, server: Mapping[str, Any], dress: Dress = dict) -> Mapping[str, Any]:
    """Build the method's result with its envelope; `dress` adds fields to a complete result.

    Raises the ProtocolError of a `Refused`.
    """
    match reply:
        case Answered(result):
            return results.complete(dress(result), server)
        case Asking(requests, state):
            return results.input_required(requests, state, server)
        case Refused(error):
            raise error
        case Handle(task):
            return create_task_result(task, server)
        case _:
            assert_never(reply)


def error_for(error: Exception) -> ProtocolError:
    """The error that answers a request whose handling raised `error`; logs what is not a refusal."""
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, DATABASE_ERRORS):
        log.error("the database is unreachable: %s", type(error).__name__)
        return unavailable("The database is unreachable; try again soon")
    log.error("a request failed", exc_info=error)
    return ProtocolError(INTERNAL_ERROR, "Internal error")


def write(reply: Reply) -> bytes:
    """The reply as JSON."""
    match reply:
        case Answered(result):
            return orjson.dumps(["answered", result])
        case Asking(requests, state):
            return orjson.dumps(["asking", requests, state])
        case Refused(error):
            return orjson.dumps(["refused", error.code, error.message, error.data])
        case Handle(task):
            times = task.created_at.isoformat(), task.updated_at.isoformat()
            return orjson.dumps(["task", task.id, task.status, *times, task.ttl_ms, task.poll_ms])
        case _:
            assert_never(reply)


def read(written: bytes) -> Reply:
    """Decode what `write` wrote."""
    tag, *values = orjson.loads(written)
    if tag == "refused":
        return Refused(ProtocolError(*values))
    if tag == "task":
        id, status, created, updated, *numbers = values
        times = datetime.fromisoformat(created), datetime.fromisoformat(updated)
        return Handle(TaskView(id, TaskStatus(status), *times, *numbers))
    return Answered(*values) if tag == "answered" else Asking(*values)


NAME = "mcphost"


@lru_cache(maxsize=4096)
def server_info(title: str, icon: str) -> Mapping[str, Any]:
    """The `serverInfo` of a tenant: this software's name and version, the tenant's title and icon."""
    info: dict[str, Any] = {"name": NAME, "title": title, "version": __version__}
    if icon:
        info["icons"] = [{"src": icon, "mimeType": icon[5:].partition(";")[0]}]
    return info
