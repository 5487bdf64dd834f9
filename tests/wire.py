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
SESSION_BASED = ("2025-03-26", "2025-06-18", "2025-11-25")

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

EMPTY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Methods of a session whose result is exactly `{}`."""

_LATER = frozenset({"server/discover", "subscriptions/listen"})

SESSION_RESULTS = {
    "initialize": "InitializeResult",
    **dict.fromkeys(EMPTY, "EmptyResult"),
    **{method: name for method, name in RESULTS.items() if method not in _LATER},
}

SESSION_REQUESTS = {
    "initialize": "InitializeRequest",
    "ping": "PingRequest",
    "logging/setLevel": "SetLevelRequest",
    "resources/subscribe": "SubscribeRequest",
    "resources/unsubscribe": "UnsubscribeRequest",
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
    if "method" in decoded:
        name = NOTIFICATIONS.get(decoded["method"], "JSONRPCNotification")
        check_type(name, decoded)
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
    found = schema["$defs"] if "$defs" in schema else schema["definitions"]
    return found if revision == MODERN else _closed(found)


@cache
def _schema(revision: str) -> dict[str, Any]:
    return orjson.loads((SPEC / f"schema-{revision}.json").read_bytes())


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
    check_type("JSONRPCErrorResponse" if has_names else "JSONRPCError", message, revision)
    _require("result" not in message, "both an error and a result", message)
    _require(message["error"]["code"] in SESSION_ERRORS, "a code that nobody knows", message)
    _require(message["error"]["message"] != "", "an error without a message", message)
    if "id" in message:
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
    inner = message
    if "jsonrpc" not in known["properties"]:
        inner = {name: one for name, one in message.items() if name not in ("jsonrpc", "id")}
    check_type(name, inner, revision)


def _check_result_of_session(method: str, result: dict[str, Any], revision: str) -> None:
    _require(method in SESSION_RESULTS, f"{method} is not in {revision}", result)
    check_type(SESSION_RESULTS[method], result, revision)
    _require(method not in EMPTY or result == {}, f"the result of {method} must be {{}}", result)
    ours = [key for key in result.get("_meta", {}) if key.startswith("io.modelcontextprotocol/")]
    _require(ours == [], "_meta of a later revision", result)


def _check_client(message: dict[str, Any]) -> dict[str, Any]:
    _require("method" in message, "a client sent a response", message)
    if "id" in message:
        check_type(REQUESTS.get(message["method"], "JSONRPCRequest"), message)
    else:
        check_type("JSONRPCNotification", message)
    return message


def _check_error(message: dict[str, Any]) -> None:
    check_type("JSONRPCErrorResponse", message)
    _require("result" not in message, "both an error and a result", message)
    code = message["error"]["code"]
    if -32768 <= code <= -32000:
        _require(code in ERRORS, f"{code} is reserved and not defined", message)
        name = ERRORS[code]
        check_type(name, message if name in FULL_RESPONSES else message["error"])
    _require(message["error"]["message"] != "", "an error without a message", message)
    if "id" in message:
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
