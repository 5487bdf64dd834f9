"""Errors of ours as clients of the session-based revisions know them.

They know fewer codes than there are today, and many of them take any HTTP status but 200 and 202 for
the end of the connection. So an error that answers a request travels with 200, under a code that they
know, with the same text and data (`data.retryAfter` among it). The statuses that the revisions
mandate stay (spec: basic/transports, basic/authorization).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcphost.protocol.eras import REVISION
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
from mcphost.protocol.revisions import REVISIONS

RESOURCE_NOT_FOUND: Final = -32002
"""What a `resources/read` of nothing is answered with (server/resources, "Error Handling")."""


class Told(NamedTuple):
    """What becomes of an error: its code, and the status with which it answers a request.

    `unanswerable` is the status where there is no request to answer: what was sent is not accepted.
    """

    code: int
    status: int = 200
    unanswerable: int = 400


def _by_status(status: int) -> Told:
    return Told(INVALID_REQUEST, status, status)


TOLD: Final[Mapping[int, Told]] = MappingProxyType(
    {
        PARSE_ERROR: Told(PARSE_ERROR, 400),
        INVALID_REQUEST: Told(INVALID_REQUEST),
        METHOD_NOT_FOUND: Told(METHOD_NOT_FOUND),
        INVALID_PARAMS: Told(INVALID_PARAMS),
        INTERNAL_ERROR: Told(INTERNAL_ERROR, 200, 500),
        HEADER_MISMATCH: Told(INVALID_REQUEST),
        MISSING_REQUIRED_CLIENT_CAPABILITY: Told(INTERNAL_ERROR),
        UNSUPPORTED_PROTOCOL_VERSION: Told(INVALID_PARAMS, 400),
        FORBIDDEN: Told(INVALID_REQUEST, 200, 403),
        OVER_LIMIT: Told(INTERNAL_ERROR, 200, 429),
        UNAVAILABLE: Told(INTERNAL_ERROR, 200, 503),
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
"""A scope is missing that the client could ask its user for: it looks at the status."""

_UNKNOWN: Final = Told(INTERNAL_ERROR)


class SessionError(ProtocolError):
    """An error as a client of a session is told it: `status` is what it travels with.

    `bare` says that the answer has no body, because nothing in one could have the `id` that its
    revision requires.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        request_id: str | int | None = None,
        *,
        told: Told,
        bare: bool = False,
    ) -> None:
        super().__init__(code, message, data, request_id)
        self._told = told
        self.bare = bare and request_id is None

    @property
    def status(self) -> int:
        return self._told.unanswerable if self.request_id is None else self._told.status

    def with_id(self, request_id: str | int | None) -> "SessionError":
        return SessionError(
            self.code, self.message, self.data, request_id, told=self._told, bare=self.bare
        )


def in_session(error: ProtocolError, method: str = "") -> SessionError:
    """The error as it answers a request of `method` in a session."""
    return _told(error, method, bare=False)


def in_post(error: ProtocolError, version: str | None) -> SessionError:
    """The same for what is refused before its session is known; `version` is what its header says."""
    revision = REVISIONS.get(version or "")
    return _told(error, "", bare=revision is None or not revision.errors_without_id)


def unsupported_revision(requested: str) -> ProtocolError:
    """A header names a revision that we do not speak (basic/transports, Protocol Version Header)."""
    supported = [*REVISIONS, REVISION]
    message = f"Unsupported protocol version {shown(requested)}; supported: {', '.join(supported)}"
    data = {"supported": supported, "requested": requested}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, message, data)


def _told(error: ProtocolError, method: str, *, bare: bool) -> SessionError:
    if isinstance(error, SessionError):
        return error
    told = TOLD.get(error.code, _UNKNOWN)
    if error.code == FORBIDDEN and "scope" in (error.data or {}):
        told = _STEP_UP
    if method in _OF_RESOURCES and is_not_found(error):
        told = told._replace(code=RESOURCE_NOT_FOUND)
    return SessionError(
        told.code, error.message, error.data, error.request_id, told=told, bare=bare
    )


_OF_RESOURCES: Final = frozenset({"resources/read", "resources/subscribe"})
