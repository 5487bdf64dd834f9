"""The referee: whether a message on the wire is what revision 2026-07-28 says it is.

Every suite that sees what the server sends passes it through here. All functions raise
AssertionError with what is wrong and the message itself.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import orjson

SPEC = Path(__file__).parent / "spec"
SCHEMA = SPEC / "schema-2026-07-28.json"

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
"""The error types that describe the whole response, not what is in `error`."""

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

Direction = Literal["server", "client"]
Message = Mapping[str, Any] | bytes | str


def check_message(message: Message, direction: Direction = "server") -> dict[str, Any]:
    """Check one message that a server (or a client) sent, and return it decoded.

    A server sends responses, errors and notifications, never a request. A result is checked as
    far as that is possible without knowing the method: see `check_response`.
    """
    decoded = _decoded(message)
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


def check_response(method: str, message: Message) -> dict[str, Any]:
    """Check the response to a request of `method`: an error, or a result of its type."""
    decoded = check_message(message)
    _require("method" not in decoded, "a notification is no response", decoded)
    if "error" in decoded:
        return decoded
    result = decoded["result"]
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


def check_type(name: str, value: Any) -> None:
    """Check a value against one named type of the specification's schema."""
    if validator(name).is_valid(value):
        return
    problems = [
        f"{'/'.join(str(step) for step in error.instance_path) or '(root)'}: {error.message}"
        for error in validator(name).iter_errors(value)
    ]
    _require(False, f"not a {name}: {'; '.join(problems)}", value)


@cache
def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    """The validator of one named type."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": definitions()}
    return jsonschema_rs.Draft202012Validator(schema, offline=True)


@cache
def definitions() -> dict[str, Any]:
    """All named types of the specification's schema."""
    return orjson.loads(SCHEMA.read_bytes())["$defs"]


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
