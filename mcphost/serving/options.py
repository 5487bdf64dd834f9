"""The settings that every call needs, read once. A changed setting is read anew."""

from functools import cache
from typing import NamedTuple

from django.conf import settings


class ListenerLimits(NamedTuple):
    """How many subscriptions there may be at once, in this process and of whom in all of them, and
    how many URIs in one."""

    uris: int
    per_token: int
    per_tenant: int
    in_all: int


class Options(NamedTuple):
    """Sizes are in bytes, times in seconds.

    `public_url` is where this server is reached, empty where nobody said so: then it is the Host of a
    request, with `scheme`, unless `any_host` may be named.
    `settling_seconds` is how long after this process has heard of a change all others have, too.
    """

    page_size: int
    tool_seconds: float
    answer_seconds: float
    longest_answer_seconds: float
    session_seconds: float
    ping_seconds: float
    result_limit: int
    listeners: ListenerLimits
    settling_seconds: float
    public_url: str
    scheme: str
    any_host: bool


@cache
def options() -> Options:
    """What holds now. `wiring` forgets it when a setting is changed, which only tests do."""
    return Options(
        page_size=settings.MCPHOST_PAGE_SIZE,
        tool_seconds=settings.MCPHOST_TOOL_SECONDS,
        answer_seconds=settings.MCPHOST_ANSWER_SECONDS,
        longest_answer_seconds=settings.MCPHOST_MAX_ANSWER_SECONDS,
        session_seconds=settings.MCPHOST_CLIENT_SESSION_SECONDS,
        ping_seconds=settings.MCPHOST_PING_SECONDS,
        result_limit=settings.MCPHOST_RESULT_LIMIT,
        listeners=ListenerLimits(
            uris=settings.MCPHOST_LISTEN_URIS,
            per_token=settings.MCPHOST_LISTENERS_PER_TOKEN,
            per_tenant=settings.MCPHOST_LISTENERS_PER_TENANT,
            in_all=settings.MCPHOST_LISTENERS,
        ),
        settling_seconds=0 if settings.MCPHOST_ALONE else settings.MCPHOST_FEED_SECONDS,
        public_url=settings.MCPHOST_PUBLIC_URL,
        scheme="https" if settings.MCPHOST_HTTPS else "http",
        any_host="*" in settings.ALLOWED_HOSTS,
    )
