"""The settings that every call needs, cached."""

from functools import cache
from typing import NamedTuple

from django.conf import settings


class ListenerLimits(NamedTuple):
    """Limits of subscriptions: URIs in one; at once per token and per tenant in all processes
    together; at once in this process (`in_all`)."""

    uris: int
    per_token: int
    per_tenant: int
    in_all: int


class SessionLimits(NamedTuple):
    """Limits of sessions. A session ends when it was not used for `idle_seconds`, and at the latest
    `max_seconds` after its begin; a call in progress keeps it.

    Of a caller in all processes together: sessions at once, GET streams per session, and changes of
    its sessions per minute.
    """

    idle_seconds: float
    max_seconds: float
    at_once: int
    streams: int
    changes_per_minute: int


class TaskOptions(NamedTuple):
    """Settings of tasks. Times are in seconds: how long a task is kept, how long one of its rounds
    may run, after how long a call is slow, and how often clients should poll.

    `per_tenant` and `per_caller` are working tasks. Rounds at once are those of this process: in
    all, of a tenant, and of a tool; with `queued`, those that are queued or run anywhere, of a tenant
    and of a tool. `queued` is whether due tasks are queued as jobs, `worker_in_server` whether
    serving processes take jobs, too.
    """

    seconds: float
    round_seconds: float
    after_seconds: float
    poll_seconds: float
    per_tenant: int
    per_caller: int
    rounds: int
    rounds_per_tenant: int
    rounds_per_tool: int
    queued: bool
    worker_in_server: bool


class StatePartLimits(NamedTuple):
    """Limits of what the states of one tenant's calls do not hold: rows, and bytes in all."""

    rows: int
    bytes: int


class ServingOptions(NamedTuple):
    """Settings of this package. Sizes are in bytes, times in seconds.

    `stateless_replies` is how often a call of the stateless revision may be answered with something else
    than its result. `public_url` is this server's address. If it is not configured, it is empty: the address is then
    `scheme` and the Host of a request, unless `any_host` is allowed. `settling_seconds` is how long
    after this process all others have read a change, too. The settings of `shed_…` are described in
    `serving.load`; 0 is off.
    """

    page_size: int
    tool_seconds: float
    stateless_replies: int
    answer_seconds: float
    longest_answer_seconds: float
    ping_seconds: float
    body_limit: int
    result_limit: int
    listeners: ListenerLimits
    sessions: SessionLimits
    tasks: TaskOptions
    state_parts: StatePartLimits
    shed_lag_seconds: float
    shed_share_seconds: float
    settling_seconds: float
    public_url: str
    scheme: str
    any_host: bool
    api_requests_per_minute: int


@cache
def options() -> ServingOptions:
    """The current options. `wiring` clears the cache when a test changes a setting."""
    return ServingOptions(
        page_size=settings.MCPHOST_PAGE_SIZE,
        tool_seconds=settings.MCPHOST_TOOL_SECONDS,
        stateless_replies=settings.MCPHOST_STATELESS_REPLIES,
        answer_seconds=settings.MCPHOST_ANSWER_SECONDS,
        longest_answer_seconds=settings.MCPHOST_MAX_ANSWER_SECONDS,
        ping_seconds=settings.MCPHOST_PING_SECONDS,
        body_limit=settings.MCPHOST_BODY_LIMIT,
        result_limit=settings.MCPHOST_RESULT_LIMIT,
        listeners=ListenerLimits(
            uris=settings.MCPHOST_LISTEN_URIS,
            per_token=settings.MCPHOST_LISTENERS_PER_TOKEN,
            per_tenant=settings.MCPHOST_LISTENERS_PER_TENANT,
            in_all=settings.MCPHOST_LISTENERS,
        ),
        sessions=SessionLimits(
            idle_seconds=settings.MCPHOST_CLIENT_SESSION_SECONDS,
            max_seconds=settings.MCPHOST_CLIENT_SESSION_MAX_SECONDS,
            at_once=settings.MCPHOST_SESSIONS_PER_TOKEN,
            streams=settings.MCPHOST_STREAMS_PER_SESSION,
            changes_per_minute=settings.MCPHOST_SESSION_CHANGES_PER_MINUTE,
        ),
        tasks=TaskOptions(
            seconds=settings.MCPHOST_TASK_SECONDS,
            round_seconds=settings.MCPHOST_TASK_ROUND_SECONDS,
            after_seconds=settings.MCPHOST_TASK_AFTER_SECONDS,
            poll_seconds=settings.MCPHOST_TASK_POLL_SECONDS,
            per_tenant=settings.MCPHOST_TASKS_PER_TENANT,
            per_caller=settings.MCPHOST_TASKS_PER_CALLER,
            rounds=settings.MCPHOST_TASK_ROUNDS,
            rounds_per_tenant=settings.MCPHOST_TASK_ROUNDS_PER_TENANT,
            rounds_per_tool=settings.MCPHOST_TASK_ROUNDS_PER_TOOL,
            queued=settings.MCPHOST_TASK_ENGINE == "procrastinate",
            worker_in_server=settings.MCPHOST_TASK_WORKER_IN_SERVER,
        ),
        state_parts=StatePartLimits(
            rows=settings.MCPHOST_STATE_PARTS_PER_TENANT,
            bytes=settings.MCPHOST_STATE_PART_BYTES_PER_TENANT,
        ),
        shed_lag_seconds=settings.MCPHOST_SHED_LAG_SECONDS,
        shed_share_seconds=settings.MCPHOST_SHED_SHARE_SECONDS,
        settling_seconds=0 if settings.MCPHOST_ALONE else settings.MCPHOST_FEED_SECONDS,
        public_url=settings.MCPHOST_PUBLIC_URL,
        scheme="https" if settings.MCPHOST_HTTPS else "http",
        any_host="*" in settings.ALLOWED_HOSTS,
        api_requests_per_minute=settings.MCPHOST_API_REQUESTS_PER_MINUTE,
    )
