"""Validation of messages on the wire against their revision.

Every suite that receives messages of the server validates them here; the default revision is
2026-07-28. All functions raise AssertionError with what is wrong and the message itself.

The schemas of the session-based revisions allow members that they do not name. Our messages may
have only named members, so that nothing of a later revision reaches older clients.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import orjson

SPEC = Path(__file__).parent / "spec"
MODERN = "2026-07-28"
SCHEMA = SPEC / f"schema-{MODERN}.json"
OLDEST = "2024-11-05"
SESSION_BASED = (OLDEST, "2025-03-26", "2025-06-18", "2025-11-25")
TASKS = "tasks"
"""In place of a revision: the schema of the tasks extension of 2026-07-28."""

RESULTS = {
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
"""The type of a method's final result."""

MAY_ASK = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods that may be answered with an `InputRequiredResult`."""

NOTIFICATIONS = {
    "notifications/cancelled": "CancelledNotification",
    "notifications/progress": "ProgressNotification",
    "notifications/message": "LoggingMessageNotification",
    "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification",
    "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}

ERRORS = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
"""All codes that may be used between -32768 and -32000."""

FULL_RESPONSES = frozenset(
    {
        "HeaderMismatchError",
        "MissingRequiredClientCapabilityError",
        "UnsupportedProtocolVersionError",
    }
)
"""The error types that describe the whole response, not only its `error`."""

REQUESTS = {
    "server/discover": "DiscoverRequest",
    "tools/list": "ListToolsRequest",
    "tools/call": "CallToolRequest",
    "prompts/list": "ListPromptsRequest",
    "prompts/get": "GetPromptRequest",
    "resources/list": "ListResourcesRequest",
    "resources/templates/list": "ListResourceTemplatesRequest",
    "resources/read": "ReadResourceRequest",
    "completion/complete": "CompleteRequest",
    "subscriptions/listen": "SubscriptionsListenRequest",
}

TASK_RESULTS = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
TASK_REQUESTS = {
    "tasks/get": "GetTaskRequest",
    "tasks/update": "UpdateTaskRequest",
    "tasks/cancel": "CancelTaskRequest",
}
_TASK = frozenset({"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs"})
TASK_MEMBERS = _TASK | {"pollIntervalMs", "_meta", "resultType"}
"""The members of a task of any status."""
TASK_PAYLOADS = {"input_required": "inputRequests", "completed": "result", "failed": "error"}
"""The member that only a task of this status has."""

NAME_PARAMS = {"resources/read": "uri", **dict.fromkeys(TASK_REQUESTS, "taskId")}
"""The param that `Mcp-Name` repeats; that of other methods is `name`."""

EMPTY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods of a session whose result is exactly `{}`."""

_LATER = frozenset({"server/discover", "subscriptions/listen"})

SESSION_RESULTS = {
    "initialize": "InitializeResult",
    **dict.fromkeys(EMPTY, "EmptyResult"),
    **{method: name for method, name in RESULTS.items() if method not in _LATER},
}

