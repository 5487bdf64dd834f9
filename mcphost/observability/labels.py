"""Every value that a label of a metric can have.

Nothing of a tenant, a tool or a client is ever among them: what lies outside of these sets is called
`other`. The sets repeat what higher rooms know; tests/observability/test_labels.py compares.
"""

from collections.abc import Mapping
from types import MappingProxyType

NO_METHOD = "none"
"""Refused before a message was read."""
NOTIFICATION = "notification"
"""Nothing that is answered; in a session that may be an answer, too."""
BATCH = "batch"
STREAM = "stream"
"""A session's GET."""
END = "end"
"""A session's DELETE."""

METHODS = (
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "subscriptions/listen",
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    NOTIFICATION,
    BATCH,
    STREAM,
    END,
    NO_METHOD,
)

GONE = "gone"
"""Nobody was there for the answer."""
STATUSES = (GONE, "1xx", "2xx", "3xx", "4xx", "5xx")
"""By the first digit of the HTTP status; 0 stands for GONE."""

CODES: Mapping[int, str] = MappingProxyType(
    {
        -32700: "parse_error",
        -32600: "invalid_request",
        -32601: "method_not_found",
        -32602: "invalid_params",
        -32603: "internal_error",
        -32020: "header_mismatch",
        -32021: "missing_capability",
        -32022: "unsupported_version",
        -31400: "session_missing",
        -31401: "unauthorized",
        -31403: "forbidden",
        -31404: "session_gone",
        -31405: "method_not_allowed",
        -31406: "not_acceptable",
        -31408: "request_timeout",
        -31413: "too_large",
        -31415: "unsupported_media_type",
        -31421: "misdirected",
        -31429: "over_limit",
        -31503: "unavailable",
    }
)

CLAIMS = ("won", "taken_over", "told", "refused")
"""What came of claiming a round."""
KINDS = ("python", "text")
SORTS = ("tool", "prompt", "resource", "template")
OUTCOMES = (
    "complete",
    "tool_error",
    "invalid_arguments",
    "invalid_result",
    "timed_out",
    "overloaded",
    "capability_missing",
    "asked_too_often",
    "journal_too_large",
    "crashed",
    "input_required",
    "yielded",
    "cancelled",
)

POLLS = ("read", "failed")
