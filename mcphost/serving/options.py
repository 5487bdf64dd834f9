"""The settings that every call needs, read once. A changed setting is read anew."""

from functools import cache
from typing import NamedTuple

from django.conf import settings


class ListenerLimits(NamedTuple):
    """How many subscriptions there may be at once in this process, and how many URIs in one."""

    uris: int
    per_token: int
    per_tenant: int
    in_all: int


class Options(NamedTuple):
    """Sizes are in bytes, times in seconds.

    `settling_seconds` is how long after this process has heard of a change all others have, too.
    """

    page_size: int
    tool_seconds: float
    result_limit: int
    listeners: ListenerLimits
    settling_seconds: float


@cache
def options() -> Options:
    """What holds now. `wiring` forgets it when a setting is changed, which only tests do."""
    return Options(
        page_size=settings.MCPHOST_PAGE_SIZE,
        tool_seconds=settings.MCPHOST_TOOL_SECONDS,
        result_limit=settings.MCPHOST_RESULT_LIMIT,
        listeners=ListenerLimits(
            uris=settings.MCPHOST_LISTEN_URIS,
            per_token=settings.MCPHOST_LISTENERS_PER_TOKEN,
            per_tenant=settings.MCPHOST_LISTENERS_PER_TENANT,
            in_all=settings.MCPHOST_LISTENERS,
        ),
        settling_seconds=0 if settings.MCPHOST_ALONE else settings.MCPHOST_FEED_SECONDS,
    )
