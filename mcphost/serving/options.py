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
    """Limits of a caller in all processes together: sessions at once, GET streams per session, and
    changes of its sessions per minute."""

    at_once: int
    streams: int
    changes_per_minute: int


class ServingOptions(NamedTuple):
    """Settings of this package. Sizes are in bytes, times in seconds.

    `public_url` is this server's address. If it is not configured, it is empty: the address is then
    `scheme` and the Host of a request, unless `any_host` is allowed. `settling_seconds` is how long
    after this process all others have read a change, too.
    """

    page_size: int
    tool_seconds: float
    answer_seconds: float
    longest_answer_seconds: float
    session_seconds: float
    ping_seconds: float
    body_limit: int
    result_limit: int
    listeners: ListenerLimits
    sessions: SessionLimits
    settling_seconds: float
    public_url: str
    scheme: str
    any_host: bool


@cache
def options() -> ServingOptions:
    """The current options. `wiring` clears the cache when a test changes a setting."""
    return ServingOptions(
        page_size=settings.MCPHOST_PAGE_SIZE,
        tool_seconds=settings.MCPHOST_TOOL_SECONDS,
        answer_seconds=settings.MCPHOST_ANSWER_SECONDS,
        longest_answer_seconds=settings.MCPHOST_MAX_ANSWER_SECONDS,
        session_seconds=settings.MCPHOST_CLIENT_SESSION_SECONDS,
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
            at_once=settings.MCPHOST_SESSIONS_PER_TOKEN,
            streams=settings.MCPHOST_STREAMS_PER_SESSION,
            changes_per_minute=settings.MCPHOST_SESSION_CHANGES_PER_MINUTE,
        ),
        settling_seconds=0 if settings.MCPHOST_ALONE else settings.MCPHOST_FEED_SECONDS,
        public_url=settings.MCPHOST_PUBLIC_URL,
        scheme="https" if settings.MCPHOST_HTTPS else "http",
        any_host="*" in settings.ALLOWED_HOSTS,
    )
