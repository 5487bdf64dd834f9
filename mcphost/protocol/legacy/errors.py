"""Converts our errors to the session-based revisions.

Their clients know fewer codes, and many of them take any HTTP status but 200 and 202 for the end of
the connection. So an error that answers a request is sent with 200 and a code that they know, with
the same text and data (including `data.retryAfter`). The statuses that the revisions mandate stay
(spec: basic/transports, basic/authorization).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcphost.protocol.errors import (
    FORBIDDEN,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_ALLOWED,
    METHOD_NOT_FOUND,
    MISDIRECTED,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    NOT_ACCEPTABLE,
    OVER_LIMIT,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    SESSION_GONE,
    SESSION_MISSING,
    TOO_LARGE,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNSUPPORTED_MEDIA_TYPE,
    UNSUPPORTED_PROTOCOL_VERSION,
    ProtocolError,
    shown,
)
from mcphost.protocol.resources import is_not_found
from mcphost.protocol.revisions import REVISION, REVISIONS

RESOURCE_NOT_FOUND: Final = -32002
"""The code for a `resources/read` of a missing resource (server/resources, "Error Handling")."""


class LegacyErrorCode(NamedTuple):
    """The code of a converted error, and the HTTP status with which it answers a request.

    `unanswerable` is the status where there is no request to answer: the message is not accepted.
    """

    code: int
    status: int = 200
    unanswerable: int = 400


def _by_status(status: int) -> LegacyErrorCode:
    return LegacyErrorCode(INVALID_REQUEST, status, status)


LEGACY_ERROR_CODES: Final[Mapping[int, LegacyErrorCode]] = MappingProxyType(
    {
        PARSE_ERROR: LegacyErrorCode(PARSE_ERROR, 400),
        INVALID_REQUEST: LegacyErrorCode(INVALID_REQUEST),
        METHOD_NOT_FOUND: LegacyErrorCode(METHOD_NOT_FOUND),
        INVALID_PARAMS: LegacyErrorCode(INVALID_PARAMS),
        INTERNAL_ERROR: LegacyErrorCode(INTERNAL_ERROR, 200, 500),
        HEADER_MISMATCH: LegacyErrorCode(INVALID_REQUEST),
        MISSING_REQUIRED_CLIENT_CAPABILITY: LegacyErrorCode(INTERNAL_ERROR),
        UNSUPPORTED_PROTOCOL_VERSION: LegacyErrorCode(INVALID_PARAMS, 400),
        FORBIDDEN: LegacyErrorCode(INVALID_REQUEST, 200, 403),
        OVER_LIMIT: LegacyErrorCode(INTERNAL_ERROR, 200, 429),
        UNAVAILABLE: LegacyErrorCode(INTERNAL_ERROR, 200, 503),
        SESSION_MISSING: _by_status(400),
        UNAUTHORIZED: _by_status(401),
        SESSION_GONE: _by_status(404),
        METHOD_NOT_ALLOWED: _by_status(405),
        NOT_ACCEPTABLE: _by_status(406),
        REQUEST_TIMEOUT: _by_status(408),
        TOO_LARGE: _by_status(413),
        UNSUPPORTED_MEDIA_TYPE: _by_status(415),
        MISDIRECTED: _by_status(403),
    }
)

_STEP_UP: Final = _by_status(403)
"""The client could ask its user for a missing scope: it looks at the status."""

_UNKNOWN: Final = LegacyErrorCode(INTERNAL_ERROR)


class SessionError(ProtocolError):
    """An error as a client of a session receives it; `status` is the HTTP status."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        request_id: str | int | None = None,
        *,
        converted: LegacyErrorCode,
    ) -> None:
        super().__init__(code, message, data, request_id)
        self._converted = converted

    @property
    def status(self) -> int:
        return self._converted.unanswerable if self.request_id is None else self._converted.status

    def with_id(self, request_id: str | int | None) -> "SessionError":
        return SessionError(
            self.code, self.message, self.data, request_id, converted=self._converted
        )


def in_session(error: ProtocolError, method: str = "") -> SessionError:
    """Convert an error for a client of a session: one that answers a request of `method`, or a POST."""
    if isinstance(error, SessionError):
        return error
    converted = LEGACY_ERROR_CODES.get(error.code, _UNKNOWN)
    if error.code == FORBIDDEN and "scope" in (error.data or {}):
        converted = _STEP_UP
    if method in _OF_RESOURCES and is_not_found(error):
        converted = converted._replace(code=RESOURCE_NOT_FOUND)
    return SessionError(
        converted.code, error.message, error.data, error.request_id, converted=converted
    )


def unsupported_revision(requested: str) -> ProtocolError:
    """Build the error for an unsupported revision in the header (basic/transports, Protocol Version
    Header)."""
    supported = [*REVISIONS, REVISION]
    message = f"Unsupported protocol version {shown(requested)}; supported: {', '.join(supported)}"
    data = {"supported": supported, "requested": requested}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, message, data)


_OF_RESOURCES: Final = frozenset({"resources/read", "resources/subscribe"})
