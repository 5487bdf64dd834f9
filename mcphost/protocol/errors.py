"""The errors that answer a message: one exception, one table of codes to HTTP statuses.

Codes come from the specification (basic/index, "Error Codes"). For errors without a code there we
use our own, outside the range that JSON-RPC reserves (-32768 to -32000), so that they cannot
collide with codes of others. Our codes are -31 followed by the HTTP status they are sent with.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_types.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from mcphost.protocol.revisions import SUPPORTED

__all__ = [
    "FORBIDDEN",
    "HEADER_MISMATCH",
    "HTTP_STATUS",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_ALLOWED",
    "METHOD_NOT_FOUND",
    "MISDIRECTED",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "NOT_ACCEPTABLE",
    "OVER_LIMIT",
    "PARSE_ERROR",
    "REQUEST_TIMEOUT",
    "SESSION_GONE",
    "SESSION_MISSING",
    "TOO_LARGE",
    "UNAUTHORIZED",
    "UNAVAILABLE",
    "UNSUPPORTED_MEDIA_TYPE",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "ProtocolError",
    "header_mismatch",
    "invalid_params",
    "invalid_request",
    "method_not_found",
    "missing_capability",
    "over_limit",
    "unavailable",
    "unsupported_version",
]

SESSION_MISSING: Final = -31400
UNAUTHORIZED: Final = -31401
FORBIDDEN: Final = -31403
SESSION_GONE: Final = -31404
METHOD_NOT_ALLOWED: Final = -31405
NOT_ACCEPTABLE: Final = -31406
REQUEST_TIMEOUT: Final = -31408
TOO_LARGE: Final = -31413
UNSUPPORTED_MEDIA_TYPE: Final = -31415
MISDIRECTED: Final = -31421
"""The Host or Origin is not one of ours: 403, as the transport's security section asks."""
OVER_LIMIT: Final = -31429
UNAVAILABLE: Final = -31503

HTTP_STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        INVALID_PARAMS: 400,
        METHOD_NOT_FOUND: 404,
        HEADER_MISMATCH: 400,
        MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
        UNSUPPORTED_PROTOCOL_VERSION: 400,
        # The transport worked, the call failed. A 5xx would hide the JSON-RPC body from clients
        # that read it only below 500, and let a proxy send the call a second time.
        INTERNAL_ERROR: 200,
        SESSION_MISSING: 400,
        UNAUTHORIZED: 401,
        FORBIDDEN: 403,
        SESSION_GONE: 404,
        METHOD_NOT_ALLOWED: 405,
        NOT_ACCEPTABLE: 406,
        REQUEST_TIMEOUT: 408,
        TOO_LARGE: 413,
        UNSUPPORTED_MEDIA_TYPE: 415,
        MISDIRECTED: 403,
        OVER_LIMIT: 429,
        UNAVAILABLE: 503,
    }
)


class ProtocolError(Exception):
    """A JSON-RPC error that answers a message.

    `request_id` is the id of the request it answers. It is None when no id could be read. Treat
    instances as frozen: `with_id` makes a new one.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        request_id: str | int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.request_id = request_id

    @property
    def status(self) -> int:
        """The HTTP status; 200 for a code that is not in the table."""
        return HTTP_STATUS.get(self.code, 200)

    def with_id(self, request_id: str | int | None) -> "ProtocolError":
        """Return the same error as the answer to `request_id`."""
        return ProtocolError(self.code, self.message, self.data, request_id)

    def __repr__(self) -> str:
        return f"ProtocolError({self.code}, {self.message!r}, request_id={self.request_id!r})"


def invalid_request(message: str) -> ProtocolError:
    """-32600: not a JSON-RPC request or notification as MCP defines them."""
    return ProtocolError(INVALID_REQUEST, message)


def invalid_params(message: str, data: Mapping[str, Any] | None = None) -> ProtocolError:
    """-32602: the params, or the `_meta` in them, are not what the method accepts."""
    return ProtocolError(INVALID_PARAMS, message, data)


def over_limit(message: str, retry_after: int) -> ProtocolError:
    """HTTP 429: a limit is reached. `retry_after` is in seconds."""
    return ProtocolError(OVER_LIMIT, message, {"retryAfter": retry_after})


def unavailable(message: str, retry_after: int = 2) -> ProtocolError:
    """HTTP 503: the server cannot do this now. `retry_after` is in seconds."""
    return ProtocolError(UNAVAILABLE, message, {"retryAfter": retry_after})


def method_not_found(method: str) -> ProtocolError:
    """-32601, HTTP 404 (basic/transports/streamable-http, "Protocol Version Header")."""
    return ProtocolError(METHOD_NOT_FOUND, f"Method not found: {shown(method)}")


def header_mismatch(message: str) -> ProtocolError:
    """-32020 (basic/transports/streamable-http, "Server Validation")."""
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {message}")


def unsupported_version(requested: str, hint: str = "") -> ProtocolError:
    """-32022 with the supported versions (basic/versioning, "Protocol Version Negotiation").

    The message lists the versions too: a legacy client can show its user nothing else.
    """
    message = (
        f"Unsupported protocol version {shown(requested)}; supported: {', '.join(SUPPORTED)}{hint}"
    )
    data = {"supported": list(SUPPORTED), "requested": requested}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, message, data)


def missing_capability(message: str, required: Mapping[str, Any]) -> ProtocolError:
    """-32021; `required` has the shape of `ClientCapabilities`, e.g. `{"sampling": {}}`."""
    data = {"requiredCapabilities": dict(required)}
    return ProtocolError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


def shown(text: str, limit: int = 80) -> str:
    """Quote text of the client in a message: escaped, and cut to `limit` characters."""
    return repr(text if len(text) <= limit else text[:limit] + "…")