SESSION_TASKS = "2025-11-25"
"""The session-based revision that has tasks."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
SESSION_TASK_RESULTS = {
    "tasks/get": "GetTaskResult",
    "tasks/result": "CallToolResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
}
"""The results of methods about tasks, which in our case are all calls of tools."""

SESSION_REQUESTS = {
    "initialize": "InitializeRequest",
    "ping": "PingRequest",
    "logging/setLevel": "SetLevelRequest",
    "resources/subscribe": "SubscribeRequest",
    "resources/unsubscribe": "UnsubscribeRequest",
    "tasks/get": "GetTaskRequest",
    "tasks/result": "GetTaskPayloadRequest",
    "tasks/list": "ListTasksRequest",
    "tasks/cancel": "CancelTaskRequest",
    **{method: name for method, name in REQUESTS.items() if method not in _LATER},
}

SERVER_REQUESTS = {
    "ping": "PingRequest",
    "roots/list": "ListRootsRequest",
    "sampling/createMessage": "CreateMessageRequest",
    "elicitation/create": "ElicitRequest",
}
"""The requests that a server may send in a session."""

SESSION_NOTIFICATIONS = {
    **NOTIFICATIONS,
    "notifications/initialized": "InitializedNotification",
    "notifications/roots/list_changed": "RootsListChangedNotification",
    "notifications/elicitation/complete": "ElicitationCompleteNotification",
    "notifications/tasks/status": "TaskStatusNotification",
}
FROM_CLIENTS = frozenset(
    {
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)

SESSION_ERRORS = frozenset({-32700, -32600, -32601, -32602, -32603, -32002})
"""The error codes of these revisions: those of JSON-RPC, and `Resource not found`."""

OPEN = frozenset({"_meta", "inputSchema", "outputSchema", "requestedSchema"})
"""The members that may have further members beyond the named ones."""

Direction = Literal["server", "client"]
Message = Mapping[str, Any] | bytes | str


def check_message(
    message: Message, direction: Direction = "server", revision: str = MODERN
) -> dict[str, Any]:
    """Check one message that a server (or a client) sent, and return it decoded.

    A server sends responses, errors and notifications, and requests only in a session. A result is
    checked as far as that is possible without knowing the method: see `check_response`.
    """
    decoded = _decoded(message)
    if revision != MODERN:
        return _check_of_session(decoded, direction, revision)
    if direction == "client":
        return _check_client(decoded)
    _require("id" not in decoded or "method" not in decoded, "a server sent a request", decoded)
    if decoded.get("method") == "notifications/tasks":
        check_type("TaskStatusNotification", decoded, TASKS)
        _check_task(decoded["params"], decoded)
    elif "method" in decoded:
        name = NOTIFICATIONS.get(decoded["method"], "JSONRPCNotification")
        check_type(name, decoded)
        _check_followed(decoded)
    elif "error" in decoded:
        _check_error(decoded)
    else:
        check_type("JSONRPCResultResponse", decoded)
        _check_id(decoded)
    return decoded


def check_response(method: str, message: Message, revision: str = MODERN) -> dict[str, Any]:
    """Check the response to a request of `method`: an error, or a result of its type."""
    decoded = check_message(message, revision=revision)
    _require("method" not in decoded, "a notification is no response", decoded)
    if "error" in decoded:
        return decoded
    result = decoded["result"]
    if revision != MODERN:
        _check_result_of_session(method, result, revision)
        return decoded
    kind = result["resultType"]
    if kind == "input_required":
        _require(method in MAY_ASK, f"{method} must not ask for input", decoded)
        asked = "inputRequests" in result or "requestState" in result
        _require(asked, "neither inputRequests nor requestState", decoded)
        check_type("InputRequiredResult", result)
    elif kind == "task" or method in TASK_RESULTS:
        _check_task_result(method, result, decoded)
    else:
        _require(kind == "complete", f"unknown resultType {kind!r}", decoded)
        check_type(RESULTS.get(method, "Result"), result)
    return decoded


def check_batch(message: bytes, revision: str) -> list[dict[str, Any]]:
    """Check the responses to a batch, and return them decoded."""
    decoded = orjson.loads(message)
    _require(isinstance(decoded, list) and decoded != [], "not a batch", decoded)
    check_type("JSONRPCBatchResponse", decoded, revision)
    return [check_message(one, revision=revision) for one in decoded]


def check_type(name: str, value: Any, revision: str = MODERN) -> None:
    """Check a value against one named type of the specification's schema."""
    judge = validator(name, revision)
    if judge.is_valid(value):
        return
    problems = [
        f"{'/'.join(str(step) for step in error.instance_path) or '(root)'}: {error.message}"
        for error in judge.iter_errors(value)
    ]
    _require(False, f"not a {name} of {revision}: {'; '.join(problems)}", value)


@cache
def validator(
    name: str, revision: str = MODERN
) -> jsonschema_rs.Draft202012Validator | jsonschema_rs.Draft7Validator:
    """Return the validator of one named type."""
    if "$defs" in _schema(revision):
        schema = {"$ref": f"#/$defs/{name}", "$defs": definitions(revision)}
        return jsonschema_rs.Draft202012Validator(schema, offline=True)
    schema = {"$ref": f"#/definitions/{name}", "definitions": definitions(revision)}
    return jsonschema_rs.Draft7Validator(schema, offline=True)


@cache
def definitions(revision: str = MODERN) -> dict[str, Any]:
    """Return all named types of the specification's schema; a session-based one is closed first."""
    schema = _schema(revision)
    found: dict[str, Any] = schema["$defs"] if "$defs" in schema else schema["definitions"]
    if revision in (MODERN, TASKS):
        return found
    closed: dict[str, Any] = _closed({name: _merged(one, found) for name, one in found.items()})
    return closed


