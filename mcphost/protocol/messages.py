"""Encodes the messages that the server sends: responses, errors, notifications (spec: basic/index).

Dicts are built by hand and encoded directly, because this code runs for every response. Values that
cannot be JSON (integers beyond 64 bits, lone surrogates, keys that are not text, objects) raise
TypeError.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

import orjson
from mcp_types import LoggingLevel

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.json_values import without_lone_surrogates

LOG_LEVELS: Final[tuple[str, ...]] = get_args(LoggingLevel)
"""From the least to the most severe (spec: server/utilities/logging, after RFC 5424)."""

_SEVERITY: Final = {level: severity for severity, level in enumerate(LOG_LEVELS)}


def response(request_id: str | int, result: Mapping[str, Any]) -> bytes:
    """Encode the response to a request. `result` is complete: see `results` for its required
    fields."""
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_response(error: ProtocolError) -> bytes:
    """Encode an error response; its `id` is null when none could be read.

    That is JSON-RPC (section 5), and what the servers of both official SDKs send. MCP leaves the member
    out (basic/index, "Error Responses"), but the official Python client reads no error without it.

    Never raises for the text of the message: lone surrogates are replaced.
    """
    message = without_lone_surrogates(error.message)
    body: dict[str, Any] = {"code": error.code, "message": message}
    if error.data is not None:
        body["data"] = error.data
    return orjson.dumps({"jsonrpc": "2.0", "id": error.request_id, "error": body})


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """Encode a notification."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def progress(
    token: str | int,
    progress: float,
    total: float | None = None,
    message: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode `notifications/progress` (spec: basic/patterns/progress).

    `token` is the progress token of the request. The caller must pass finite numbers, and a higher
    `progress` with each notification.
    """
    params: dict[str, Any] = {"progressToken": token, "progress": progress}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    if meta is not None:
        params["_meta"] = meta
    return notification("notifications/progress", params)


def log_message(level: str, data: Any, logger: str | None = None) -> bytes:
    """Encode `notifications/message` (spec: server/utilities/logging). `data` is any JSON."""
    params: dict[str, Any] = {"level": level, "data": data}
    if logger is not None:
        params["logger"] = logger
    return notification("notifications/message", params)


def wants(level: str, minimum: str | None) -> bool:
    """Whether a client that requested `minimum` and above is sent a message of `level`.

    A client that requested no level (None) is sent nothing.
    """
    return minimum is not None and _SEVERITY[level] >= _SEVERITY[minimum]
