"""All values that a label of a metric can have.

They never contain data of a tenant, a tool or a client: a value outside of these sets becomes
`other`. The sets repeat constants of higher packages (see tests/observability/test_labels.py).
"""

from collections.abc import Mapping
from types import MappingProxyType

TASK_ENDS = ("completed", "failed", "cancelled")
"""The final states of tasks."""
NO_METHOD = "none"
"""The request was refused before its message was read."""
NOTIFICATION = "notification"
"""A POST without a request: a notification, or, in a session, an input response."""
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
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
    "tasks/result",
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

DISCONNECTED = "gone"
"""The client had disconnected before it was answered."""
STATUSES = (DISCONNECTED, "1xx", "2xx", "3xx", "4xx", "5xx")
"""By the first digit of the HTTP status; 0 stands for DISCONNECTED."""

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
"""Results of claiming a round."""
KINDS = ("http", "python", "script", "text")
PRIMITIVE_TYPES = ("tool", "prompt", "resource", "template")
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
    "deferred",
    "cancelled",
)

SHED = ("drain", "lag", "share", "absent")
"""Why a call was sent to another process: this one drains, its event loop is late, the caller's
share of concurrent calls here is full, or it lacks the call's function."""

SANDBOX_JOBS = ("script", "search", "check")
SANDBOX_OUTCOMES = (
    "done",
    "paused",
    "error",
    "time",
    "memory",
    "output",
    "crash",
    "late",
    "lost",
    "cancelled",
    "full",
)
"""How jobs of the sandbox end. A `late` worker was silent for too long, a `lost` one died; a `full` pool
had no worker for the job."""
SANDBOX_KILLS = ("late", "lost", "cancelled", "unclean", "worn", "tenant", "check", "closed")
"""Why workers are killed: after their job, after their share of jobs, to make room for another tenant."""
EGRESS = (
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "refused",
    "unreachable",
    "timed_out",
    "unreadable",
)
"""How outgoing requests end: with the class of a status; refused before they are sent; and three ways in
which there is no response."""

PASSWORDS = ("right", "wrong", "locked", "paused", "busy")
"""Results of a password check; with the last three the password was not checked."""

POLLS = ("read", "failed")