@cache
def _schema(revision: str) -> dict[str, Any]:
    if revision == OLDEST:
        return _of_the_oldest(_schema("2025-03-26"))
    schema: dict[str, Any] = orjson.loads((SPEC / f"schema-{revision}.json").read_bytes())
    return schema


def _of_the_oldest(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of 2025-03-26 without what that revision added to 2024-11-05.

    `completions` stays: newer clients that use the oldest revision look for it before they complete.
    """
    known = {name: one for name, one in schema["definitions"].items() if "Batch" not in name}
    audio = {"$ref": "#/definitions/AudioContent"}
    without = orjson.loads(orjson.dumps(known).replace(b"," + orjson.dumps(audio), b""))
    del without["AudioContent"], without["ToolAnnotations"]
    del without["Tool"]["properties"]["annotations"]
    del without["ProgressNotification"]["properties"]["params"]["properties"]["message"]
    without["JSONRPCMessage"]["anyOf"] = [
        one for one in without["JSONRPCMessage"]["anyOf"] if "$ref" in one
    ]
    return {**schema, "definitions": without}


def _merged(node: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a type that combines others as one object: closed one by one, they would exclude each
    other's members. One that combines an open type stays as it is."""
    parts = [known[part["$ref"].rpartition("/")[2]] for part in node.get("allOf", ())]
    if not parts or any("additionalProperties" in part for part in parts):
        return node
    properties = {name: one for part in parts for name, one in part["properties"].items()}
    required = [name for part in parts for name in part.get("required", ())]
    return {"type": "object", "properties": properties, "required": required}


def _closed(node: Any) -> Any:
    """Return the schema with objects limited to their named members, unless it allows others."""
    if isinstance(node, list):
        return [_closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    closed = {name: one if name in OPEN else _closed(one) for name, one in node.items()}
    if node.get("type") == "object" and "properties" in node:
        closed.setdefault("additionalProperties", False)
    return closed


def _check_of_session(
    message: dict[str, Any], direction: Direction, revision: str
) -> dict[str, Any]:
    if "method" not in message:
        _check_response_of_session(message, revision)
    elif "id" in message:
        names = SESSION_REQUESTS if direction == "client" else SERVER_REQUESTS
        _check_id(message)
        _check_named("JSONRPCRequest", names, message, revision)
    else:
        names = SESSION_NOTIFICATIONS
        if direction == "client":
            names = {name: names[name] for name in FROM_CLIENTS}
        _check_named("JSONRPCNotification", names, message, revision)
    return message


def _check_response_of_session(message: dict[str, Any], revision: str) -> None:
    has_names = "JSONRPCErrorResponse" in definitions(revision)
    if "error" not in message:
        check_type("JSONRPCResultResponse" if has_names else "JSONRPCResponse", message, revision)
        _check_id(message)
        return
    named = _named(message)
    if "id" in named or has_names:  # before 2025-11-25 only the prose allows an error without an id
        check_type("JSONRPCErrorResponse" if has_names else "JSONRPCError", named, revision)
    _require("result" not in message, "both an error and a result", message)
    _require(message["error"]["code"] in SESSION_ERRORS, "a code that nobody knows", message)
    _require(message["error"]["message"] != "", "an error without a message", message)
    if message["id"] is not None:
        _check_id(message)


def _check_named(
    envelope: str, names: Mapping[str, str], message: dict[str, Any], revision: str
) -> None:
    """Check a message by its method's type.

    Before 2025-11-25, these types did not name the members that every message has.
    """
    check_type(envelope, message, revision)
    name = names.get(message["method"], "")
    known = definitions(revision).get(name)
    _require(known is not None, f"{message['method']} is not in {revision}", message)
    assert known is not None
    inner = message
    if "jsonrpc" not in known["properties"]:
        inner = {name: one for name, one in message.items() if name not in ("jsonrpc", "id")}
    check_type(name, inner, revision)
    _check_related(message.get("params", {}), revision)


def _check_related(part: Mapping[str, Any], revision: str) -> None:
    """Check the metadata that names a task, if there is any."""
    related = part.get("_meta", {}).get(RELATED_TASK)
    if related is not None:
        check_type("RelatedTaskMetadata", related, revision)


def _check_result_of_session(method: str, result: dict[str, Any], revision: str) -> None:
    names = SESSION_RESULTS
    if revision == SESSION_TASKS:
        names = {**names, **SESSION_TASK_RESULTS}
    _require(method in names, f"{method} is not in {revision}", result)
    is_handle = revision == SESSION_TASKS and method == "tools/call" and "task" in result
    check_type("CreateTaskResult" if is_handle else names[method], result, revision)
    _require(method not in EMPTY or result == {}, f"the result of {method} must be {{}}", result)
    ours = [key for key in result.get("_meta", {}) if key.startswith("io.modelcontextprotocol/")]
    wanted = [RELATED_TASK] if method == "tasks/result" else []
    _require(ours == wanted, f"_meta with {ours}, not {wanted}", result)
    _check_related(result, revision)


def _check_task_result(method: str, result: dict[str, Any], message: Any) -> None:
    """Check a result of the tasks extension, also for what its open schema does not refuse."""
    if method == "tools/call":
        check_type("CreateTaskResult", result, TASKS)
        more = sorted(result.keys() - TASK_MEMBERS)
        _require(not more, f"a task handle has no {', '.join(more)}", message)
        return
    _require(result["resultType"] == "complete", f"{method} cannot end as a task", message)
    check_type(TASK_RESULTS.get(method, "Result"), result, TASKS)
    if method == "tasks/get":
        _check_task(result, message)
    else:
        more = sorted(result.keys() - {"resultType", "_meta"})
        _require(not more, f"an acknowledgement has no {', '.join(more)}", message)


def _check_task(task: dict[str, Any], message: Any) -> None:
    payload = TASK_PAYLOADS.get(task["status"])
    more = sorted(task.keys() - TASK_MEMBERS - {payload})
    _require(not more, f"a task that is {task['status']} has no {', '.join(more)}", message)
    _require(task.get("statusMessage") != "", "an empty statusMessage", message)
    if payload == "inputRequests":
        check_type("InputRequests", task[payload])
    elif payload == "result":
        check_type("CallToolResult", task[payload])


def _check_followed(notification: dict[str, Any]) -> None:
    if notification["method"] == "notifications/subscriptions/acknowledged":
        followed = notification["params"]["notifications"]
        check_type("TaskSubscriptionAcknowledgedNotifications", followed, TASKS)


def _check_client(message: dict[str, Any]) -> dict[str, Any]:
    _require("method" in message, "a client sent a response", message)
    if message["method"] in TASK_REQUESTS:
        check_type(TASK_REQUESTS[message["method"]], message, TASKS)
    elif "id" in message:
        check_type(REQUESTS.get(message["method"], "JSONRPCRequest"), message)
    else:
        check_type("JSONRPCNotification", message)
    return message


def _named(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error without a null id, which is JSON-RPC's for an id that could not be read."""
    _require("id" in error, "an error without an id", error)
    return {name: one for name, one in error.items() if name != "id" or one is not None}


def _check_error(message: dict[str, Any]) -> None:
    check_type("JSONRPCErrorResponse", _named(message))
    _require("result" not in message, "both an error and a result", message)
    code = message["error"]["code"]
    if -32768 <= code <= -32000:
        _require(code in ERRORS, f"{code} is reserved and not defined", message)
        name = ERRORS[code]
        check_type(name, _named(message) if name in FULL_RESPONSES else message["error"])
    _require(message["error"]["message"] != "", "an error without a message", message)
    if message["id"] is not None:
        _check_id(message)


def _check_id(message: dict[str, Any]) -> None:
    _require(type(message["id"]) in (str, int), "id is neither a string nor an integer", message)


def _decoded(message: Message) -> dict[str, Any]:
    decoded = orjson.loads(message) if isinstance(message, bytes | str) else dict(message)
    _require(isinstance(decoded, dict), "not a JSON object", decoded)
    _require(decoded.get("jsonrpc") == "2.0", 'jsonrpc is not "2.0"', decoded)
    return decoded


def _require(condition: bool, problem: str, message: Any) -> None:
    if not condition:
        raise AssertionError(
            f"{problem}\n{orjson.dumps(message, option=orjson.OPT_INDENT_2).decode()}"
        )
